#include "kernels/reference/cross_entropy.h"

#include <cmath>
#include <limits>

namespace headlight::reference {

void cross_entropy(const CrossEntropy<double>& a) {
  const int64_t n = a.logits.size(1);
  for (int64_t i = 0; i < a.logits.size(0); ++i) {
    const bool ignored = a.targets(i) == kIgnoredTarget;
    double max = -std::numeric_limits<double>::infinity();
    for (int64_t v = 0; v < n; ++v) {
      if (a.logits(i, v) > max) max = a.logits(i, v);
    }
    double sum = 0;
    for (int64_t v = 0; v < n; ++v) sum += std::exp(a.logits(i, v) - max);
    if (a.loss.data != nullptr) a.loss(i) = ignored ? 0 : std::log(sum) + max - a.logits(i, a.targets(i));
    if (a.dlogits.data == nullptr) continue;
    for (int64_t v = 0; v < n; ++v) {
      const double p = std::exp(a.logits(i, v) - max) / sum;
      a.dlogits(i, v) = ignored ? 0 : a.scale * (p - (v == a.targets(i) ? 1 : 0));
    }
  }
}

}  // namespace headlight::reference
