#include "headlight/kernels/cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/check.h"
#include "kernels/rows-inl.h"
#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

template <class T>
HWY_INLINE void zero_row(T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, n, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY { part.store(d, hn::Zero(d), x + i); });
}

template <class T>
void cross_entropy_rows(const CrossEntropy<T>& a, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t n = a.logits.size(1);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = a.logits[row].data;
    T* dx = a.dlogits.data == nullptr ? nullptr : a.dlogits[row].data;
    const int64_t target = a.targets(row);
    if (target == kIgnoredTarget) {
      if (a.loss.data != nullptr) a.loss(row) = T(0);
      if (dx != nullptr) zero_row(dx, n);
      continue;
    }
    const T max = row_max(d, x, n);
    // read now: dlogits may be the logits
    const double below_max = static_cast<double>(max) - static_cast<double>(x[target]);
    const double sum = row_exp(d, x, n, max, dx);
    if (a.loss.data != nullptr) a.loss(row) = static_cast<T>(std::log(sum) + below_max);
    if (dx == nullptr) continue;
    const auto factor = hn::Set(d, static_cast<T>(static_cast<double>(a.scale) / sum));
    for_each_vector(d, n, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      part.store(d, hn::Mul(part.load(d, dx + i), factor), dx + i);
    });
    dx[target] -= a.scale;
  }
}

void cross_entropy_float(const CrossEntropy<float>& a, int64_t begin, int64_t end) {
  cross_entropy_rows(a, begin, end);
}
void cross_entropy_double(const CrossEntropy<double>& a, int64_t begin, int64_t end) {
  cross_entropy_rows(a, begin, end);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(cross_entropy_float);
HWY_EXPORT(cross_entropy_double);

auto kernel_for(float) { return HEADLIGHT_DISPATCH(cross_entropy_float); }
auto kernel_for(double) { return HEADLIGHT_DISPATCH(cross_entropy_double); }

template <class T>
void check(const CrossEntropy<T>& a) {
  const char* const operation = "cross_entropy";
  const int64_t rows = a.logits.size(0);
  const int64_t vocabulary = a.logits.size(1);
  require_unit_stride(operation, "logits", a.logits);
  require_sizes(operation, "targets", a.targets, {rows});
  if (a.loss.data != nullptr) require_sizes(operation, "loss", a.loss, {rows});
  if (a.dlogits.data != nullptr) {
    require_output(operation, "dlogits", a.dlogits, a.logits.sizes);
    require_same_or_apart(operation, "dlogits", a.dlogits, "logits", a.logits);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t target = a.targets(i);
    if (target == kIgnoredTarget || (target >= 0 && target < vocabulary)) continue;
    throw LogicError(operation, "target " + std::to_string(target) + " of row " + std::to_string(i) +
                                    "; wanted -1 (ignored) or one in [0, " + std::to_string(vocabulary) + ")");
  }
}

}  // namespace

template <class T>
void cross_entropy(const CrossEntropy<T>& a) {
  check(a);
  const auto kernel = kernel_for(T());
  for_row_blocks(a.logits.size(0), a.logits.size(1), [&](int64_t begin, int64_t end) { kernel(a, begin, end); });
}

template void cross_entropy(const CrossEntropy<float>&);
template void cross_entropy(const CrossEntropy<double>&);

}  // namespace headlight
#endif
