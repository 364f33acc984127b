// The scores of a tile of keys for a block of query rows, as forward, backward and rows all compute them.

#if defined(HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include "kernels/attention_plan.h"
#include "kernels/attention_product-inl.h"
#include "kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of one head of a tensor (B, T, H, width).
template <class U>
View<U, 2> rows_of(const View<U, 4>& tensor, int64_t b, int64_t h, Range rows) {
  U* data = tensor.data + b * tensor.stride(0) + rows.begin * tensor.stride(1) + h * tensor.stride(2);
  return {data, {rows.size(), tensor.size(3)}, {tensor.stride(1), tensor.stride(3)}};
}

// One head of one batch entry: what is added to its scores, and who sees whom.
template <class T>
struct Head {
  Head(const AttentionPattern<T>& p, int64_t entry, int64_t head, int64_t Tq, int64_t Tk)
      : pattern(p),
        b(entry),
        h(head),
        spans(spans_of(p, entry, Tq, Tk)),
        band(p.pos0, p.left, p.right, spans.k.size()) {}

  // rows counted from the first valid query or key, as rows of the tensors
  Range queries(Range rows) const { return {spans.q.begin + rows.begin, spans.q.begin + rows.end}; }
  Range keys(Range rows) const { return {spans.k.begin + rows.begin, spans.k.begin + rows.end}; }

  bool has_addend() const { return pattern.mask.data != nullptr || pattern.bias.data != nullptr; }
  bool has_slope() const { return pattern.slopes.data != nullptr; }
  bool is_additive() const { return pattern.additive.data != nullptr; }
  // what packed queries are multiplied by; sums of a query and a key are scaled after their tanh
  T query_factor() const { return is_additive() ? T(1) : pattern.scale; }
  bool changes_scores() const { return has_addend() || has_slope() || pattern.soft_cap.has_value(); }

  const AttentionPattern<T>& pattern;
  int64_t b, h;
  Spans spans;
  Band band;
};

// Up to kBlockRows rows of a head, counted from q_begin, and the keys that some of them see, from k_begin.
struct Block {
  Range rows;
  Range seen;
  int64_t vectors;  // that hold the rows
};

template <class T>
Block block_of(const Head<T>& head, int64_t row_begin, int64_t row_end) {
  const Range rows{row_begin, std::min(row_end, row_begin + kBlockRows<T>)};
  return {rows, head.band.seen_by_some(rows), (rows.size() + kLanes<T> - 1) / kLanes<T>};
}

// Who of a block sees which keys of a tile. Keys count from the tile's first, lanes from the block's first.
template <class T>
struct Sight {
  // keys that the same vectors see, in part or in full: the products go piece by piece
  struct Piece {
    Range keys;
    int64_t lane;  // first of the vectors
    int64_t vectors;
  };

  Range some[kVectors];  // keys that some lane of a vector sees
  Range all[kVectors];   // part of these that every lane sees: nothing to test
  Piece pieces[2 * kVectors];
  int count;
  // lane sees keys from first_of_lane_0 + lane to before end_of_lane_0 + lane
  T first_of_lane_0, end_of_lane_0;
  const T* addend;  // [key][lane] to be added to the scores, -inf where invisible; null when there is none
  alignas(64) T distance[kBlockRows<T>];  // p - tile's first key, when the head has a slope

  HWY_INLINE hn::Mask<Tag<T>> sees(int64_t key, int64_t lane) const {
    const Tag<T> d;
    const Vec<T> lanes = hn::Iota(d, static_cast<T>(lane));
    auto visible = hn::And(hn::Le(lanes, hn::Set(d, static_cast<T>(key) - first_of_lane_0)),
                           hn::Gt(lanes, hn::Set(d, static_cast<T>(key) - end_of_lane_0)));
    if (addend != nullptr) {
      const Vec<T> added = hn::Load(d, addend + key * kBlockRows<T> + lane);
      visible = hn::AndNot(hn::Eq(added, hn::Set(d, kMinusInfinity<T>)), visible);  // Ne may be false for NaN
    }
    return visible;
  }
  // also right for keys that no lane of the vector sees
  bool sees_one(int64_t key, int64_t lane) const {
    const Range& range = some[lane / kLanes<T>];
    const T at = static_cast<T>(key), offset = static_cast<T>(lane);
    return key >= range.begin && key < range.end && at >= first_of_lane_0 + offset && at < end_of_lane_0 + offset &&
           (addend == nullptr || addend[key * kBlockRows<T> + lane] != kMinusInfinity<T>);
  }
};

// What is added to the scores of query row i, counted from the first valid one, with `keys` of a tile that starts
// at `tile`, -inf where invisible: to[key * step]. Says whether the row may see all of them.
template <class T>
bool fill_addend(const Head<T>& head, int64_t i, int64_t tile, Range keys, int64_t step, T* to) {
  const auto& mask = head.pattern.mask;
  const auto& bias = head.pattern.bias;
  const auto stride = [](const auto& view, int dim) { return view.size(dim) == 1 ? int64_t{0} : view.stride(dim); };
  const auto row_of = [&](const auto& view) {
    return view.data + head.b * stride(view, 0) + head.h * stride(view, 1) +
           (head.spans.q.begin + i) * stride(view, 2) + (head.spans.k.begin + tile) * stride(view, 3);
  };
  const uint8_t* may = mask.data == nullptr ? nullptr : row_of(mask);
  const T* added = bias.data == nullptr ? nullptr : row_of(bias);
  bool all = true;
  for (int64_t key = keys.begin; key < keys.end; ++key) {
    T value = added == nullptr ? T(0) : added[key * stride(bias, 3)];
    if (may != nullptr && may[key * stride(mask, 3)] == 0) value = kMinusInfinity<T>;
    all = all && value != kMinusInfinity<T>;
    to[key * step] = value;
  }
  return all;
}

// The same for a block, [key][lane].
template <class T>
bool fill_addend(const Head<T>& head, const Block& block, int64_t tile, Range keys, T* addend) {
  bool everyone = true;
  for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) {
    // lanes past the end repeat the last row
    const int64_t i = std::min(block.rows.begin + lane, block.rows.end - 1);
    everyone = fill_addend(head, i, tile, keys, kBlockRows<T>, addend + lane) && everyone;
  }
  return everyone;
}

// Cuts the keys at every begin and end of what a vector sees. Both rise from vector to vector, so that each
// cut is seen by vectors that follow each other.
template <class T>
void cut_pieces(int64_t vectors, Sight<T>& sight) {
  int64_t cuts[2 * kVectors];
  int count = 0;
  for (int64_t v = 0; v < vectors; ++v) {
    for (int64_t cut : {sight.some[v].begin, sight.some[v].end}) {
      int at = count++;
      for (; at > 0 && cuts[at - 1] > cut; --at) cuts[at] = cuts[at - 1];
      cuts[at] = cut;
    }
  }
  sight.count = 0;
  for (int i = 0; i + 1 < count; ++i) {
    const Range keys{cuts[i], cuts[i + 1]};
    if (keys.empty()) continue;
    int64_t first = 0, end = vectors;
    while (first < end && (sight.some[first].begin > keys.begin || sight.some[first].end < keys.end)) ++first;
    while (end > first && (sight.some[end - 1].begin > keys.begin || sight.some[end - 1].end < keys.end)) --end;
    if (first < end) sight.pieces[sight.count++] = {keys, first * kLanes<T>, end - first};
  }
}

// `addend` is memory for [kTileKeys][kBlockRows].
template <class T>
void look(const Head<T>& head, const Block& block, int64_t tile, T* addend, Sight<T>& sight) {
  const auto in_tile = [&](Range keys) {
    return Range{std::clamp<int64_t>(keys.begin - tile, 0, kTileKeys),
                 std::clamp<int64_t>(keys.end - tile, 0, kTileKeys)};
  };
  sight.addend = head.has_addend() ? addend : nullptr;
  const bool everyone = !head.has_addend() || fill_addend(head, block, tile, in_tile(block.seen), addend);
  for (int64_t v = 0; v < block.vectors; ++v) {
    const int64_t row = block.rows.begin + v * kLanes<T>;
    const Range rows{row, std::min(block.rows.end, row + kLanes<T>)};
    Range& some = sight.some[v];
    Range& all = sight.all[v];
    some = in_tile(head.band.seen_by_some(rows));
    some.end = std::max(some.begin, some.end);
    all = intersect(in_tile(head.band.seen_by_all(rows)), some);
    if (all.empty() || !everyone) all = {some.end, some.end};
  }
  cut_pieces(block.vectors, sight);
  sight.first_of_lane_0 = static_cast<T>(head.band.first(block.rows.begin, tile));
  sight.end_of_lane_0 = static_cast<T>(head.band.end(block.rows.begin, tile));
  for (int64_t lane = 0; lane < kBlockRows<T> && head.has_slope(); ++lane) {
    sight.distance[lane] = static_cast<T>(head.band.distance(block.rows.begin + lane, tile));
  }
}

// scores = q . k for all that is seen of a tile. queries: [column][lane]; keys: rows from the tile's first on.
template <class T>
void multiply_queries(const Sight<T>& sight, const T* queries, RowsOfSteps<T> keys, int64_t columns, T* scores,
                      ReadAhead& ahead) {
  for (int i = 0; i < sight.count; ++i) {
    const auto& piece = sight.pieces[i];
    multiply<Into::kSet>(keys.from(piece.keys.begin), piece.keys.size(), queries + piece.lane, kBlockRows<T>,
                         piece.vectors, columns, scores + piece.keys.begin * kBlockRows<T> + piece.lane, kBlockRows<T>,
                         ahead);
  }
}

// cap(s) + addend - slope |distance|. The addend may be null; cap_slope, when given, gets the cap's derivative.
template <class T>
HWY_INLINE Vec<T> change_score(const Head<T>& head, Vec<T> s, const T* addend, Vec<T> distance, T* cap_slope) {
  const Tag<T> d;
  if (head.pattern.soft_cap) {
    const Vec<T> bent = tanh(d, hn::Div(s, hn::Set(d, *head.pattern.soft_cap)));
    s = hn::Mul(bent, hn::Set(d, *head.pattern.soft_cap));
    if (cap_slope != nullptr) {
      const Vec<T> one = hn::Set(d, T(1));
      hn::Store(hn::Mul(hn::Sub(one, bent), hn::Add(one, bent)), d, cap_slope);
    }
  }
  if (addend != nullptr) s = hn::Add(s, hn::Load(d, addend));
  if (head.has_slope()) s = hn::NegMulAdd(hn::Set(d, head.pattern.slopes(head.h)), hn::Abs(distance), s);
  return s;
}

// scores = scale additive . tanh(q + k) likewise, one chain of additions in rising columns for each.
template <class T>
HWY_NOINLINE void add_queries(const Head<T>& head, const Sight<T>& sight, const T* queries, RowsOfSteps<T> keys,
                              int64_t columns, T* scores) {
  const Tag<T> d;
  const View<const T, 1> additive = head.pattern.additive[head.h];
  const Vec<T> scale = hn::Set(d, head.pattern.scale);
  for (int i = 0; i < sight.count; ++i) {
    const auto& piece = sight.pieces[i];
    for (int64_t key = piece.keys.begin; key < piece.keys.end; ++key) {
      const T* k = keys.from(key).data;
      for (int64_t v = 0, lane = piece.lane; v < piece.vectors; ++v, lane += kLanes<T>) {
        Vec<T> sum = hn::Zero(d);
        for (int64_t c = 0; c < columns; ++c) {
          const Vec<T> bent = tanh(d, hn::Add(hn::Load(d, queries + c * kBlockRows<T> + lane), hn::Set(d, k[c])));
          sum = hn::MulAdd(hn::Set(d, additive(c)), bent, sum);
        }
        hn::Store(hn::Mul(sum, scale), d, scores + key * kBlockRows<T> + lane);
      }
    }
  }
}

// The scores of all that is seen of a tile, before cap, bias and slope. queries: [column][lane], multiplied by
// query_factor(); keys: rows from the tile's first on.
template <class T>
void raw_scores(const Head<T>& head, const Sight<T>& sight, const T* queries, RowsOfSteps<T> keys, int64_t columns,
                T* scores, ReadAhead& ahead) {
  if (head.is_additive()) return add_queries(head, sight, queries, keys, columns, scores);
  multiply_queries(sight, queries, keys, columns, scores, ahead);
}

// Turns the raw scores of one vector with the keys of `run` into scores, -inf where invisible. Gives the
// largest of them and `largest`. cap_slope, when given, gets the cap's derivative.
template <class T, bool kChanged, bool kTested>
HWY_INLINE Vec<T> finish_run(const Head<T>& head, const Sight<T>& sight, int64_t lane, Range run, T* scores,
                             T* cap_slope, Vec<T> largest) {
  const Tag<T> d;
  for (int64_t key = run.begin; key < run.end; ++key) {
    const int64_t at = key * kBlockRows<T> + lane;
    Vec<T> s = hn::Load(d, scores + at);
    if constexpr (kChanged) {
      const Vec<T> distance = hn::Sub(hn::Load(d, sight.distance + lane), hn::Set(d, static_cast<T>(key)));
      s = change_score(head, s, sight.addend == nullptr ? nullptr : sight.addend + at, distance,
                       cap_slope == nullptr ? nullptr : cap_slope + at);
    }
    if constexpr (kTested) s = hn::IfThenElse(sight.sees(key, lane), s, hn::Set(d, kMinusInfinity<T>));
    if constexpr (kChanged || kTested) hn::Store(s, d, scores + at);
    largest = max_or_second(d, s, largest);
  }
  return largest;
}

template <class T, bool kChanged>
HWY_NOINLINE void finish_vectors(const Head<T>& head, const Sight<T>& sight, int64_t vectors, T* scores, T* cap_slope,
                                 T* max) {
  const Tag<T> d;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t lane = v * kLanes<T>;
    const Range some = sight.some[v], all = sight.all[v];
    Vec<T> largest = hn::Load(d, max + lane);
    largest = finish_run<T, kChanged, true>(head, sight, lane, {some.begin, all.begin}, scores, cap_slope, largest);
    largest = finish_run<T, kChanged, false>(head, sight, lane, all, scores, cap_slope, largest);
    largest = finish_run<T, kChanged, true>(head, sight, lane, {all.end, some.end}, scores, cap_slope, largest);
    hn::Store(largest, d, max + lane);
  }
}

// Turns the raw scores of a tile into scores and raises max[lane] to the largest.
template <class T>
void finish_scores(const Head<T>& head, const Sight<T>& sight, int64_t vectors, T* scores, T* cap_slope, T* max) {
  const auto finish = head.changes_scores() ? finish_vectors<T, true> : finish_vectors<T, false>;
  finish(head, sight, vectors, scores, cap_slope, max);
}

// A maximum that can be subtracted: 0 in place of the -inf of rows that have seen nothing.
template <class T>
HWY_INLINE Vec<T> subtractable(Vec<T> max) {
  const Tag<T> d;
  return hn::IfThenElse(hn::Eq(max, hn::Set(d, kMinusInfinity<T>)), hn::Zero(d), max);
}

// A row's weights from its statistic: exp(score - max) inverse.
template <class T>
struct RowWeights {
  T max[kBlockRows<T>];      // 0 where nothing is visible
  T inverse[kBlockRows<T>];  // 1 / sum, 0 where nothing is visible and past the last row

  void load(const View<const RowStatistic<T>, 1>& statistics) {
    for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) {
      const auto statistic = lane < statistics.size(0) ? statistics(lane) : RowStatistic<T>{0, 0};
      max[lane] = statistic.max == kMinusInfinity<T> ? T(0) : statistic.max;
      inverse[lane] = statistic.sum == T(0) ? T(0) : T(1) / statistic.sum;
    }
  }
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
