#pragma once
// Elementwise functions of the feed-forward layers. Matrices of one shape, rows of unit stride; an output is an
// input itself, where that is allowed, or apart from all of them. They throw LogicError when sizes do not fit.

#include "headlight/kernels/matmul.h"
#include "headlight/tensor/view.h"

namespace headlight {

// y = f(x) elementwise: kNone x; kRelu max(x, 0), NaN kept; kGelu x/2 (1 + erf(x / sqrt 2)) (Hendrycks and
// Gimpel 2016); kGeluTanh its form with tanh(sqrt(2/pi) (x + 0.044715 x^3)). y may be x itself.
// The same function, bit for bit, as the epilogue of matmul.
template <class T>
void activation_forward(Activation f, View<const T, 2> x, View<T, 2> y);

// dx = f'(x) dy, set; dx may be dy itself. relu'(0) = 0.
template <class T>
void activation_backward(Activation f, View<const T, 2> x, View<const T, 2> dy, View<T, 2> dx);

// y = silu(gate) * linear with silu(g) = g / (1 + exp(-g)) (Shazeer 2020, SwiGLU). All (rows, F).
template <class T>
void silu_gate_forward(View<const T, 2> gate, View<const T, 2> linear, View<T, 2> y);

// dgate = dy * linear * silu'(gate), dlinear = dy * silu(gate); set. Either may be dy itself, not both.
template <class T>
void silu_gate_backward(View<const T, 2> gate, View<const T, 2> linear, View<const T, 2> dy, View<T, 2> dgate,
                        View<T, 2> dlinear);

}  // namespace headlight
