// The forward of few query rows against many keys, as when a model writes token by token: reading K and V is what
// it costs. Rows that share a key/value head are done together, one chunk of keys at a time; lanes are keys for the
// scores, columns for the values and rows for the softmax. Every number comes of the same operations in the same
// order as in the forward of many rows, so the bits are the same.

#if defined(HEADLIGHT_KERNELS_ATTENTION_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_DECODE_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_DECODE_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_DECODE_INL_H_
#endif

#include "kernels/attention_softmax-inl.h"
#include "kernels/attention_stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What the rows of a key/value head have gathered from one chunk of keys.
template <class T>
struct DecodePart {
  T* max;  // [row]
  T* sum;  // [row]
  T* acc;  // [row][column], rows of padded columns

  static DecodePart take(Arena& arena, int64_t rows, int64_t columns) {
    DecodePart out;
    out.max = arena.take<T>(padded<T>(rows));
    out.sum = arena.take<T>(padded<T>(rows));
    out.acc = arena.take<T>(rows * padded<T>(columns));
    return out;
  }
};

// Works on key/value head `g` of entry `b`. Row u is query row u / group of head g group + u % group, queries
// counted from the first valid one.
template <class S>
class DecodeWorker {
 public:
  using T = Accumulator<S>;

  // An arena without memory only counts.
  DecodeWorker(const AttentionForward<S>& args, Arena& arena)
      : args_(args),
        K_(args.q.size(3)),
        M_(args.v.size(3)),
        group_(args.q.size(2) / args.k.size(2)),
        most_rows_(args.q.size(1) * group_) {
    queries_ = arena.take<T>(most_rows_ * padded<T>(K_));
    packed_ = arena.take<T>(std::max(kLanes<T> * padded<T>(K_), kTileKeys * padded<T>(M_)));
    kept_ = arena.take<T>(most_rows_ * padded<T>(M_));
    scores_ = arena.take<T>(most_rows_ * kTileKeys);
    addend_ = arena.take<T>(args.pattern.mask.data || args.pattern.bias.data ? kTileKeys : 0);
    lanes_ = arena.take<T>(padded<T>(most_rows_));
  }

  static int64_t chunks(const AttentionForward<S>& args) {
    return std::max<int64_t>(1, (args.k.size(1) + kChunkKeys - 1) / kChunkKeys);
  }
  // Of one key/value head, one for each chunk.
  static void take_parts(const AttentionForward<S>& args, Arena& arena, DecodePart<T>* parts) {
    const int64_t rows = args.q.size(1) * (args.q.size(2) / args.k.size(2));
    for (int64_t i = 0; i < chunks(args); ++i) {
      const auto part = DecodePart<T>::take(arena, rows, args.v.size(3));
      if (parts != nullptr) parts[i] = part;
    }
  }

  // part = what the rows gather from the chunk
  void gather(int64_t b, int64_t g, int64_t chunk, const DecodePart<T>& part) {
    b_ = b;
    g_ = g;
    const Head<T> head = head_of(0);
    rows_ = head.spans.q.size() * group_;
    std::fill(part.max, part.max + padded<T>(most_rows_), kMinusInfinity<T>);
    std::fill(part.sum, part.sum + padded<T>(most_rows_), T(0));
    std::fill(part.acc, part.acc + most_rows_ * padded<T>(M_), T(0));
    if (rows_ == 0) return;
    const Range seen = head.band.seen_by_some({0, head.spans.q.size()});
    const Range keys = intersect(seen, {chunk * kChunkKeys, (chunk + 1) * kChunkKeys});
    if (keys.empty()) return;
    load_queries();
    for (int64_t tile = keys.begin / kTileKeys * kTileKeys; tile < keys.end; tile += kTileKeys) {
      const Range in_tile = intersect(keys, {tile, tile + kTileKeys});
      add_tile(tile, {in_tile.begin - tile, in_tile.end - tile}, part);
    }
  }

  // Merges the chunks from left to right into the first, and writes outputs and statistics.
  void finish(int64_t b, int64_t g, const DecodePart<T>* parts) {
    b_ = b;
    g_ = g;
    const Head<T> first = head_of(0);
    rows_ = first.spans.q.size() * group_;
    for (int64_t u = 0; u < group_; ++u) write_invalid_rows(args_, head_of(u));
    for (int64_t i = 1; i < chunks(args_); ++i) merge(parts[0], parts[i]);
    normalise_rows(parts[0]);
    for (int64_t u = 0; u < rows_; ++u) {
      const Head<T> head = head_of(u);
      const int64_t i = head.spans.q.begin + u / group_;
      store_rows(parts[0].acc + u * padded<T>(M_), lanes_[u], rows_of(args_.o, b_, head.h, {i, i + 1}));
      if (args_.statistics.data != nullptr) args_.statistics(b_, head.h, i) = {parts[0].max[u], parts[0].sum[u]};
    }
  }

 private:
  Head<T> head_of(int64_t u) const {
    return Head<T>(args_.pattern, b_, g_ * group_ + u % group_, args_.q.size(1), args_.k.size(1));
  }
  // rows of k or v from a key on
  View<const S, 2> keys_from(const View<const S, 4>& tensor, int64_t key) const {
    const Head<T> head = head_of(0);
    return rows_of(tensor, b_, g_, head.keys({key, head.spans.k.size()}));
  }
  // the keys of a tile that row u sees
  Range seen_of(const Head<T>& head, int64_t u, int64_t tile, Range keys) const {
    const Range seen = head.band.keys(u / group_);
    const Range own = intersect({seen.begin - tile, seen.end - tile}, keys);
    return own.empty() ? Range{keys.begin, keys.begin} : own;
  }

  void load_queries() {
    for (int64_t u = 0; u < rows_; ++u) {
      const Head<T> head = head_of(u);
      const int64_t i = u / group_;
      load_rows(rows_of(args_.q, b_, head.h, head.queries({i, i + 1})), args_.pattern.scale,
                queries_ + u * padded<T>(K_));
    }
  }

  // `keys`: those that some row sees, counted from the tile's first
  void add_tile(int64_t tile, Range keys, const DecodePart<T>& part) {
    multiply_queries(tile, keys);
    finish_scores(tile, keys, part);
    raise_max(part);
    exponentiate(keys, part);
    add_values(tile, keys, part);
  }

  // scores[row][key] = (scale q) k
  void multiply_queries(int64_t tile, Range keys) {
    const View<const S, 2> rows = keys_from(args_.k, tile);
    const bool as_it_lies = rows.stride(1) == 1 && K_ % kPiece<T> == 0;
    const Range whole = whole_vectors(keys);
    for (int64_t key = whole.begin; key < whole.end; key += kLanes<T>) {
      const auto multiply_stream = [&](const auto& stream, int64_t first) {
        for_groups_of_rows(rows_, [&](auto count, int64_t u) {
          multiply_keys<count>(queries_ + u * padded<T>(K_), padded<T>(K_), stream, first,
                               scores_ + u * kTileKeys + key, kTileKeys);
        });
      };
      if (as_it_lies && key + kLanes<T> <= keys.end) {
        multiply_stream(Stream<S>{rows.data, rows.stride(0), K_, rows.size(0)}, key);
      } else {
        load_block(rows.slice(0, key, std::min(keys.end, key + kLanes<T>)), T(1), 1, packed_);
        multiply_stream(Stream<T>{packed_, padded<T>(K_), padded<T>(K_), 0}, 0);
      }
    }
  }

  // acc += P V, sum += P
  void add_values(int64_t tile, Range keys, const DecodePart<T>& part) {
    const View<const S, 2> rows = keys_from(args_.v, tile + keys.begin);
    if (rows.stride(1) == 1 && M_ % kLanes<T> == 0) {
      std::copy(part.acc, part.acc + rows_ * M_, kept_);
      std::copy(part.sum, part.sum + rows_, lanes_);
      multiply_weights(keys, Stream<S>{rows.data, rows.stride(0), M_, rows.size(0)}, part);
      if (is_finite(part.acc, rows_ * M_)) return;
      // whose infinities or NaN they are is seen below
      std::copy(kept_, kept_ + rows_ * M_, part.acc);
      std::copy(lanes_, lanes_ + rows_, part.sum);
    }
    const bool finite = load_rows(rows.slice(0, 0, keys.size()), T(1), packed_);
    if (!finite) replace_non_finite(packed_, keys.size() * padded<T>(M_));
    multiply_weights(keys, Stream<T>{packed_, padded<T>(M_), padded<T>(M_), 0}, part);
    if (!finite) add_non_finite(tile, keys, part);
  }

  template <class Stored>
  void multiply_weights(Range keys, const Stream<Stored>& values, const DecodePart<T>& part) {
    for_groups_of_rows(rows_, [&](auto count, int64_t u) {
      multiply_values<count>(scores_ + u * kTileKeys + keys.begin, kTileKeys, values, keys.size(),
                             part.acc + u * padded<T>(M_), padded<T>(M_), part.sum + u);
    });
  }

  static bool is_finite(const T* data, int64_t count) {
    const Tag<T> d;
    // 0 * x is 0 or, for infinities and NaN, NaN
    Vec<T> zeros = hn::Zero(d);
    for (int64_t i = 0; i < count; i += kLanes<T>) zeros = hn::MulAdd(hn::Load(d, data + i), hn::Zero(d), zeros);
    return hn::AllTrue(d, hn::Eq(zeros, zeros));
  }

  static Range whole_vectors(Range keys) { return {keys.begin / kLanes<T> * kLanes<T>, padded<T>(keys.end)}; }

  // Turns the products into scores, -inf where invisible; lanes_[row] becomes the largest.
  void finish_scores(int64_t tile, Range keys, const DecodePart<T>& part) {
    const Tag<T> d;
    const Range whole = whole_vectors(keys);
    std::copy(part.max, part.max + padded<T>(most_rows_), lanes_);
    for (int64_t u = 0; u < rows_; ++u) {
      const Head<T> head = head_of(u);
      const Range own = seen_of(head, u, tile, keys);
      const T* addend = head.has_addend() ? addend_ : nullptr;
      if (addend != nullptr) fill_row_addend(head, u / group_, tile, whole, own);
      const Vec<T> from = hn::Set(d, static_cast<T>(own.begin)), end = hn::Set(d, static_cast<T>(own.end));
      const Vec<T> position = hn::Set(d, static_cast<T>(head.band.distance(u / group_, tile)));
      Vec<T> largest = hn::Set(d, kMinusInfinity<T>);
      for (int64_t key = whole.begin; key < whole.end; key += kLanes<T>) {
        const Vec<T> at = hn::Iota(d, static_cast<T>(key));
        T* scores = scores_ + u * kTileKeys + key;
        Vec<T> s = hn::Load(d, scores);
        auto visible = hn::And(hn::Ge(at, from), hn::Lt(at, end));
        if (head.changes_scores()) {
          const T* added = addend == nullptr ? nullptr : addend + key;
          s = change_score<T>(head, s, added, hn::Sub(position, at), nullptr);
          if (added != nullptr) {
            visible = hn::AndNot(hn::Eq(hn::Load(d, added), hn::Set(d, kMinusInfinity<T>)), visible);
          }
        }
        s = hn::IfThenElse(visible, s, hn::Set(d, kMinusInfinity<T>));
        hn::Store(s, d, scores);
        largest = max_or_second(d, s, largest);
      }
      lanes_[u] = std::max(lanes_[u], hn::GetLane(hn::MaxOfLanes(d, largest)));
    }
  }

  // keys outside of `own` are not there to be read
  void fill_row_addend(const Head<T>& head, int64_t i, int64_t tile, Range whole, Range own) {
    std::fill(addend_ + whole.begin, addend_ + whole.end, kMinusInfinity<T>);
    fill_addend(head, i, tile, own, 1, addend_);
  }

  // Brings what was gathered below an earlier maximum to the new one.
  void raise_max(const DecodePart<T>& part) {
    const Tag<T> d;
    for (int64_t u = 0; u < rows_; u += kLanes<T>) {
      const Vec<T> before = hn::Load(d, part.max + u);
      const Raise<T> raise(before, hn::Load(d, lanes_ + u));
      hn::Store(raise.max, d, part.max + u);
      if (!raise.changed) continue;
      const Vec<T> factor = raise.factor(before);
      hn::Store(hn::Mul(hn::Load(d, part.sum + u), factor), d, part.sum + u);
      hn::Store(factor, d, lanes_ + u);
      for (int64_t row = u; row < std::min(rows_, u + kLanes<T>); ++row) {
        scale_row(part.acc + row * padded<T>(M_), hn::Set(d, lanes_[row]));
      }
    }
  }

  void scale_row(T* acc, Vec<T> factor) {
    const Tag<T> d;
    for (int64_t c = 0; c < padded<T>(M_); c += kLanes<T>) hn::Store(hn::Mul(hn::Load(d, acc + c), factor), d, acc + c);
  }

  // Replaces scores by exp(score - max).
  void exponentiate(Range keys, const DecodePart<T>& part) {
    const Tag<T> d;
    const Range whole = whole_vectors(keys);
    for (int64_t u = 0; u < rows_; ++u) {
      const Vec<T> max = subtractable<T>(hn::Set(d, part.max[u]));
      for (int64_t key = whole.begin; key < whole.end; key += kLanes<T>) {
        T* at = scores_ + u * kTileKeys + key;
        hn::Store(exp_down(d, hn::Sub(hn::Load(d, at), max)), d, at);
      }
    }
  }

  // Infinities and NaN of V were left out of the product, where they would reach rows that do not see them.
  void add_non_finite(int64_t tile, Range keys, const DecodePart<T>& part) {
    for (int64_t u = 0; u < rows_; ++u) {
      const Head<T> head = head_of(u);
      const Range own = seen_of(head, u, tile, keys);
      if (head.has_addend()) fill_row_addend(head, u / group_, tile, keys, own);
      for (int64_t key = own.begin; key < own.end; ++key) {
        if (head.has_addend() && addend_[key] == kMinusInfinity<T>) continue;
        for (int64_t c = 0; c < M_; ++c) {
          const T value = widen(args_.v(b_, head.spans.k.begin + tile + key, g_, c));
          if (!std::isfinite(value)) part.acc[u * padded<T>(M_) + c] += scores_[u * kTileKeys + key] * value;
        }
      }
    }
  }

  // total = total and part, in this order
  void merge(const DecodePart<T>& total, const DecodePart<T>& part) {
    const Tag<T> d;
    for (int64_t u = 0; u < rows_; u += kLanes<T>) {
      const Merging<T> merging(hn::Load(d, total.max + u), hn::Load(d, part.max + u));
      hn::Store(merging.merged(hn::Load(d, total.sum + u), hn::Load(d, part.sum + u)), d, total.sum + u);
      hn::Store(merging.max, d, total.max + u);
      for (int64_t row = u; row < std::min(rows_, u + kLanes<T>); ++row) merge_row(merging, row, row - u, total, part);
    }
  }

  void merge_row(const Merging<T>& merging, int64_t row, int64_t lane, const DecodePart<T>& total,
                 const DecodePart<T>& part) {
    const Tag<T> d;
    Merging<T> own = merging;
    own.total_factor = hn::Set(d, hn::ExtractLane(merging.total_factor, static_cast<size_t>(lane)));
    own.part_factor = hn::Set(d, hn::ExtractLane(merging.part_factor, static_cast<size_t>(lane)));
    for (int64_t c = row * padded<T>(M_); c < (row + 1) * padded<T>(M_); c += kLanes<T>) {
      hn::Store(own.merged(hn::Load(d, total.acc + c), hn::Load(d, part.acc + c)), d, total.acc + c);
    }
  }

  // lanes_[row] becomes what turns acc into o; max and sum take in the sinks.
  void normalise_rows(const DecodePart<T>& rows) {
    const Tag<T> d;
    const bool has_sink = args_.pattern.sinks.data != nullptr;
    std::fill(lanes_, lanes_ + padded<T>(most_rows_), T(0));
    for (int64_t u = 0; u < rows_ && has_sink; ++u) lanes_[u] = args_.pattern.sinks(g_ * group_ + u % group_);
    for (int64_t u = 0; u < rows_; u += kLanes<T>) {
      Vec<T> max = hn::Load(d, rows.max + u), sum = hn::Load(d, rows.sum + u);
      hn::Store(normalise<T>(max, sum, has_sink, hn::Load(d, lanes_ + u)), d, lanes_ + u);
      hn::Store(max, d, rows.max + u);
      hn::Store(sum, d, rows.sum + u);
    }
  }

  const AttentionForward<S>& args_;
  const int64_t K_, M_, group_, most_rows_;
  int64_t b_ = 0, g_ = 0, rows_ = 0;
  T* queries_;  // packed rows, scaled
  T* packed_;   // packed rows of keys or values that can't be read as they lie
  T* kept_;     // acc before the current tile
  T* scores_;   // [row][key], kTileKeys apart
  T* addend_;   // [key], of one row
  T* lanes_;    // [row]
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
