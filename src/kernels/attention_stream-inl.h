// The two products of few rows, which read K and V once, as they lie in memory. Each element is the same chain of
// additions as in attention_product-inl.h.

#if defined(HEADLIGHT_KERNELS_ATTENTION_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_STREAM_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_STREAM_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_STREAM_INL_H_
#endif

#include <type_traits>

#include "kernels/attention_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of K or V that follow each other, whole vectors or pieces of them.
template <class S>
struct Stream {
  const S* data;
  int64_t row;      // elements from one to the next
  int64_t columns;  // a multiple of kPiece for keys, of kLanes for values
  int64_t rows;     // that can be asked for ahead

  HWY_INLINE const S* at(int64_t i) const { return data + i * row; }
};

// How far ahead rows are asked for, measured. Heads may lie side by side, so that the next row is too far for the
// processor to foresee; and even where rows follow each other it foresees too little.
constexpr int64_t kKeysAhead = 32, kValuesAhead = 16;

// The lines of rows to come, one after the other.
template <class S>
class LinesAhead {
 public:
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(S));

  HWY_INLINE LinesAhead(const Stream<S>& stream, int64_t first, int64_t end)
      : at_(end <= stream.rows ? stream.at(first) : nullptr), row_(stream.row), columns_(stream.columns) {}
  HWY_INLINE void ask(int64_t lines) {
    if (at_ == nullptr) return;
    for (int64_t line = 0; line < lines; ++line) {
      __builtin_prefetch(at_ + column_);
      column_ += kLine;
      if (column_ < columns_) continue;
      column_ = 0;
      at_ += row_;
    }
  }

 private:
  const S* at_;  // null when there is nothing to ask for
  int64_t row_, columns_;
  int64_t column_ = 0;
};

// scores[u][key] = sum over c of queries[u][c] keys[key][c], for kLanes keys from `first`.
template <int kRows, class T, class S>
HWY_NOINLINE void multiply_keys(const T* HWY_RESTRICT queries, int64_t query_row, const Stream<S>& keys, int64_t first,
                                T* HWY_RESTRICT scores, int64_t score_row) {
  const Tag<T> d;
  const S* rows = keys.at(first);
  LinesAhead<S> ahead(keys, first + kKeysAhead, first + kKeysAhead + kLanes<T>);
  Vec<T> sum[kRows];
  for (int u = 0; u < kRows; ++u) sum[u] = hn::Zero(d);
  for (int64_t c = 0; c < keys.columns; c += kPiece<T>) {
    // as many as this step reads
    ahead.ask(kLanes<T> * kPiece<T> / LinesAhead<S>::kLine);
    Square<T> square;
    square.load(rows + c, keys.row);
    square.transpose();
    for (int k = 0; k < kPiece<T>; ++k) {
      for (int u = 0; u < kRows; ++u) {
        sum[u] = hn::MulAdd(hn::Set(d, queries[u * query_row + c + k]), square.v[k], sum[u]);
      }
    }
  }
  for (int u = 0; u < kRows; ++u) hn::Store(sum[u], d, scores + u * score_row);
}

// acc[u][c] += sum over keys of weights[u][key] values[key][c], for kCols vectors of c; sums[u] += the weights, which
// costs nothing here, and takes long alone.
template <int kRows, int kCols, class T, class S>
HWY_INLINE void add_products(const T* HWY_RESTRICT weights, int64_t weight_row, const Stream<S>& values, int64_t keys,
                             T* HWY_RESTRICT acc, int64_t acc_row, Vec<T> (&sums)[kRows]) {
  const Tag<T> d;
  Vec<T> sum[kRows][kCols];
  for (int u = 0; u < kRows; ++u) {
    for (int v = 0; v < kCols; ++v) sum[u][v] = hn::Load(d, acc + u * acc_row + v * kLanes<T>);
  }
  for (int64_t key = 0; key < keys; ++key) {
    const S* row = values.at(key);
    if (key + kValuesAhead < values.rows) {
      for (int64_t c = 0; c < kCols * kLanes<T>; c += LinesAhead<S>::kLine) {
        __builtin_prefetch(row + kValuesAhead * values.row + c);
      }
    }
    Vec<T> x[kCols];
    for (int v = 0; v < kCols; ++v) x[v] = load_wide(d, row + v * kLanes<T>);
    for (int u = 0; u < kRows; ++u) {
      const Vec<T> weight = hn::Set(d, weights[u * weight_row + key]);
      sums[u] = hn::Add(sums[u], weight);
      for (int v = 0; v < kCols; ++v) sum[u][v] = hn::MulAdd(weight, x[v], sum[u][v]);
    }
  }
  for (int u = 0; u < kRows; ++u) {
    for (int v = 0; v < kCols; ++v) hn::Store(sum[u][v], d, acc + u * acc_row + v * kLanes<T>);
  }
}

// The same for all columns, of which there may be none.
template <int kRows, class T, class S>
HWY_NOINLINE void multiply_values(const T* weights, int64_t weight_row, Stream<S> values, int64_t keys, T* acc,
                                  int64_t acc_row, T* sums) {
  const Tag<T> d;
  constexpr int kCols = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;
  Vec<T> before[kRows], now[kRows];
  for (int u = 0; u < kRows; ++u) before[u] = now[u] = hn::Set(d, sums[u]);
  const auto reset = [&] { std::copy(before, before + kRows, now); };
  for (int64_t key = 0; key < keys && values.columns == 0; ++key) {
    for (int u = 0; u < kRows; ++u) now[u] = hn::Add(now[u], hn::Set(d, weights[u * weight_row + key]));
  }
  int64_t c = 0;
  for (; c + kCols * kLanes<T> <= values.columns; c += kCols * kLanes<T>, values.data += kCols * kLanes<T>) {
    reset();
    add_products<kRows, kCols>(weights, weight_row, values, keys, acc + c, acc_row, now);
  }
  for (; c < values.columns; c += kLanes<T>, values.data += kLanes<T>) {
    reset();
    add_products<kRows, 1>(weights, weight_row, values, keys, acc + c, acc_row, now);
  }
  for (int u = 0; u < kRows; ++u) sums[u] = hn::GetLane(now[u]);
}

// Calls f(number of rows, first row) for rows 4 by 4 and then what is left; the number is a constant.
template <class F>
HWY_INLINE void for_groups_of_rows(int64_t rows, F f) {
  int64_t u = 0;
  for (; u + 4 <= rows; u += 4) f(std::integral_constant<int, 4>(), u);
  if (rows - u == 3) f(std::integral_constant<int, 3>(), u);
  if (rows - u == 2) f(std::integral_constant<int, 2>(), u);
  if (rows - u == 1) f(std::integral_constant<int, 1>(), u);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
