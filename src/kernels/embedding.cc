#include "headlight/kernels/embedding.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/check.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// y_i = table[index_i], or y_i += it, for rows [begin, end)
template <class T>
void gather_rows(const View<const int32_t, 1>& index, const View<const T, 2>& table, const View<T, 2>& y,
                 bool accumulate, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  for (int64_t row = begin; row < end; ++row) {
    const T* from = table[index(row)].data;
    T* to = y[row].data;
    if (accumulate) {
      for_each_vector(d, y.size(1), [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
        part.store(d, hn::Add(part.load(d, to + i), part.load(d, from + i)), to + i);
      });
    } else {
      for_each_vector(d, y.size(1),
                      [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY { part.store(d, part.load(d, from + i), to + i); });
    }
  }
}

// dtable[index_i] += dy_i for all rows in order
template <class T>
void scatter_rows(const View<const int32_t, 1>& index, const View<const T, 2>& dy, const View<T, 2>& dtable) {
  const hn::ScalableTag<T> d;
  for (int64_t row = 0; row < dy.size(0); ++row) {
    const T* from = dy[row].data;
    T* to = dtable[index(row)].data;
    for_each_vector(d, dy.size(1), [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      part.store(d, hn::Add(part.load(d, to + i), part.load(d, from + i)), to + i);
    });
  }
}

void gather_rows_float(const View<const int32_t, 1>& index, const View<const float, 2>& table, const View<float, 2>& y,
                       bool accumulate, int64_t begin, int64_t end) {
  gather_rows(index, table, y, accumulate, begin, end);
}
void gather_rows_double(const View<const int32_t, 1>& index, const View<const double, 2>& table,
                        const View<double, 2>& y, bool accumulate, int64_t begin, int64_t end) {
  gather_rows(index, table, y, accumulate, begin, end);
}
void scatter_rows_float(const View<const int32_t, 1>& index, const View<const float, 2>& dy,
                        const View<float, 2>& dtable) {
  scatter_rows(index, dy, dtable);
}
void scatter_rows_double(const View<const int32_t, 1>& index, const View<const double, 2>& dy,
                         const View<double, 2>& dtable) {
  scatter_rows(index, dy, dtable);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(gather_rows_float);
HWY_EXPORT(gather_rows_double);
HWY_EXPORT(scatter_rows_float);
HWY_EXPORT(scatter_rows_double);

auto gather(float) { return HEADLIGHT_DISPATCH(gather_rows_float); }
auto gather(double) { return HEADLIGHT_DISPATCH(gather_rows_double); }
auto scatter(float) { return HEADLIGHT_DISPATCH(scatter_rows_float); }
auto scatter(double) { return HEADLIGHT_DISPATCH(scatter_rows_double); }

// The backward's tasks take ranges of columns: about eight, wide enough to be read at a good rate, in whole
// cache lines.
constexpr int64_t kRanges = 8;
constexpr int64_t kNarrowest = 64;
constexpr int64_t kLine = 16;

void require_indices(const char* operation, const View<const int32_t, 1>& index, int64_t table_rows) {
  for (int64_t i = 0; i < index.size(0); ++i) {
    if (index(i) < 0 || index(i) >= table_rows) {
      throw LogicError(operation, "index " + std::to_string(index(i)) + " of row " + std::to_string(i) +
                                      "; wanted one in [0, " + std::to_string(table_rows) + ")");
    }
  }
}

}  // namespace

template <class T>
void embedding_forward(View<const int32_t, 1> index, View<const T, 2> table, View<T, 2> y, bool accumulate) {
  require_unit_stride("embedding_forward", "table", table);
  require_output("embedding_forward", "y", y, {index.size(0), table.size(1)});
  require_apart("embedding_forward", "y", y, "table", table);
  require_indices("embedding_forward", index, table.size(0));
  const auto kernel = gather(T());
  for_row_blocks(y.size(0), y.size(1),
                 [&](int64_t begin, int64_t end) { kernel(index, table, y, accumulate, begin, end); });
}

template <class T>
void embedding_backward(View<const int32_t, 1> index, View<const T, 2> dy, View<T, 2> dtable) {
  require_rows("embedding_backward", "dy", dy, {index.size(0), dtable.size(1)});
  require_output("embedding_backward", "dtable", dtable, dtable.sizes);
  require_apart("embedding_backward", "dtable", dtable, "dy", dy);
  require_indices("embedding_backward", index, dtable.size(0));
  const auto kernel = scatter(T());
  const int64_t columns = dy.size(1);
  const int64_t width = std::max(kNarrowest, (columns / kRanges + kLine - 1) / kLine * kLine);
  default_pool().run((columns + width - 1) / width, [&](int64_t task, int) {
    const int64_t begin = task * width;
    const int64_t end = std::min(columns, begin + width);
    kernel(index, dy.slice(1, begin, end), dtable.slice(1, begin, end));
  });
}

template void embedding_forward(View<const int32_t, 1>, View<const float, 2>, View<float, 2>, bool);
template void embedding_forward(View<const int32_t, 1>, View<const double, 2>, View<double, 2>, bool);
template void embedding_backward(View<const int32_t, 1>, View<const float, 2>, View<float, 2>);
template void embedding_backward(View<const int32_t, 1>, View<const double, 2>, View<double, 2>);

}  // namespace headlight
#endif
