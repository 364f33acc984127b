// The pieces that attention forward, backward and rows share: one product, packing, and scores of a tile.
//
// Lanes are queries. A block of rows is held transposed, [column][lane], and a tile of scores as [key][lane]:
// every product is then "vector of lanes times a broadcast number of K or V", rows never mix, and no size of
// head or number of keys needs padding.

#if defined(HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/attention_plan.h"
#include "kernels/exp-inl.h"

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
HWY_NOINLINE void multiply_rows(A a, int64_t rows, const T* b, int64_t b_step, int64_t steps, T* c, int64_t c_row) {
  int64_t u = 0;
  for (; u + kRows <= rows; u += kRows) {
    multiply_registers<kRows, kCols, kInto>(a.from(u), b, b_step, steps, c + u * c_row, c_row);
  }
  if constexpr (kRows > 1) {
    constexpr int kNext = kRows > 8 ? 8 : kRows > 4 ? 4 : kRows / 2;
    if (u < rows) multiply_rows<kNext, kCols, kInto>(a.from(u), rows - u, b, b_step, steps, c + u * c_row, c_row);
  }
}

// a: rows x steps; b: steps x vectors, aligned; c: rows x vectors, aligned.
template <Into kInto, class T, class A>
void multiply(A a, int64_t rows, const T* b, int64_t b_step, int64_t vectors, int64_t steps, T* c, int64_t c_row) {
  int64_t v = 0;
  for (; v + kVectors <= vectors; v += kVectors) {
    multiply_rows<kBroadcasts, kVectors, kInto>(a, rows, b + v * kLanes<T>, b_step, steps, c + v * kLanes<T>, c_row);
  }
  for (; v < vectors; ++v) {
    multiply_rows<kBroadcasts, 1, kInto>(a, rows, b + v * kLanes<T>, b_step, steps, c + v * kLanes<T>, c_row);
  }
}

// ---- packing -----------------------------------------------------------------------------------------------

// Vectors cut into pieces of 16 bytes (a single element without SIMD).
template <class T>
constexpr int64_t kPiece = std::min<int64_t>(kLanes<T>, 16 / sizeof(T));

// The square of kLanes rows and kPiece columns, transposed in registers: vector c holds column c of all rows.
template <class T>
struct Square {
  Vec<T> v[kPiece<T>];

#if HWY_TARGET == HWY_SCALAR
  HWY_INLINE void transpose() {}
  HWY_INLINE void load_rows(const T* const* rows, int64_t c) { v[0] = hn::LoadU(Tag<T>(), rows[0] + c); }
  HWY_INLINE void store_rows(T* const* rows, int64_t c) const { hn::StoreU(v[0], Tag<T>(), rows[0] + c); }
#else
  // within each group of kPiece lanes; its own inverse
  HWY_INLINE void transpose() {
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
  }
  // piece g of vector k comes from row g * kPiece + k
  HWY_INLINE void load_rows(const T* const* rows, int64_t c) {
    for (int64_t k = 0; k < kPiece<T>; ++k) v[k] = gather(Tag<T>(), rows + k, c);
  }
  HWY_INLINE void store_rows(T* const* rows, int64_t c) const {
    for (int64_t k = 0; k < kPiece<T>; ++k) scatter(Tag<T>(), v[k], rows + k, c);
  }

 private:
  template <class D>
  static HWY_INLINE hn::Vec<D> gather(D d, const T* const* rows, int64_t c) {
    if constexpr (hn::MaxLanes(D()) == kPiece<T>) {
      return hn::LoadU(d, rows[0] + c);
    } else {
      const hn::Half<D> half;
      return hn::Combine(d, gather(half, rows + hn::MaxLanes(half), c), gather(half, rows, c));
    }
  }
  template <class D>
  static HWY_INLINE void scatter(D d, hn::Vec<D> x, T* const* rows, int64_t c) {
    if constexpr (hn::MaxLanes(D()) == kPiece<T>) {
      hn::StoreU(x, d, rows[0] + c);
    } else {
      const hn::Half<D> half;
      scatter(half, hn::LowerHalf(half, x), rows, c);
      scatter(half, hn::UpperHalf(half, x), rows + hn::MaxLanes(half), c);
    }
  }
#endif
};

// to[c][lane] = factor * from(lane, c) for lanes of `from`, 0 for the others up to kBlockRows
template <class T>
void pack_transposed(View<const T, 2> from, T factor, T* HWY_RESTRICT to) {
  const Tag<T> d;
  const int64_t rows = from.size(0), columns = from.size(1);
  const int64_t whole = from.stride(1) == 1 ? columns / kPiece<T> * kPiece<T> : 0;
  for (int64_t lane = 0; lane < kBlockRows<T>; lane += kLanes<T>) {
    // lanes past the end repeat the last row in the vectors below and are cleared afterwards
    const T* pointers[kLanes<T>];
    for (int64_t i = 0; i < kLanes<T>; ++i) {
      pointers[i] = from.data + std::clamp<int64_t>(lane + i, 0, std::max<int64_t>(rows - 1, 0)) * from.stride(0);
    }
    for (int64_t c = 0; c < whole && lane < rows; c += kPiece<T>) {
      Square<T> square;
      square.load_rows(pointers, c);
      square.transpose();
      for (int64_t k = 0; k < kPiece<T>; ++k) {
        hn::Store(hn::Mul(square.v[k], hn::Set(d, factor)), d, to + (c + k) * kBlockRows<T> + lane);
      }
    }
    for (int64_t c = whole; c < columns && lane < rows; ++c) {
      for (int64_t i = 0; i < kLanes<T>; ++i) {
        to[c * kBlockRows<T> + lane + i] = factor * pointers[i][c * from.stride(1)];
      }
    }
  }
  for (int64_t c = 0; c < columns && rows < kBlockRows<T>; ++c) {
    std::fill(to + c * kBlockRows<T> + rows, to + (c + 1) * kBlockRows<T>, T(0));
  }
}

// to(lane, c) = from[c][lane]
template <class T>
void unpack_transposed(const T* HWY_RESTRICT from, View<T, 2> to) {
  const Tag<T> d;
  const int64_t rows = to.size(0), columns = to.size(1);
  for (int64_t lane = 0; lane < rows; lane += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, rows - lane);
    const int64_t whole = to.stride(1) == 1 && count == kLanes<T> ? columns / kPiece<T> * kPiece<T> : 0;
    T* pointers[kLanes<T>];
    for (int64_t i = 0; i < count; ++i) pointers[i] = to.data + (lane + i) * to.stride(0);
    for (int64_t c = 0; c < whole; c += kPiece<T>) {
      Square<T> square;
      for (int64_t k = 0; k < kPiece<T>; ++k) square.v[k] = hn::Load(d, from + (c + k) * kBlockRows<T> + lane);
      square.transpose();
      square.store_rows(pointers, c);
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = whole; c < columns; ++c) pointers[i][c * to.stride(1)] = from[c * kBlockRows<T> + lane + i];
    }
  }
}

// columns rounded up to whole vectors
template <class T>
constexpr int64_t padded(int64_t columns) {
  return (columns + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// to[row][c] = factor * from(row, c), 0 from the last column up to to_row; says whether all are finite.
template <class T>
bool copy_rows(View<const T, 2> from, T factor, T* HWY_RESTRICT to, int64_t to_row) {
  const Tag<T> d;
  const int64_t columns = from.size(1);
  const int64_t whole = from.stride(1) == 1 ? columns / kLanes<T> * kLanes<T> : 0;
  // 0 * x is 0 or, for infinities and NaN, NaN
  Vec<T> zeros = hn::Zero(d);
  T zero = T(0);
  for (int64_t i = 0; i < from.size(0); ++i) {
    const T* in = from.data + i * from.stride(0);
    T* out = to + i * to_row;
    for (int64_t c = 0; c < whole; c += kLanes<T>) {
      const Vec<T> x = hn::Mul(hn::LoadU(d, in + c), hn::Set(d, factor));
      zeros = hn::MulAdd(x, hn::Zero(d), zeros);
      hn::StoreU(x, d, out + c);
    }
    for (int64_t c = whole; c < columns; ++c) {
      out[c] = factor * in[c * from.stride(1)];
      zero += out[c] * T(0);
    }
    std::fill(out + columns, out + to_row, T(0));
  }
  return hn::AllTrue(d, hn::Eq(zeros, zeros)) && zero == zero;
}

template <class T>
void replace_non_finite(T* data, int64_t rows, int64_t columns, int64_t row) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      if (!std::isfinite(data[i * row + c])) data[i * row + c] = T(0);
    }
  }
}

// ---- scores ------------------------------------------------------------------------------------------------

// One head of one batch entry: what is added to its scores, and who sees whom.
template <class T>
struct Head {
  Head(const AttentionPattern<T>& p, int64_t entry, int64_t head, int64_t Tq, int64_t Tk)
      : pattern(p),
        b(entry),
        h(head),
        spans(spans_of(p, entry, Tq, Tk)),
        band(p.pos0, p.left, p.right, spans.k.size()) {}

  bool has_addend() const { return pattern.mask.data != nullptr || pattern.bias.data != nullptr; }
  bool has_slope() const { return pattern.slopes.data != nullptr; }
  bool changes_scores() const { return has_addend() || has_slope() || pattern.soft_cap.has_value(); }

  const AttentionPattern<T>& pattern;
  int64_t b, h;
  Spans spans;
  Band band;
};

// Up to kBlockRows rows of a head, counted from q_begin, and the keys they see, counted from k_begin.
struct Block {
  Range rows;
  Range seen_by_some;
  Range seen_by_all;
  int64_t vectors;  // that hold the rows
};

template <class T>
Block block_of(const Head<T>& head, int64_t row_begin, int64_t row_end) {
  const Range rows{row_begin, std::min(row_end, row_begin + kBlockRows<T>)};
  return {rows, head.band.seen_by_some(rows), head.band.seen_by_all(rows), (rows.size() + kLanes<T> - 1) / kLanes<T>};
}

// Who of a block sees which key of a tile, and what is added to the scores. Keys count from the tile's first.
template <class T>
struct TileMask {
  alignas(64) T first[kBlockRows<T>];  // a lane sees keys first <= j < end
  alignas(64) T end[kBlockRows<T>];
  alignas(64) T distance[kBlockRows<T>];  // p - tile's first key, when the head has a slope
  const T* addend = nullptr;  // [key][lane], -inf where invisible; null when the head has neither mask nor bias
  bool everyone = false;      // all rows see all keys: nothing to test

  HWY_INLINE hn::Mask<Tag<T>> sees(int64_t key, int64_t lane) const {
    const Tag<T> d;
    const Vec<T> j = hn::Set(d, static_cast<T>(key));
    auto visible = hn::And(hn::Ge(j, hn::Load(d, first + lane)), hn::Lt(j, hn::Load(d, end + lane)));
    if (addend != nullptr) {
      const Vec<T> added = hn::Load(d, addend + key * kBlockRows<T> + lane);
      visible = hn::And(visible, hn::Ne(added, hn::Set(d, kMinusInfinity<T>)));
    }
    return visible;
  }
  bool sees_one(int64_t key, int64_t lane) const {
    return static_cast<T>(key) >= first[lane] && static_cast<T>(key) < end[lane] &&
           (addend == nullptr || addend[key * kBlockRows<T> + lane] != kMinusInfinity<T>);
  }
};

// Fills `addend` [key][lane] for the keys [keys.begin, keys.end) of a tile that starts at `tile`.
// Says whether all rows see all keys.
template <class T>
bool fill_addend(const Head<T>& head, const Block& block, int64_t tile, Range keys, T* addend) {
  const auto& mask = head.pattern.mask;
  const auto& bias = head.pattern.bias;
  const auto step = [](const auto& view, int dim) { return view.size(dim) == 1 ? int64_t{0} : view.stride(dim); };
  bool everyone = true;
  for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) {
    // lanes past the end repeat the last row
    const int64_t i = head.spans.q.begin + std::min(block.rows.begin + lane, block.rows.end - 1);
    const int64_t j = head.spans.k.begin + tile;
    const uint8_t* may = nullptr;
    const T* added = nullptr;
    if (mask.data != nullptr) {
      may = mask.data + head.b * step(mask, 0) + head.h * step(mask, 1) + i * step(mask, 2) + j * step(mask, 3);
    }
    if (bias.data != nullptr) {
      added = bias.data + head.b * step(bias, 0) + head.h * step(bias, 1) + i * step(bias, 2) + j * step(bias, 3);
    }
    for (int64_t key = keys.begin - tile; key < keys.end - tile; ++key) {
      T value = added == nullptr ? T(0) : added[key * step(bias, 3)];
      if (may != nullptr && may[key * step(mask, 3)] == 0) value = kMinusInfinity<T>;
      everyone = everyone && value != kMinusInfinity<T>;
      addend[key * kBlockRows<T> + lane] = value;
    }
  }
  return everyone;
}

// `addend` is memory for [kTileKeys][kBlockRows].
template <class T>
void prepare_mask(const Head<T>& head, const Block& block, int64_t tile, Range keys, T* addend, TileMask<T>& mask) {
  mask.everyone = keys.begin >= block.seen_by_all.begin && keys.end <= block.seen_by_all.end;
  mask.addend = nullptr;
  for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) {
    const int64_t row = std::min(block.rows.begin + lane, block.rows.end - 1);
    const Range seen = head.band.keys(row);
    mask.first[lane] = static_cast<T>(std::clamp<int64_t>(seen.begin - tile, 0, kTileKeys));
    mask.end[lane] = static_cast<T>(std::clamp<int64_t>(seen.end - tile, 0, kTileKeys));
    if (head.has_slope()) mask.distance[lane] = static_cast<T>(head.band.distance(row, tile));
  }
  if (head.has_addend()) {
    mask.everyone = fill_addend(head, block, tile, keys, addend) && mask.everyone;
    mask.addend = addend;
  }
}

// Turns products q . k into scores, -inf where invisible, for keys [keys.begin, keys.end) of the tile, and
// raises max[lane] to the largest. cap_slope, when given, gets the cap's derivative.
template <class T, bool kChanged, bool kTested>
HWY_NOINLINE void finish_keys(const Head<T>& head, const TileMask<T>& mask, int64_t vectors, Range keys, T* scores,
                              T* cap_slope, T* max) {
  const Tag<T> d;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t lane = v * kLanes<T>;
    Vec<T> largest = hn::Load(d, max + lane);
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      T* at = scores + key * kBlockRows<T> + lane;
      Vec<T> s = hn::Load(d, at);
      if constexpr (kChanged) {
        if (head.pattern.soft_cap) {
          const Vec<T> bent = tanh(d, hn::Div(s, hn::Set(d, *head.pattern.soft_cap)));
          s = hn::Mul(bent, hn::Set(d, *head.pattern.soft_cap));
          if (cap_slope != nullptr) {
            const Vec<T> one = hn::Set(d, T(1));
            hn::Store(hn::Mul(hn::Sub(one, bent), hn::Add(one, bent)), d, cap_slope + key * kBlockRows<T> + lane);
          }
        }
        if (mask.addend != nullptr) s = hn::Add(s, hn::Load(d, mask.addend + key * kBlockRows<T> + lane));
        if (head.has_slope()) {
          const Vec<T> distance = hn::Abs(hn::Sub(hn::Load(d, mask.distance + lane), hn::Set(d, static_cast<T>(key))));
          s = hn::NegMulAdd(hn::Set(d, head.pattern.slopes(head.h)), distance, s);
        }
      }
      if constexpr (kTested) s = hn::IfThenElse(mask.sees(key, lane), s, hn::Set(d, kMinusInfinity<T>));
      if constexpr (kChanged || kTested) hn::Store(s, d, at);
      largest = max_or_second(d, s, largest);
    }
    hn::Store(largest, d, max + lane);
  }
}

template <class T>
void finish_scores(const Head<T>& head, const TileMask<T>& mask, int64_t vectors, Range keys, T* scores, T* cap_slope,
                   T* max) {
  if (head.changes_scores()) {
    const auto finish = mask.everyone ? finish_keys<T, true, false> : finish_keys<T, true, true>;
    finish(head, mask, vectors, keys, scores, cap_slope, max);
  } else {
    const auto finish = mask.everyone ? finish_keys<T, false, false> : finish_keys<T, false, true>;
    finish(head, mask, vectors, keys, scores, cap_slope, max);
  }
}

// A maximum that can be subtracted: 0 in place of the -inf of rows that have seen nothing.
template <class T>
HWY_INLINE Vec<T> subtractable(Vec<T> max) {
  const Tag<T> d;
  return hn::IfThenElse(hn::Eq(max, hn::Set(d, kMinusInfinity<T>)), hn::Zero(d), max);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
