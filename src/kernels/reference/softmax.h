#pragma once
// The scalar truth of kernels/softmax.h.

#include "headlight/kernels/softmax.h"

namespace headlight::reference {

void softmax_forward(View<const double, 2> x, View<double, 2> p);
void softmax_backward(View<const double, 2> p, View<const double, 2> dp, View<double, 2> dx);

}  // namespace headlight::reference
