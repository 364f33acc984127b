// What all of attention computes with: one product, and packing.
//
// Lanes are queries. A block of rows is held transposed, [column][lane], and a tile of scores as [key][lane]:
// every product is then "vector of lanes times a broadcast number of K or V", rows never mix, and no size of
// head or number of keys needs padding.

#if defined(HEADLIGHT_KERNELS_ATTENTION_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_PRODUCT_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_PRODUCT_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "headlight/tensor/view.h"
#include "kernels/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;

template <class T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

// The register tile of the products: kVectors vectors times kBroadcasts broadcast numbers. Accumulators fill
// the registers of the instruction set but for those vectors and one broadcast.
#if HWY_TARGET == HWY_AVX3
constexpr int kVectors = 2, kBroadcasts = 12;
#elif HWY_TARGET == HWY_NEON
constexpr int kVectors = 4, kBroadcasts = 6;
#else
constexpr int kVectors = 2, kBroadcasts = 6;
#endif

// Query rows of a block.
template <class T>
constexpr int64_t kBlockRows = kLanes<T>* kVectors;

template <class T>
constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

// ---- reading ahead -----------------------------------------------------------------------------------------

// Rows that are needed soon. Heads lie side by side in memory, so a row of one is a few lines, and the next row
// is too far for the processor to foresee. The products ask for some lines between their register tiles.
class ReadAhead {
 public:
  // What is added last is asked for first.
  template <class T>
  void add(View<T, 2> rows) {
    if (count_ == kMost || rows.empty()) return;
    const auto element = static_cast<int64_t>(sizeof(T));
    spans_[count_++] = {reinterpret_cast<const char*>(rows.data), rows.stride(0) * element, rows.size(0),
                        (rows.size(1) * element + kLine - 1) / kLine};
  }
  void clear() { count_ = 0; }

  // Asks for the next lines.
  HWY_INLINE void step() {
    if (count_ != 0) ask();
  }

 private:
  static constexpr int kMost = 8;
  static constexpr int64_t kLine = 64, kLinesPerStep = 16;
  struct Span {
    const char* row;
    int64_t stride, rows, lines;
  };

  void ask() {
    for (int64_t asked = 0; asked < kLinesPerStep && count_ != 0;) {
      Span& span = spans_[count_ - 1];
      for (int64_t i = 0; i < span.lines; ++i) __builtin_prefetch(span.row + i * kLine);
      asked += span.lines;
      span.row += span.stride;
      if (--span.rows == 0) --count_;
    }
  }

  Span spans_[kMost];
  int count_ = 0;
};

// ---- the product -------------------------------------------------------------------------------------------

// The broadcast operand a(u, s): numbers of one step, or steps of one number, follow each other in memory.
template <class T>
struct RowsOfSteps {
  const T* data;
  int64_t row;
  HWY_INLINE T at(int u, int64_t s) const { return data[u * row + s]; }
  RowsOfSteps from(int64_t u) const { return {data + u * row, row}; }
};
template <class T>
struct StepsOfRows {
  const T* data;
  int64_t step;
  HWY_INLINE T at(int u, int64_t s) const { return data[s * step + u]; }
  StepsOfRows from(int64_t u) const { return {data + u, step}; }
};

enum class Into { kSet, kAdd };

// c(u, v) = (c(u, v) or 0) + sum over s of a(u, s) b(s, v), one chain of additions in rising s for each
// element: the result does not depend on how rows and steps are cut into calls.
template <int kRows, int kCols, Into kInto, class T, class A>
HWY_INLINE void multiply_registers(A a, const T* HWY_RESTRICT b, int64_t b_step, int64_t steps, T* HWY_RESTRICT c,
                                   int64_t c_row) {
  const Tag<T> d;
  Vec<T> sum[kRows][kCols];
  for (int u = 0; u < kRows; ++u) {
    for (int v = 0; v < kCols; ++v) {
      sum[u][v] = kInto == Into::kAdd ? hn::Load(d, c + u * c_row + v * kLanes<T>) : hn::Zero(d);
    }
  }
  for (int64_t s = 0; s < steps; ++s) {
    Vec<T> x[kCols];
    for (int v = 0; v < kCols; ++v) x[v] = hn::Load(d, b + s * b_step + v * kLanes<T>);
    for (int u = 0; u < kRows; ++u) {
      const Vec<T> factor = hn::Set(d, a.at(u, s));
      for (int v = 0; v < kCols; ++v) sum[u][v] = hn::MulAdd(factor, x[v], sum[u][v]);
    }
  }
  for (int u = 0; u < kRows; ++u) {
    for (int v = 0; v < kCols; ++v) hn::Store(sum[u][v], d, c + u * c_row + v * kLanes<T>);
  }
}

// whole register tiles first, then ever smaller ones
template <int kRows, int kCols, Into kInto, class T, class A>
HWY_NOINLINE void multiply_rows(A a, int64_t rows, const T* b, int64_t b_step, int64_t steps, T* c, int64_t c_row,
                                ReadAhead& ahead) {
  int64_t u = 0;
  // 16 rows are two tiles of 8 rather than 12 and 4: the smallest tiles wait for their own sums
  constexpr int64_t kSplit = kRows > 4 ? kRows + kRows / 3 : 0;
  for (; u + kRows <= rows && rows - u != kSplit; u += kRows) {
    multiply_registers<kRows, kCols, kInto>(a.from(u), b, b_step, steps, c + u * c_row, c_row);
    ahead.step();
  }
  if constexpr (kRows > 1) {
    constexpr int kNext = kRows > 8 ? 8 : kRows > 4 ? 4 : kRows / 2;
    if (u < rows)
      multiply_rows<kNext, kCols, kInto>(a.from(u), rows - u, b, b_step, steps, c + u * c_row, c_row, ahead);
  }
}

// a: rows x steps; b: steps x vectors, aligned; c: rows x vectors, aligned.
template <Into kInto, class T, class A>
void multiply(A a, int64_t rows, const T* b, int64_t b_step, int64_t vectors, int64_t steps, T* c, int64_t c_row,
              ReadAhead& ahead) {
  int64_t v = 0;
  for (; v + kVectors <= vectors; v += kVectors) {
    multiply_rows<kBroadcasts, kVectors, kInto>(a, rows, b + v * kLanes<T>, b_step, steps, c + v * kLanes<T>, c_row,
                                                ahead);
  }
  for (; v < vectors; ++v) {
    multiply_rows<kBroadcasts, 1, kInto>(a, rows, b + v * kLanes<T>, b_step, steps, c + v * kLanes<T>, c_row, ahead);
  }
}

// ---- packing -----------------------------------------------------------------------------------------------

// Columns rounded up to whole vectors: the row length of packed rows.
template <class T>
constexpr int64_t padded(int64_t columns) {
  return (columns + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// to[row][c] = factor * from(row, c) in rows of padded(columns), the end of each 0. Says whether all are finite.
// From here on numbers are of the type they are computed in, whatever type S stores them.
template <class S>
bool load_rows(View<const S, 2> from, Accumulator<S> factor, Accumulator<S>* HWY_RESTRICT to) {
  using T = Accumulator<S>;
  const Tag<T> d;
  const int64_t rows = from.size(0), columns = from.size(1), width = padded<T>(columns);
  const int64_t whole = from.stride(1) == 1 ? columns / kLanes<T> * kLanes<T> : 0;
  const Vec<T> times = hn::Set(d, factor);
  // 0 * x is 0 or, for infinities and NaN, NaN
  Vec<T> zeros = hn::Zero(d);
  for (int64_t i = 0; i < rows; ++i) {
    const S* in = from.data + i * from.stride(0);
    for (int64_t c = 0; c < whole; c += kLanes<T>) {
      const Vec<T> x = hn::Mul(load_wide(d, in + c), times);
      zeros = hn::MulAdd(x, hn::Zero(d), zeros);
      hn::Store(x, d, to + i * width + c);
    }
  }
  for (int64_t i = 0; i < rows && whole < width; ++i) {
    T* out = to + i * width;
    for (int64_t c = whole; c < columns; ++c) out[c] = factor * widen(from(i, c));
    for (int64_t c = columns; c < width; ++c) out[c] = T(0);
    for (int64_t c = whole; c < width; c += kLanes<T>) {
      zeros = hn::MulAdd(hn::Load(d, out + c), hn::Zero(d), zeros);
    }
  }
  return hn::AllTrue(d, hn::Eq(zeros, zeros));
}

// Rows [from, end) of `rows` as the products can read them: where they lie or, when they are stored in another type or
// their columns are apart, packed into `memory` for all of `rows`.
template <class S>
RowsOfSteps<Accumulator<S>> readable(View<const S, 2> rows, int64_t from, Accumulator<S>* memory) {
  using T = Accumulator<S>;
  if constexpr (std::is_same_v<S, T>) {
    if (rows.stride(1) == 1) return {rows.data, rows.stride(0)};
  }
  const int64_t width = padded<T>(rows.size(1));
  load_rows(rows.slice(0, from, rows.size(0)), T(1), memory + from * width);
  return {memory, width};
}

// to(row, c) = factors[row * step] * from[row][c] + 0, from rows of padded(columns). The sum with 0 turns -0 into
// 0: terms of weight 0, which are there or not depending on the tiles visited, cannot change the sign.
template <class S>
void store_rows(const Accumulator<S>* HWY_RESTRICT from, const Accumulator<S>* factors, int64_t step, View<S, 2> to) {
  using T = Accumulator<S>;
  const Tag<T> d;
  const int64_t rows = to.size(0), columns = to.size(1), width = padded<T>(columns);
  const int64_t whole = to.stride(1) == 1 ? columns / kLanes<T> * kLanes<T> : 0;
  for (int64_t i = 0; i < rows; ++i) {
    S* out = to.data + i * to.stride(0);
    const Vec<T> factor = hn::Set(d, factors[i * step]);
    for (int64_t c = 0; c < whole; c += kLanes<T>) {
      store_narrow(d, hn::MulAdd(hn::Load(d, from + i * width + c), factor, hn::Zero(d)), out + c);
    }
  }
  for (int64_t i = 0; i < rows && whole < columns; ++i) {
    for (int64_t c = whole; c < columns; ++c) {
      to(i, c) = narrow<S>(factors[i * step] * from[i * width + c] + T(0));
    }
  }
}
template <class S>
void store_rows(const Accumulator<S>* from, Accumulator<S> factor, View<S, 2> to) {
  store_rows(from, &factor, 0, to);
}

template <class S>
void store_zeros(View<S, 2> to) {
  for (int64_t i = 0; i < to.size(0); ++i) {
    if (to.stride(1) == 1) {
      std::fill_n(to.data + i * to.stride(0), to.size(1), S{});
    } else {
      for (int64_t c = 0; c < to.size(1); ++c) to(i, c) = S{};
    }
  }
}

// Vectors cut into pieces of 16 bytes (a single element without SIMD).
template <class T>
constexpr int64_t kPiece = std::min<int64_t>(kLanes<T>, 16 / sizeof(T));

// kPiece vectors that hold the square of kLanes rows and kPiece columns: piece g of vector k is row g kPiece + k.
template <class T>
struct Square {
  Vec<T> v[kPiece<T>];

  template <class S>
  HWY_INLINE void load(const S* rows, int64_t width) {
    for (int64_t k = 0; k < kPiece<T>; ++k) v[k] = gather(Tag<T>(), rows + k * width, kPiece<T> * width);
  }
  HWY_INLINE void store(T* rows, int64_t width) const {
    for (int64_t k = 0; k < kPiece<T>; ++k) scatter(Tag<T>(), v[k], rows + k * width, kPiece<T> * width);
  }

  // Vector c then holds column c of all rows; its own inverse.
  HWY_INLINE void transpose() {
#if HWY_TARGET != HWY_SCALAR
    const Tag<T> d;
    if constexpr (sizeof(T) == 4) {
      const Vec<T> even_low = hn::InterleaveLower(d, v[0], v[2]), even_high = hn::InterleaveUpper(d, v[0], v[2]);
      const Vec<T> odd_low = hn::InterleaveLower(d, v[1], v[3]), odd_high = hn::InterleaveUpper(d, v[1], v[3]);
      v[0] = hn::InterleaveLower(d, even_low, odd_low);
      v[1] = hn::InterleaveUpper(d, even_low, odd_low);
      v[2] = hn::InterleaveLower(d, even_high, odd_high);
      v[3] = hn::InterleaveUpper(d, even_high, odd_high);
    } else {
      const Vec<T> low = hn::InterleaveLower(d, v[0], v[1]), high = hn::InterleaveUpper(d, v[0], v[1]);
      v[0] = low;
      v[1] = high;
    }
#endif
  }

 private:
  template <class D, class S>
  static HWY_INLINE hn::Vec<D> gather(D d, const S* piece, [[maybe_unused]] int64_t step) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (hn::MaxLanes(D()) > kPiece<T>) {
      const hn::Half<D> half;
      constexpr int64_t kPieces = hn::MaxLanes(hn::Half<D>()) / kPiece<T>;
      return hn::Combine(d, gather(half, piece + kPieces * step, step), gather(half, piece, step));
    }
#endif
    return load_wide(d, piece);
  }
  template <class D>
  static HWY_INLINE void scatter(D d, hn::Vec<D> x, T* piece, [[maybe_unused]] int64_t step) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (hn::MaxLanes(D()) > kPiece<T>) {
      const hn::Half<D> half;
      constexpr int64_t kPieces = hn::MaxLanes(hn::Half<D>()) / kPiece<T>;
      scatter(half, hn::LowerHalf(half, x), piece, step);
      scatter(half, hn::UpperHalf(half, x), piece + kPieces * step, step);
      return;
    }
#endif
    hn::StoreU(x, d, piece);
  }
};

// Of kLanes / kPiece vectors: piece g of vector s becomes piece s of vector g.
template <class T>
HWY_INLINE void transpose_pieces([[maybe_unused]] Vec<T>* v) {
#if HWY_TARGET != HWY_SCALAR
  [[maybe_unused]] const Tag<T> d;
  if constexpr (kLanes<T> == 2 * kPiece<T>) {
    const Vec<T> first = hn::ConcatLowerLower(d, v[1], v[0]);
    v[1] = hn::ConcatUpperUpper(d, v[1], v[0]);
    v[0] = first;
  }
  if constexpr (kLanes<T> == 4 * kPiece<T>) {
    // pieces 0 and 2, then 1 and 3, of two vectors in turn
    const Vec<T> even_low = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[1]), v[0]);
    const Vec<T> odd_low = hn::OddEvenBlocks(v[1], hn::SwapAdjacentBlocks(v[0]));
    const Vec<T> even_high = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[3]), v[2]);
    const Vec<T> odd_high = hn::OddEvenBlocks(v[3], hn::SwapAdjacentBlocks(v[2]));
    v[0] = hn::ConcatLowerLower(d, even_high, even_low);
    v[1] = hn::ConcatLowerLower(d, odd_high, odd_low);
    v[2] = hn::ConcatUpperUpper(d, even_high, even_low);
    v[3] = hn::ConcatUpperUpper(d, odd_high, odd_low);
  }
#endif
}

// Packed rows of a block, load_rows with zeros for the lanes past its end. Says whether all are finite.
template <class S>
bool load_block(View<const S, 2> from, Accumulator<S> factor, int64_t vectors, Accumulator<S>* HWY_RESTRICT to) {
  using T = Accumulator<S>;
  const int64_t width = padded<T>(from.size(1));
  std::fill(to + from.size(0) * width, to + vectors * kLanes<T> * width, T(0));
  return load_rows(from, factor, to);
}

// to[c][lane] = rows[lane][c], for `vectors` of lanes. `rows` are packed rows, read up to whole vectors of lanes.
template <class T>
void transpose_rows(const T* HWY_RESTRICT rows, int64_t columns, int64_t vectors, T* HWY_RESTRICT to) {
  const Tag<T> d;
  const int64_t width = padded<T>(columns);
  for (int64_t lane = 0; lane < vectors * kLanes<T>; lane += kLanes<T>) {
    for (int64_t c = 0; c < columns; c += kPiece<T>) {
      Square<T> square;
      square.load(rows + lane * width + c, width);
      square.transpose();
      for (int64_t k = 0; k < std::min(kPiece<T>, columns - c); ++k) {
        hn::Store(square.v[k], d, to + (c + k) * kBlockRows<T> + lane);
      }
    }
  }
}

// rows[lane][c] = from[c][lane] for `vectors` of lanes, into packed rows; `from` is read up to padded columns.
template <class T>
void transpose_columns(const T* HWY_RESTRICT from, int64_t columns, int64_t vectors, T* HWY_RESTRICT rows) {
  const Tag<T> d;
  const int64_t width = padded<T>(columns);
  for (int64_t lane = 0; lane < vectors * kLanes<T>; lane += kLanes<T>) {
    for (int64_t c = 0; c < columns; c += kPiece<T>) {
      Square<T> square;
      for (int64_t k = 0; k < kPiece<T>; ++k) square.v[k] = hn::Load(d, from + (c + k) * kBlockRows<T> + lane);
      square.transpose();
      square.store(rows + lane * width + c, width);
    }
  }
}

template <class T>
void replace_non_finite(T* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(data[i])) data[i] = T(0);
  }
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
