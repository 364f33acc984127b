// Copies a panel of b, a tile wide, so that its rows follow each other. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_
#undef HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_
#else
#define HEADLIGHT_KERNELS_MATMUL_PACK_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "headlight/tensor/view.h"
#include "kernels/half-inl.h"
#include "kernels/matmul_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors are made of blocks of 16 bytes, in which Highway's interleaving works.
template <class T>
constexpr int64_t kBlockLanes = HWY_MIN(static_cast<int64_t>(16 / sizeof(T)), kLanes<T>);
template <class T>
constexpr int64_t kBlocks = kLanes<T> / kBlockLanes<T>;

// What is fetched while a square is read, from its first element on: as many runs as it has columns.
struct Ahead {
  int64_t first;
  int64_t run;  // from one to the next
};

#if HWY_TARGET == HWY_SCALAR
template <class D, class B, class Put>
HWY_INLINE void transpose_square(D d, const B* b, int64_t, Ahead, Put put) {
  put(0, hn::Set(d, widen(*b)));
}
#else
// Transposes each of the squares that the vectors' blocks form.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_in_blocks(D d, V (&v)[4]) {
  const hn::Repartition<double, D> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, v[0], v[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, v[2], v[3]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[0], v[1]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[2], v[3]));
  v[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  v[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_in_blocks(D d, V (&v)[2]) {
  const V low = hn::InterleaveLower(d, v[0], v[1]);
  v[1] = hn::InterleaveUpper(d, v[0], v[1]);
  v[0] = low;
}

// Transposes the square of blocks that as many vectors form.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V& a, V& b, V& c, V& e) {
  const V low_ac = hn::ConcatLowerLower(d, c, a);
  const V low_be = hn::ConcatLowerLower(d, e, b);
  const V high_ac = hn::ConcatUpperUpper(d, c, a);
  const V high_be = hn::ConcatUpperUpper(d, e, b);
  a = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low_be), low_ac);
  b = hn::OddEvenBlocks(low_be, hn::SwapAdjacentBlocks(low_ac));
  c = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high_be), high_ac);
  e = hn::OddEvenBlocks(high_be, hn::SwapAdjacentBlocks(high_ac));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V& a, V& b) {
  const V low = hn::ConcatLowerLower(d, b, a);
  b = hn::ConcatUpperUpper(d, b, a);
  a = low;
}

// Calls put(i, row i of b) for i < lanes in rising order, rows of as many elements, where columns of b have unit stride
// and are `column` apart.
template <class D, class B, class Put>
HWY_INLINE void transpose_square(D d, const B* b, int64_t column, Ahead ahead, Put put) {
  using T = hn::TFromD<D>;
  hn::Vec<D> v[kBlocks<T>][kBlockLanes<T>];
  for (int64_t g = 0; g < kBlocks<T>; ++g) {
    for (int64_t q = 0; q < kBlockLanes<T>; ++q) {
      const int64_t j = g * kBlockLanes<T> + q;
      hwy::Prefetch(b + ahead.first + j * ahead.run);
      v[g][q] = load_wide(d, b + j * column);
    }
    transpose_in_blocks(d, v[g]);
  }
  for (int64_t q = 0; q < kBlockLanes<T>; ++q) {
    if constexpr (kBlocks<T> == 4) transpose_blocks(d, v[0][q], v[1][q], v[2][q], v[3][q]);
    if constexpr (kBlocks<T> == 2) transpose_blocks(d, v[0][q], v[1][q]);
  }
  for (int64_t g = 0; g < kBlocks<T>; ++g) {
    for (int64_t q = 0; q < kBlockLanes<T>; ++q) put(g * kBlockLanes<T> + q, v[g][q]);
  }
}
#endif

// A vector of a row of b, widened; lanes beyond its end hold 0.
template <class D, class P, class B>
HWY_INLINE hn::Vec<D> load_part(D d, P part, const B* from) {
  if constexpr (std::is_same_v<B, hn::TFromD<D>>) {
    return part.load(d, from);
  } else if constexpr (std::is_same_v<P, Whole>) {
    return load_wide(d, from);
  } else {
    B end[HWY_MAX_BYTES / sizeof(float)] = {};
    std::copy(from, from + part.count, end);
    return load_wide(d, end);
  }
}

// Rows [first, end), one element after the other, from column `column` on, and 0 in the columns up to `width`.
template <class T, class B>
void pack_elements(View<const B, 2> b, int64_t first, int64_t end, int64_t column, int64_t width, T* to) {
  for (int64_t i = first; i < end; ++i) {
    for (int64_t j = column; j < width; ++j) to[i * width + j] = j < b.size(1) ? widen(b(i, j)) : T(0);
  }
}

template <class T, class B>
void pack_transposed(View<const B, 2> b, int64_t width, T* to) {
  const TileTag<T> d;
  const int64_t rows = b.size(0) / kLanes<T> * kLanes<T>;
  const int64_t columns = b.size(1) / kLanes<T> * kLanes<T>;
  for (int64_t j = 0; j < columns; j += kLanes<T>) {
    for (int64_t i = 0; i < rows; i += kLanes<T>) {
      transpose_square(d, b.data + i + j * b.stride(1), b.stride(1), {kLanes<T> * b.stride(1), b.stride(1)},
                       [&](int64_t row, auto v) HEADLIGHT_LOOP_BODY { hn::StoreU(v, d, to + (i + row) * width + j); });
    }
  }
  pack_elements(b, 0, rows, columns, width, to);
  pack_elements(b, rows, b.size(0), 0, width, to);
}

template <class T, class B>
void pack_rows(View<const B, 2> b, int64_t width, T* to) {
  const TileTag<T> d;
  for (int64_t i = 0; i < b.size(0); ++i) {
    const B* from = b.data + i * b.stride(0);
    T* row = to + i * width;
    for_each_vector(d, b.size(1), [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
      hn::StoreU(load_part(d, part, from + j), d, row + j);
    });
  }
}

// to(i, j) = b(i, j) in rows of `width`: as many whole vectors as the columns of b need; 0 beyond these.
template <class T, class B>
void pack_panel(View<const B, 2> b, int64_t width, T* to) {
  if (b.stride(1) == 1) {
    pack_rows(b, width, to);
  } else if (b.stride(0) == 1) {
    pack_transposed(b, width, to);
  } else {
    pack_elements(b, 0, b.size(0), 0, width, to);
  }
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
