#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/column_sums.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "headlight/kernels/matmul.h"
#include "kernels/check.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows are summed in blocks, and the blocks' sums in order: the rounding error grows with a block's length
// and the number of blocks, not with the number of rows.
constexpr int64_t kRowsPerBlock = 64;

// kCount vectors of columns beside each other, all in registers.
template <int kCount, class D, class P, class T = hn::TFromD<D>>
HWY_INLINE void add_sums_of(D d, P part, View<const T, 2> x, T* sums) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto total = zero_sums<kCount>(d);
  for (int64_t begin = 0; begin < x.size(0); begin += kRowsPerBlock) {
    auto block = zero_sums<kCount>(d);
    const int64_t end = std::min(x.size(0), begin + kRowsPerBlock);
    for (int64_t i = begin; i < end; ++i) {
      const T* row = x.data + i * x.stride(0);
      for (int v = 0; v < kCount; ++v) block.v[v] = hn::Add(block.v[v], part.load(d, row + v * lanes));
    }
    total.merge(block);
  }
  for (int v = 0; v < kCount; ++v) {
    part.store(d, hn::Add(part.load(d, sums + v * lanes), total.v[v]), sums + v * lanes);
  }
}

constexpr int kVectorsPerTask = 4;

template <class T>
void add_sums(View<const T, 2> x, T* sums, int64_t task) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t columns = kVectorsPerTask * lanes;
  const int64_t begin = task * columns;
  const int64_t end = std::min(x.size(1), begin + columns);
  if (end - begin == columns) {
    add_sums_of<kVectorsPerTask>(d, Whole{}, x.slice(1, begin, end), sums + begin);
    return;
  }
  for_each_vector(d, end - begin, [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
    add_sums_of<1>(d, part, x.slice(1, begin + j, end), sums + begin + j);
  });
}

template <class T>
void add_all_sums(View<const T, 2> x, T* sums) {
  const int64_t columns = kVectorsPerTask * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  default_pool().run((x.size(1) + columns - 1) / columns, [&](int64_t task, int) { add_sums(x, sums, task); });
}

void add_all_sums_float(View<const float, 2> x, float* sums) { add_all_sums(x, sums); }
void add_all_sums_double(View<const double, 2> x, double* sums) { add_all_sums(x, sums); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(add_all_sums_float);
HWY_EXPORT(add_all_sums_double);

void dispatch(View<const float, 2> x, float* sums) { HEADLIGHT_DISPATCH(add_all_sums_float)(x, sums); }
void dispatch(View<const double, 2> x, double* sums) { HEADLIGHT_DISPATCH(add_all_sums_double)(x, sums); }

}  // namespace

template <class T>
void add_column_sums(View<const T, 2> x, View<T, 1> sums) {
  constexpr const char* kName = "add_column_sums";
  require_unit_stride(kName, "x", x);
  require_rows(kName, "sums", sums, {x.size(1)});
  require_apart<T>(kName, "sums", {sums.data, {1, sums.size(0)}}, "x", x);
  dispatch(x, sums.data);
}

template void add_column_sums(View<const float, 2>, View<float, 1>);
template void add_column_sums(View<const double, 2>, View<double, 1>);

}  // namespace headlight
#endif
