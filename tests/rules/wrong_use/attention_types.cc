// Queries, keys, values and outputs have one element type.
#include "headlight/kernels/attention.h"

void use(headlight::View<const float, 4> q, headlight::View<const double, 4> wide, headlight::View<float, 4> o) {
#ifdef WRONG
  headlight::attention_forward({.q = q, .k = wide, .v = q, .o = o});
#else
  headlight::attention_forward({.q = q, .k = q, .v = q, .o = o});
#endif
}
