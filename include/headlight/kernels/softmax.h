#pragma once
// Softmax over the last dimension (natural exponentials), stable for any finite input.

#include "headlight/tensor/view.h"

namespace headlight {

// p(i, j) = exp(x(i, j) - max_i) / sum_i. A row whose every entry is -inf gives zeros; a row with a NaN or
// +inf gives NaN. x, p: (rows, n), rows of unit stride; p may be x itself.
template <class T>
void softmax_forward(View<const T, 2> x, View<T, 2> p);

// dx(i, j) = p(i, j) (dp(i, j) - sum over l of p(i, l) dp(i, l)); set, may be dp itself.
template <class T>
void softmax_backward(View<const T, 2> p, View<const T, 2> dp, View<T, 2> dx);

}  // namespace headlight
