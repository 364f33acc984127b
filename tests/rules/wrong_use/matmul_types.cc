// The operands of a product have one element type.
#include "headlight/kernels/matmul.h"

void use(headlight::View<const float, 2> a, headlight::View<const float, 2> b, headlight::View<const double, 2> wide,
         headlight::View<float, 2> c) {
#ifdef WRONG
  headlight::matmul<float>({.a = a, .b = wide, .c = c});
#else
  headlight::matmul<float>({.a = a, .b = b, .c = c});
#endif
}
