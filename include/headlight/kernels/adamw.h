#pragma once
// AdamW (Loshchilov and Hutter 2019) and the norm that gradient clipping needs.

#include <cstdint>

#include "headlight/tensor/view.h"

namespace headlight {

// One step t >= 1 on a packed run of parameters, gradient g' = gradient_scale * g:
//   m = beta1 m + (1 - beta1) g';   v = beta2 v + (1 - beta2) g'^2
//   w = w - rate (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + decay w)
template <class T>
struct AdamW {
  View<T, 1> w, m, v;    // (n), updated
  View<const T, 1> g;    // (n)
  int64_t step = 1;      // t
  double rate = 1e-3;    // learning rate
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.0;           // weight decay
  double gradient_scale = 1.0;  // from clipping and accumulation
};
template <class T>
void adamw_step(const AdamW<T>& args);

// sum of x^2 in double, in an order that depends on n alone.
template <class T>
double sum_of_squares(View<const T, 1> x);

}  // namespace headlight
