#include "headlight/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/check.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// z = x + y for rows [begin, end)
template <class T>
void add_rows(const View<const T, 2>& x, const View<const T, 2>& y, const View<T, 2>& z, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  for (int64_t row = begin; row < end; ++row) {
    const T* left = x[row].data;
    const T* right = y[row].data;
    T* to = z[row].data;
    for_each_vector(d, z.size(1), [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      part.store(d, hn::Add(part.load(d, left + i), part.load(d, right + i)), to + i);
    });
  }
}

void add_float(const View<const float, 2>& x, const View<const float, 2>& y, const View<float, 2>& z, int64_t begin,
               int64_t end) {
  add_rows(x, y, z, begin, end);
}
void add_double(const View<const double, 2>& x, const View<const double, 2>& y, const View<double, 2>& z, int64_t begin,
                int64_t end) {
  add_rows(x, y, z, begin, end);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(add_float);
HWY_EXPORT(add_double);

auto kernel_for(float) { return HEADLIGHT_DISPATCH(add_float); }
auto kernel_for(double) { return HEADLIGHT_DISPATCH(add_double); }

}  // namespace

template <class T>
void add(View<const T, 2> x, View<const T, 2> y, View<T, 2> z) {
  require_rows("add", "x", x, z.sizes);
  require_rows("add", "y", y, z.sizes);
  require_output("add", "z", z, z.sizes);
  require_same_or_apart("add", "z", z, "x", x);
  require_same_or_apart("add", "z", z, "y", y);
  const auto kernel = kernel_for(T());
  for_row_blocks(z.size(0), z.size(1), [&](int64_t begin, int64_t end) { kernel(x, y, z, begin, end); });
}

template void add(View<const float, 2>, View<const float, 2>, View<float, 2>);
template void add(View<const double, 2>, View<const double, 2>, View<double, 2>);

}  // namespace headlight
#endif
