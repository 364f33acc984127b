#pragma once
// Preconditions of the kernels, checked before anything is written, and the split of rows into tasks.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "headlight/tensor/view.h"

namespace headlight {

// The last dimension is packed.
template <class T, int Rank>
void require_unit_stride(const char* operation, const char* name, const View<T, Rank>& view) {
  if (view.sizes[Rank - 1] > 1 && view.strides[Rank - 1] != 1) {
    throw LogicError(operation, std::string(name) + " " + shape_text(view) + " has elements " +
                                    std::to_string(view.strides[Rank - 1]) + " apart; wanted rows of unit stride");
  }
}

template <class T, int Rank>
void require_sizes(const char* operation, const char* name, const View<T, Rank>& view,
                   const std::type_identity_t<std::array<int64_t, Rank>>& wanted) {
  if (view.sizes != wanted) {
    throw LogicError(operation, std::string(name) + " " + shape_text(view) + "; wanted " +
                                    shape_text(View<const T, Rank>(nullptr, wanted)));
  }
}

// An input of the wanted sizes with a packed last dimension.
template <class T, int Rank>
void require_rows(const char* operation, const char* name, const View<T, Rank>& view,
                  const std::type_identity_t<std::array<int64_t, Rank>>& wanted) {
  require_sizes(operation, name, view, wanted);
  require_unit_stride(operation, name, view);
}

// An output of the wanted sizes with packed rows that do not overlap each other.
template <class T>
void require_output(const char* operation, const char* name, const View<T, 2>& view,
                    const std::array<int64_t, 2>& wanted) {
  require_rows(operation, name, view, wanted);
  if (view.size(0) > 1 && std::abs(view.stride(0)) < view.size(1)) {
    throw LogicError(operation, std::string(name) + " " + shape_text(view) + " has rows " +
                                    std::to_string(view.stride(0)) + " elements apart, which overlap");
  }
}

// Whether two matrices of packed rows are one and the same.
template <class T>
bool same_view(const View<const T, 2>& a, const View<const T, 2>& b) {
  return a.data == b.data && a.sizes == b.sizes && (a.strides[0] == b.strides[0] || a.size(0) == 1);
}

// The rows of a matrix in rising order of their addresses; equal rows count once.
template <class T>
struct RowSpan {
  const T* first;
  int64_t rows;
  int64_t apart;  // from the start of a row to the next; 1 for a single row
  int64_t width;

  explicit RowSpan(const View<const T, 2>& v)
      : first(v.data + std::min<int64_t>(0, (v.size(0) - 1) * v.stride(0))),
        rows(v.stride(0) == 0 ? 1 : v.size(0)),
        apart(rows == 1 ? 1 : std::abs(v.stride(0))),
        width(v.size(1)) {}
  const T* end() const { return first + (rows - 1) * apart + width; }
  // whether [from, from + size), counted from `first`, meets a row
  bool meets(int64_t from, int64_t size) const {
    const int64_t row = from < width ? 0 : (from - width) / apart + 1;
    return row < rows && row * apart < from + size;
  }
};

// Whether two matrices of packed rows share an element.
template <class T>
bool share_elements(const View<const T, 2>& x, const View<const T, 2>& y) {
  if (x.empty() || y.empty()) return false;
  const RowSpan<T> a(x);
  const RowSpan<T> b(y);
  if (a.end() <= b.first || b.end() <= a.first) return false;
  if (a.rows == 1) return b.meets(a.first - b.first, a.width);
  const int64_t offset = b.first - a.first;
  if (a.apart == b.apart && std::max(a.width, b.width) <= a.apart) {
    // every row of b begins as far from the start of a row of a, its neighbour of before, and may reach the next
    const int64_t shift = ((offset % a.apart) + a.apart) % a.apart;
    const int64_t row = (offset - shift) / a.apart;
    return (shift < a.width && row < a.rows && row + b.rows > 0) ||
           (shift + b.width > a.apart && row + 1 < a.rows && row + 1 + b.rows > 0);
  }
  for (int64_t i = 0; i < b.rows; ++i) {
    if (a.meets(offset + i * b.apart, b.width)) return true;
  }
  return false;
}

// `output` is `input` itself or shares nothing with it.
template <class T>
void require_same_or_apart(const char* operation, const char* output_name, const View<T, 2>& output,
                           const char* input_name, const View<const T, 2>& input) {
  if (share_elements<T>(output, input) && !same_view<T>(output, input)) {
    throw LogicError(operation, std::string(output_name) + " overlaps " + input_name + " in part; wanted " +
                                    output_name + " to be " + input_name + " itself or apart from it");
  }
}

template <class T>
void require_apart(const char* operation, const char* name, const View<T, 2>& output, const char* other_name,
                   const std::type_identity_t<View<const T, 2>>& other) {
  if (share_elements<T>(output, other)) {
    throw LogicError(operation, std::string(name) + " overlaps " + other_name + "; wanted them apart");
  }
}

// Elements per task of the elementwise and row kernels: some microseconds of work.
constexpr int64_t kElementsPerTask = 16384;

// Calls work(begin, end) for blocks of rows of `width` elements on the default pool.
template <class Work>
void for_row_blocks(int64_t rows, int64_t width, const Work& work) {
  const int64_t per_task = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, width));
  default_pool().run((rows + per_task - 1) / per_task,
                     [&](int64_t task, int) { work(task * per_task, std::min(rows, (task + 1) * per_task)); });
}

}  // namespace headlight
