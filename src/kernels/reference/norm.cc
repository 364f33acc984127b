#include "kernels/reference/norm.h"

#include <cmath>

namespace headlight::reference {

void norm_forward(const NormForward<double>& a) {
  const int64_t n = a.x.size(1);
  const double count = n > 0 ? static_cast<double>(n) : 1;
  for (int64_t i = 0; i < a.x.size(0); ++i) {
    double mean = 0;
    if (a.kind == NormKind::kLayerNorm) {
      for (int64_t j = 0; j < n; ++j) mean += a.x(i, j) / count;
    }
    double variance = 0;
    for (int64_t j = 0; j < n; ++j) variance += (a.x(i, j) - mean) * (a.x(i, j) - mean) / count;
    const double scale = std::sqrt(variance + a.epsilon);
    for (int64_t j = 0; j < n; ++j) {
      const double weight = a.weight.data == nullptr ? 1 : a.weight(j);
      const double bias = a.bias.data == nullptr ? 0 : a.bias(j);
      a.y(i, j) = (a.x(i, j) - mean) / scale * weight + bias;
    }
    if (a.scale.data != nullptr) a.scale(i) = scale;
    if (a.mean.data != nullptr) a.mean(i) = mean;
  }
}

void norm_backward(const NormBackward<double>& a) {
  const int64_t n = a.x.size(1);
  const double count = n > 0 ? static_cast<double>(n) : 1;
  const bool centred = a.kind == NormKind::kLayerNorm;
  for (int64_t i = 0; i < a.x.size(0); ++i) {
    const auto normal = [&](int64_t j) { return (a.x(i, j) - (centred ? a.mean(i) : 0)) / a.scale(i); };
    const auto g = [&](int64_t j) { return a.dy(i, j) * (a.weight.data == nullptr ? 1 : a.weight(j)); };
    double mean_g = 0;
    double mean_gn = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (centred) mean_g += g(j) / count;
      mean_gn += g(j) * normal(j) / count;
    }
    for (int64_t j = 0; j < n; ++j) {
      if (a.dweight.data != nullptr) a.dweight(j) += a.dy(i, j) * normal(j);
      if (a.dbias.data != nullptr) a.dbias(j) += a.dy(i, j);
      const double dx = (g(j) - mean_g - normal(j) * mean_gn) / a.scale(i);
      a.dx(i, j) = (a.accumulate ? a.dx(i, j) : 0) + dx;
    }
  }
}

}  // namespace headlight::reference
