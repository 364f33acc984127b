#include "headlight/kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/check.h"
#include "kernels/rows-inl.h"
#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// The weights of a row without a number above -inf: zeros, or NaN when an entry is.
template <class T>
void softmax_of_nothing(const T* x, T* p, int64_t n) {
  T weight = T(0);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) weight = x[i];
  }
  for (int64_t i = 0; i < n; ++i) p[i] = weight;
}

template <class T>
void softmax_rows(const View<const T, 2>& x, const View<T, 2>& p, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t n = x.size(1);
  for (int64_t row = begin; row < end; ++row) {
    const T* from = x[row].data;
    T* to = p[row].data;
    const T max = row_max(d, from, n);
    if (max == -std::numeric_limits<T>::infinity()) {
      softmax_of_nothing(from, to, n);
      continue;
    }
    const auto inverse = hn::Set(d, static_cast<T>(1 / row_exp(d, from, n, max, to)));
    for_each_vector(d, n, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      part.store(d, hn::Mul(part.load(d, to + i), inverse), to + i);
    });
  }
}

// p = softmax(x):  dx = p (dp - sum of p dp)
template <class T>
void softmax_rows_backward(const View<const T, 2>& p, const View<const T, 2>& dp, const View<T, 2>& dx, int64_t begin,
                           int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t n = p.size(1);
  for (int64_t row = begin; row < end; ++row) {
    const T* weights = p[row].data;
    const T* gradient = dp[row].data;
    T* to = dx[row].data;
    const double dot = sum_in_pieces(d, n, [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY {
      s.v[0] = hn::MulAdd(part.load(d, weights + i), part.load(d, gradient + i), s.v[0]);
    });
    const auto v_dot = hn::Set(d, static_cast<T>(dot));
    for_each_vector(d, n, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      part.store(d, hn::Mul(part.load(d, weights + i), hn::Sub(part.load(d, gradient + i), v_dot)), to + i);
    });
  }
}

void softmax_float(const View<const float, 2>& x, const View<float, 2>& p, int64_t begin, int64_t end) {
  softmax_rows(x, p, begin, end);
}
void softmax_double(const View<const double, 2>& x, const View<double, 2>& p, int64_t begin, int64_t end) {
  softmax_rows(x, p, begin, end);
}
void softmax_backward_float(const View<const float, 2>& p, const View<const float, 2>& dp, const View<float, 2>& dx,
                            int64_t begin, int64_t end) {
  softmax_rows_backward(p, dp, dx, begin, end);
}
void softmax_backward_double(const View<const double, 2>& p, const View<const double, 2>& dp, const View<double, 2>& dx,
                             int64_t begin, int64_t end) {
  softmax_rows_backward(p, dp, dx, begin, end);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(softmax_float);
HWY_EXPORT(softmax_double);
HWY_EXPORT(softmax_backward_float);
HWY_EXPORT(softmax_backward_double);

auto forward_kernel(float) { return HEADLIGHT_DISPATCH(softmax_float); }
auto forward_kernel(double) { return HEADLIGHT_DISPATCH(softmax_double); }
auto backward_kernel(float) { return HEADLIGHT_DISPATCH(softmax_backward_float); }
auto backward_kernel(double) { return HEADLIGHT_DISPATCH(softmax_backward_double); }

}  // namespace

template <class T>
void softmax_forward(View<const T, 2> x, View<T, 2> p) {
  const char* const operation = "softmax_forward";
  require_unit_stride(operation, "x", x);
  require_output(operation, "p", p, x.sizes);
  require_same_or_apart(operation, "p", p, "x", x);
  const auto kernel = forward_kernel(T());
  for_row_blocks(x.size(0), x.size(1), [&](int64_t begin, int64_t end) { kernel(x, p, begin, end); });
}

template <class T>
void softmax_backward(View<const T, 2> p, View<const T, 2> dp, View<T, 2> dx) {
  const char* const operation = "softmax_backward";
  require_unit_stride(operation, "p", p);
  require_rows(operation, "dp", dp, p.sizes);
  require_output(operation, "dx", dx, p.sizes);
  require_same_or_apart(operation, "dx", dx, "p", p);
  require_same_or_apart(operation, "dx", dx, "dp", dp);
  const auto kernel = backward_kernel(T());
  for_row_blocks(p.size(0), p.size(1), [&](int64_t begin, int64_t end) { kernel(p, dp, dx, begin, end); });
}

template void softmax_forward(View<const float, 2>, View<float, 2>);
template void softmax_forward(View<const double, 2>, View<double, 2>);
template void softmax_backward(View<const float, 2>, View<const float, 2>, View<float, 2>);
template void softmax_backward(View<const double, 2>, View<const double, 2>, View<double, 2>);

}  // namespace headlight
#endif
