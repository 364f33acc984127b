#include "kernels/reference/adamw.h"

#include <cmath>

namespace headlight::reference {

void adamw_step(const AdamW<double>& a) {
  const double t = static_cast<double>(a.step);
  for (int64_t i = 0; i < a.w.size(0); ++i) {
    const double g = a.gradient_scale * a.g(i);
    a.m(i) = a.beta1 * a.m(i) + (1 - a.beta1) * g;
    a.v(i) = a.beta2 * a.v(i) + (1 - a.beta2) * g * g;
    const double mean = a.m(i) / (1 - std::pow(a.beta1, t));
    const double square = a.v(i) / (1 - std::pow(a.beta2, t));
    a.w(i) = a.w(i) - a.rate * (mean / (std::sqrt(square) + a.epsilon) + a.decay * a.w(i));
  }
}

double sum_of_squares(View<const double, 1> x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(0); ++i) sum += x(i) * x(i);
  return sum;
}

}  // namespace headlight::reference
