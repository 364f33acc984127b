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

// Whether two matrices of packed rows share an element. Memory that interleaves rows of different strides
// counts as apart.
template <class T>
bool share_elements(const View<const T, 2>& a, const View<const T, 2>& b) {
  if (a.empty() || b.empty()) return false;
  const auto first = [](const View<const T, 2>& v) {
    return v.data + std::min<int64_t>(0, (v.size(0) - 1) * v.stride(0));
  };
  const auto end = [](const View<const T, 2>& v) {
    return v.data + std::max<int64_t>(0, (v.size(0) - 1) * v.stride(0)) + v.size(1);
  };
  if (end(a) <= first(b) || end(b) <= first(a)) return false;
  if (a.size(0) == 1 && b.size(0) == 1) return true;
  // rows as far apart in both: they lie beside each other when the shift between them leaves room
  const int64_t stride = std::abs(a.size(0) == 1 ? b.stride(0) : a.stride(0));
  if (stride == 0 || (b.size(0) > 1 && std::abs(b.stride(0)) != stride)) return same_view(a, b);
  const int64_t shift = (((b.data - a.data) % stride) + stride) % stride;
  return shift < a.size(1) || shift + b.size(1) > stride;
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
