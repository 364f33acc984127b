// Copies a panel of b, a tile wide, so that its rows follow each other. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_
#undef HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_
#else
#define HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "headlight/tensor/view.h"
#include "kernels/matmul_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The lanes that Highway's interleaving works on: those of 16 bytes.
template <class T>
constexpr int64_t kBlockLanes = HWY_MIN(static_cast<int64_t>(16 / sizeof(T)), kLanes<T>);

#if HWY_TARGET == HWY_SCALAR
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void transpose_strip(D, const T* b, int64_t, T* to, int64_t) {
  *to = *b;
}
#else
// One block from each of lanes / kBlockLanes columns that are `apart` elements from each other.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* from, int64_t apart) {
  constexpr int64_t kBlocks = static_cast<int64_t>(hn::MaxLanes(d)) / kBlockLanes<T>;
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, from + (kBlocks / 2) * apart, apart), load_blocks(half, from, apart));
  }
}

// to(i, j) = b(i, j) for i < kBlockLanes and a vector of columns j, where columns of b have unit stride.
template <class D>
HWY_INLINE void transpose_strip(D d, const float* b, int64_t column, float* to, int64_t to_row) {
  const hn::Repartition<double, D> pairs;
  // v0 has columns 0, 4, 8, ..., v1 those after them, and so on
  const auto v0 = load_blocks(d, b, 4 * column);
  const auto v1 = load_blocks(d, b + column, 4 * column);
  const auto v2 = load_blocks(d, b + 2 * column, 4 * column);
  const auto v3 = load_blocks(d, b + 3 * column, 4 * column);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, v0, v1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, v2, v3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, v0, v1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, v2, v3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_row);
}

template <class D>
HWY_INLINE void transpose_strip(D d, const double* b, int64_t column, double* to, int64_t to_row) {
  const auto v0 = load_blocks(d, b, 2 * column);
  const auto v1 = load_blocks(d, b + column, 2 * column);
  hn::StoreU(hn::InterleaveLower(d, v0, v1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, v0, v1), d, to + to_row);
}
#endif

// Elements of rows [first, end) and columns [0, columns) one by one, and 0 in the columns up to `width`.
template <class T>
void pack_elements(View<const T, 2> b, int64_t first, int64_t end, int64_t columns, int64_t width, T* to) {
  for (int64_t i = first; i < end; ++i) {
    for (int64_t j = 0; j < width; ++j) to[i * width + j] = j < columns ? b(i, j) : T(0);
  }
}

template <class T>
void pack_transposed(View<const T, 2> b, int64_t width, T* to) {
  const TileTag<T> d;
  const int64_t whole = b.size(0) / kBlockLanes<T> * kBlockLanes<T>;
  for (int64_t i = 0; i < whole; i += kBlockLanes<T>) {
    for (int64_t j = 0; j < width; j += kLanes<T>) {
      transpose_strip(d, b.data + i + j * b.stride(1), b.stride(1), to + i * width + j, width);
    }
  }
  pack_elements(b, whole, b.size(0), width, width, to);
}

template <class T>
void pack_rows(View<const T, 2> b, int64_t width, T* to) {
  const TileTag<T> d;
  for (int64_t i = 0; i < b.size(0); ++i) {
    const T* from = b.data + i * b.stride(0);
    for (int64_t j = 0; j < width; j += kLanes<T>) hn::StoreU(hn::LoadU(d, from + j), d, to + i * width + j);
  }
}

// to(i, j) = b(i, j) in rows of `width`, whole vectors and at least the columns of b; 0 beyond them.
template <class T>
void pack_panel(View<const T, 2> b, int64_t width, T* to) {
  if (b.size(1) < width) {
    pack_elements(b, 0, b.size(0), b.size(1), width, to);
  } else if (b.stride(0) == 1) {
    pack_transposed(b, width, to);
  } else if (b.stride(1) == 1) {
    pack_rows(b, width, to);
  } else {
    pack_elements(b, 0, b.size(0), width, width, to);
  }
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
