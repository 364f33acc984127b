// A view of another rank does not pass.
#include "headlight/kernels/matmul.h"

void use(headlight::View<const float, 2> x, headlight::View<const float, 3> cube, headlight::View<float, 1> sums) {
#ifdef WRONG
  headlight::add_column_sums<float>(cube, sums);
#else
  headlight::add_column_sums<float>(x, sums);
#endif
}
