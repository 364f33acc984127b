#include "kernels/reference/softmax.h"

#include <cmath>
#include <limits>

namespace headlight::reference {

void softmax_forward(View<const double, 2> x, View<double, 2> p) {
  const int64_t n = x.size(1);
  for (int64_t i = 0; i < x.size(0); ++i) {
    double max = -std::numeric_limits<double>::infinity();
    bool bad = false;
    for (int64_t j = 0; j < n; ++j) {
      if (x(i, j) > max) max = x(i, j);
      bad = bad || std::isnan(x(i, j));
    }
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::exp(x(i, j) - max);
    const bool nothing = max == -std::numeric_limits<double>::infinity() && !bad;
    for (int64_t j = 0; j < n; ++j) p(i, j) = nothing ? 0 : std::exp(x(i, j) - max) / sum;
  }
}

void softmax_backward(View<const double, 2> p, View<const double, 2> dp, View<double, 2> dx) {
  const int64_t n = p.size(1);
  for (int64_t i = 0; i < p.size(0); ++i) {
    double dot = 0;
    for (int64_t j = 0; j < n; ++j) dot += p(i, j) * dp(i, j);
    for (int64_t j = 0; j < n; ++j) dx(i, j) = p(i, j) * (dp(i, j) - dot);
  }
}

}  // namespace headlight::reference
