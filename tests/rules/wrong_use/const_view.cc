// A view of constant elements is no output.
#include "headlight/kernels/elementwise.h"

void use(headlight::View<const float, 2> x, headlight::View<float, 2> z) {
#ifdef WRONG
  headlight::add<float>(x, x, x);
#else
  headlight::add<float>(x, x, z);
#endif
}
