#pragma once
// The scalar truth of kernels/activation.h.

#include "headlight/kernels/activation.h"

namespace headlight::reference {

// f(x) and f'(x) of one number
double activate(Activation f, double x);
double activation_slope(Activation f, double x);

void activation_forward(Activation f, View<const double, 2> x, View<double, 2> y);
void activation_backward(Activation f, View<const double, 2> x, View<const double, 2> dy, View<double, 2> dx);
void silu_gate_forward(View<const double, 2> gate, View<const double, 2> linear, View<double, 2> y);
void silu_gate_backward(View<const double, 2> gate, View<const double, 2> linear, View<const double, 2> dy,
                        View<double, 2> dgate, View<double, 2> dlinear);

}  // namespace headlight::reference
