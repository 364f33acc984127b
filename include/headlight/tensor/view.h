#pragma once
// View borrows, Buffer owns. A View is a pointer, sizes and strides (in elements); it is passed by value
// and any stride is legal, 0 (broadcast) and negative included.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {

template <class T, int Rank>
struct View {
  static_assert(Rank >= 1);
  T* data = nullptr;
  std::array<int64_t, Rank> sizes{};
  std::array<int64_t, Rank> strides{};  // in elements

  View() = default;
  View(T* d, const std::array<int64_t, Rank>& n, const std::array<int64_t, Rank>& s) : data(d), sizes(n), strides(s) {}
  // Packed row-major.
  View(T* d, const std::array<int64_t, Rank>& n) : data(d), sizes(n) {
    int64_t step = 1;
    for (int i = Rank - 1; i >= 0; --i) {
      strides[i] = step;
      step *= n[i];
    }
  }
  // A view of mutable elements serves where one of constant elements is wanted.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T> && !std::is_const_v<U>>>
  View(const View<U, Rank>& other)  // NOLINT: implicit like T* to const T*
      : data(other.data), sizes(other.sizes), strides(other.strides) {}

  int64_t size(int dim) const { return sizes[static_cast<std::size_t>(dim)]; }
  int64_t stride(int dim) const { return strides[static_cast<std::size_t>(dim)]; }

  int64_t count() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  bool empty() const { return count() == 0; }

  template <class... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank);
    const int64_t at[] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int i = 0; i < Rank; ++i) offset += at[i] * strides[i];
    return data[offset];
  }

  // The i-th member along the first dimension.
  template <int R = Rank, class = std::enable_if_t<(R > 1)>>
  View<T, R - 1> operator[](int64_t i) const {
    View<T, R - 1> out;
    out.data = data + i * strides[0];
    for (int d = 1; d < Rank; ++d) {
      out.sizes[d - 1] = sizes[d];
      out.strides[d - 1] = strides[d];
    }
    return out;
  }

  // [begin, end) of one dimension.
  View slice(int dim, int64_t begin, int64_t end) const {
    View out = *this;
    out.data += begin * strides[dim];
    out.sizes[dim] = end - begin;
    return out;
  }

  View swap(int a, int b) const {
    View out = *this;
    std::swap(out.sizes[a], out.sizes[b]);
    std::swap(out.strides[a], out.strides[b]);
    return out;
  }

  // Splits dimension `dim` into (outer, size / outer). size must be a multiple of outer.
  View<T, Rank + 1> split(int dim, int64_t outer) const {
    View<T, Rank + 1> out;
    out.data = data;
    const int64_t inner = outer == 0 ? 0 : sizes[dim] / outer;
    for (int i = 0, o = 0; i < Rank; ++i) {
      if (i == dim) {
        out.sizes[o] = outer;
        out.strides[o++] = inner * strides[i];
        out.sizes[o] = inner;
        out.strides[o++] = strides[i];
      } else {
        out.sizes[o] = sizes[i];
        out.strides[o++] = strides[i];
      }
    }
    return out;
  }

  bool is_packed() const {
    int64_t step = 1;
    for (int i = Rank - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != step) return false;
      step *= sizes[i];
    }
    return true;
  }
};

// "(2,8,4,64)"
template <class T, int Rank>
std::string shape_text(const View<T, Rank>& view) {
  std::string text = "(";
  for (int i = 0; i < Rank; ++i) text += (i ? "," : "") + std::to_string(view.sizes[i]);
  return text + ")";
}

// n[0] * n[1] * ... as bytes of elements of `element` bytes. Throws LogicError on a negative size or when
// the product does not fit into 63 bits.
template <std::size_t N>
int64_t checked_bytes(const std::string& operation, const std::array<int64_t, N>& sizes, int64_t element) {
  int64_t bytes = element;
  for (int64_t n : sizes) {
    if (n < 0) throw LogicError(operation, "size " + std::to_string(n) + " is negative");
    if (__builtin_mul_overflow(bytes, n, &bytes)) throw LogicError(operation, "sizes overflow 63 bits");
  }
  return bytes;
}

}  // namespace headlight
