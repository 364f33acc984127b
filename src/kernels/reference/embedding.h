#pragma once
// The scalar truth of kernels/embedding.h.

#include "headlight/kernels/embedding.h"

namespace headlight::reference {

void embedding_forward(View<const int32_t, 1> index, View<const double, 2> table, View<double, 2> y, bool accumulate);
void embedding_backward(View<const int32_t, 1> index, View<const double, 2> dy, View<double, 2> dtable);

}  // namespace headlight::reference
