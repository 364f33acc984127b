#include "headlight/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "headlight/base/thread_pool.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void add_row(const T* x, const T* y, T* z, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, z + i);
  for (; i < n; ++i) z[i] = x[i] + y[i];
}

void add_row_float(const float* x, const float* y, float* z, int64_t n) { add_row(x, y, z, n); }
void add_row_double(const double* x, const double* y, double* z, int64_t n) { add_row(x, y, z, n); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(add_row_float);
HWY_EXPORT(add_row_double);

void dispatch(const float* x, const float* y, float* z, int64_t n) { HEADLIGHT_DISPATCH(add_row_float)(x, y, z, n); }
void dispatch(const double* x, const double* y, double* z, int64_t n) {
  HEADLIGHT_DISPATCH(add_row_double)(x, y, z, n);
}

constexpr int64_t kRowsPerTask = 64;

}  // namespace

template <class T>
void add(View<const T, 2> x, View<const T, 2> y, View<T, 2> z) {
  if (x.sizes != y.sizes || x.sizes != z.sizes) {
    throw LogicError("add", "x " + shape_text(x) + ", y " + shape_text(y) + ", z " + shape_text(z) + " differ");
  }
  const int64_t rows = x.size(0);
  default_pool().run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (int64_t i = task * kRowsPerTask; i < end; ++i) {
      dispatch(x[i].data, y[i].data, z[i].data, x.size(1));
    }
  });
}

template void add(View<const float, 2>, View<const float, 2>, View<float, 2>);
template void add(View<const double, 2>, View<const double, 2>, View<double, 2>);

}  // namespace headlight
#endif
