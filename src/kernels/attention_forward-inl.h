// The forward of one task: rows of one head against all the keys they see, tile by tile.

#if defined(HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include "kernels/attention_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What the rows of a block have gathered from some keys: o = acc / sum once all keys are in.
template <class T>
struct Gathered {
  T* max;  // [lane], largest score
  T* sum;  // [lane], sum of exp(score - max)
  T* acc;  // [column][lane], sum of exp(score - max) v
  bool empty;

  static Gathered take(Arena& arena, int64_t columns) {
    Gathered out;
    out.max = arena.take<T>(kBlockRows<T>);
    out.sum = arena.take<T>(kBlockRows<T>);
    out.acc = arena.take<T>(padded<T>(columns) * kBlockRows<T>);
    out.empty = true;
    return out;
  }

  void clear(int64_t columns) {
    std::fill(max, max + kBlockRows<T>, kMinusInfinity<T>);
    std::fill(sum, sum + kBlockRows<T>, T(0));
    std::fill(acc, acc + columns * kBlockRows<T>, T(0));
    empty = true;
  }
};

template <class T>
void scale_lanes(T* data, int64_t columns, int64_t lane, Vec<T> factor) {
  const Tag<T> d;
  for (int64_t c = 0; c < columns; ++c) {
    T* at = data + c * kBlockRows<T> + lane;
    hn::Store(hn::Mul(hn::Load(d, at), factor), d, at);
  }
}

// total = total and part, in this order; part is then empty.
template <class T>
void merge(Gathered<T>& total, Gathered<T>& part, int64_t columns, int64_t vectors) {
  const Tag<T> d;
  for (int64_t lane = 0; lane < vectors * kLanes<T>; lane += kLanes<T>) {
    const Merging<T> merging(hn::Load(d, total.max + lane), hn::Load(d, part.max + lane));
    hn::Store(merging.merged(hn::Load(d, total.sum + lane), hn::Load(d, part.sum + lane)), d, total.sum + lane);
    hn::Store(merging.max, d, total.max + lane);
    for (int64_t c = 0; c < columns; ++c) {
      T* at = total.acc + c * kBlockRows<T> + lane;
      hn::Store(merging.merged(hn::Load(d, at), hn::Load(d, part.acc + c * kBlockRows<T> + lane)), d, at);
    }
  }
  total.empty = false;
  part.clear(columns);
}

// Replaces scores by exp(score - max) and adds them to sum.
template <class T>
HWY_NOINLINE void exponentiate(T* scores, Range keys, int64_t lane, Vec<T> max, T* sum) {
  const Tag<T> d;
  Vec<T> total = hn::Load(d, sum + lane);
  for (int64_t key = keys.begin; key < keys.end; ++key) {
    T* at = scores + key * kBlockRows<T> + lane;
    const Vec<T> weight = exp_down(d, hn::Sub(hn::Load(d, at), max));
    hn::Store(weight, d, at);
    total = hn::Add(total, weight);
  }
  hn::Store(total, d, sum + lane);
}

// S: the type that q, k, v and o are stored as.
template <class S>
class ForwardWorker {
 public:
  using T = Accumulator<S>;

  // Memory for tasks of up to `rows` rows; an arena without memory only counts.
  ForwardWorker(const AttentionForward<S>& args, int64_t rows, Arena& arena)
      : args_(args), K_(args.q.size(3)), M_(args.v.size(3)), blocks_((rows + kBlockRows<T> - 1) / kBlockRows<T>) {
    keys_ = arena.take<T>(kTileKeys * padded<T>(K_));
    values_ = arena.take<T>(kTileKeys * padded<T>(M_));
    rows_ = arena.take<T>(kBlockRows<T> * padded<T>(std::max(K_, M_)));
    scores_ = arena.take<T>(kTileKeys * kBlockRows<T>);
    tile_max_ = arena.take<T>(kBlockRows<T>);
    addend_ = arena.take<T>(args.pattern.mask.data || args.pattern.bias.data ? kTileKeys * kBlockRows<T> : 0);
    sight_ = arena.take<Sight<T>>(1);
    states_ = arena.take<State>(blocks_);
    for (int64_t i = 0; i < blocks_; ++i) {
      State state;
      state.queries = arena.take<T>(K_ * kBlockRows<T>);
      state.chunk = Gathered<T>::take(arena, M_);
      state.total = args.k.size(1) > kChunkKeys ? Gathered<T>::take(arena, M_) : Gathered<T>{};
      if (states_ != nullptr) new (states_ + i) State(state);
    }
    if (sight_ != nullptr) new (sight_) Sight<T>();
  }

  void run(const Task& task, const Task* next) {
    const Head<T> head(args_.pattern, task.b, task.h, args_.q.size(1), args_.k.size(1));
    group_ = task.h / (args_.q.size(2) / args_.k.size(2));
    if (task.first) write_invalid_rows(args_, head);
    if (task.rows.empty()) return;
    const int64_t blocks = lay_blocks(head, task.rows);
    // blocks see ever later keys
    const Range keys{states_[0].block.seen.begin, states_[blocks - 1].block.seen.end};
    bool first = true;
    for (int64_t tile = keys.begin / kTileKeys * kTileKeys; tile < keys.end; tile += kTileKeys, first = false) {
      const Range tile_keys = intersect(keys, {tile, tile + kTileKeys});
      load_tile(head, tile, tile_keys);
      read_ahead(head, task.rows, intersect(keys, {tile + kTileKeys, tile + 2 * kTileKeys}), next);
      for (int64_t i = 0; i < blocks; ++i) {
        if (first) start(head, states_[i]);
        if (first && i + 1 < blocks) ahead_.add(queries_of(head, states_[i + 1].block.rows));
        if (!intersect(states_[i].block.seen, tile_keys).empty()) add_tile(head, states_[i], tile);
      }
    }
    for (int64_t i = 0; i < blocks; ++i) {
      if (first) start(head, states_[i]);
      finish(head, states_[i]);
    }
  }

 private:
  struct State {
    Block block;
    T* queries;  // [column][lane], multiplied by query_factor()
    Gathered<T> chunk;
    Gathered<T> total;  // of the chunks before
    int64_t chunk_index = 0;
  };

  View<const S, 2> queries_of(const Head<T>& head, Range rows) const {
    return rows_of(args_.q, head.b, head.h, head.queries(rows));
  }
  View<S, 2> outputs_of(const Head<T>& head, Range rows) const {
    return rows_of(args_.o, head.b, head.h, head.queries(rows));
  }

  int64_t lay_blocks(const Head<T>& head, Range rows) {
    int64_t blocks = 0;
    for (int64_t row = rows.begin; row < rows.end; row += kBlockRows<T>) {
      states_[blocks++].block = block_of(head, row, rows.end);
    }
    return blocks;
  }

  void start(const Head<T>& head, State& state) {
    state.chunk_index = 0;
    state.chunk.clear(M_);
    if (state.total.acc != nullptr) state.total.clear(M_);
    load_block(queries_of(head, state.block.rows), head.query_factor(), state.block.vectors, rows_);
    transpose_rows(rows_, K_, state.block.vectors, state.queries);
  }

  void load_tile(const Head<T>& head, int64_t tile, Range keys) {
    const View<const S, 2> tile_keys = rows_of(args_.k, head.b, group_, head.keys({tile, keys.end}));
    readable_keys_ = readable(tile_keys, keys.begin - tile, keys_);
    T* values = values_ + (keys.begin - tile) * padded<T>(M_);
    values_finite_ = load_rows(rows_of(args_.v, head.b, group_, head.keys(keys)), T(1), values);
    if (!values_finite_) replace_non_finite(values, keys.size() * padded<T>(M_));
  }

  // The next tile, or after the last one the outputs and what the next task begins with.
  void read_ahead(const Head<T>& head, Range rows, Range keys, const Task* next) {
    ahead_.clear();
    if (!keys.empty()) {
      ahead_.add(rows_of(args_.v, head.b, group_, head.keys(keys)));
      ahead_.add(rows_of(args_.k, head.b, group_, head.keys(keys)));
      return;
    }
    if (next != nullptr && !next->rows.empty()) {
      const Head<T> other(args_.pattern, next->b, next->h, args_.q.size(1), args_.k.size(1));
      const int64_t group = next->h / (args_.q.size(2) / args_.k.size(2));
      const Range seen = other.band.seen_by_some(next->rows);
      const Range first = other.keys({seen.begin, std::min(seen.end, seen.begin + kTileKeys)});
      ahead_.add(rows_of(args_.v, next->b, group, first));
      ahead_.add(rows_of(args_.k, next->b, group, first));
      ahead_.add(queries_of(other, intersect(next->rows, {next->rows.begin, next->rows.begin + kBlockRows<T>})));
    }
    ahead_.add(outputs_of(head, rows));
  }

  void add_tile(const Head<T>& head, State& state, int64_t tile) {
    if (tile / kChunkKeys != state.chunk_index) {
      if (!state.chunk.empty) merge(state.total, state.chunk, M_, state.block.vectors);
      state.chunk_index = tile / kChunkKeys;
    }
    const int64_t vectors = state.block.vectors;
    look(head, state.block, tile, addend_, *sight_);
    raw_scores(head, *sight_, state.queries, readable_keys_, K_, scores_, ahead_);
    std::copy(state.chunk.max, state.chunk.max + kBlockRows<T>, tile_max_);
    finish_scores<T>(head, *sight_, vectors, scores_, nullptr, tile_max_);

    raise_max(state.chunk, vectors);
    const Tag<T> d;
    for (int64_t v = 0, lane = 0; v < vectors; ++v, lane += kLanes<T>) {
      const Vec<T> max = subtractable<T>(hn::Load(d, tile_max_ + lane));
      exponentiate(scores_, sight_->some[v], lane, max, state.chunk.sum);
    }
    add_values(state.chunk);
    if (!values_finite_) add_non_finite(head, state, tile);
    state.chunk.empty = false;
  }

  // acc += P V
  void add_values(Gathered<T>& chunk) {
    const int64_t width = padded<T>(M_);
    for (int i = 0; i < sight_->count; ++i) {
      const auto& piece = sight_->pieces[i];
      multiply<Into::kAdd>(StepsOfRows<T>{values_ + piece.keys.begin * width, width}, M_,
                           scores_ + piece.keys.begin * kBlockRows<T> + piece.lane, kBlockRows<T>, piece.vectors,
                           piece.keys.size(), chunk.acc + piece.lane, kBlockRows<T>, ahead_);
    }
  }

  // Brings what was gathered below an earlier maximum to the new one.
  void raise_max(Gathered<T>& chunk, int64_t vectors) {
    const Tag<T> d;
    for (int64_t lane = 0; lane < vectors * kLanes<T>; lane += kLanes<T>) {
      const Vec<T> before = hn::Load(d, chunk.max + lane);
      const Raise<T> raise(before, hn::Load(d, tile_max_ + lane));
      if (!chunk.empty && raise.changed) {
        const Vec<T> factor = raise.factor(before);
        hn::Store(hn::Mul(hn::Load(d, chunk.sum + lane), factor), d, chunk.sum + lane);
        scale_lanes<T>(chunk.acc, M_, lane, factor);
      }
      hn::Store(raise.max, d, chunk.max + lane);
    }
  }

  // Infinities and NaN of V were left out of the product, where they would reach rows that do not see them.
  void add_non_finite(const Head<T>& head, State& state, int64_t tile) {
    const Tag<T> d;
    for (int64_t v = 0, lane = 0; v < state.block.vectors; ++v, lane += kLanes<T>) {
      for (int64_t key = sight_->some[v].begin; key < sight_->some[v].end; ++key) {
        for (int64_t c = 0; c < M_; ++c) {
          const T value = widen(args_.v(head.b, head.spans.k.begin + tile + key, group_, c));
          if (std::isfinite(value)) continue;
          T* at = state.chunk.acc + c * kBlockRows<T> + lane;
          const Vec<T> before = hn::Load(d, at), weight = hn::Load(d, scores_ + key * kBlockRows<T> + lane);
          const Vec<T> after = hn::MulAdd(weight, hn::Set(d, value), before);
          hn::Store(hn::IfThenElse(sight_->sees(key, lane), after, before), d, at);
        }
      }
    }
  }

  void finish(const Head<T>& head, State& state) {
    const int64_t vectors = state.block.vectors;
    if (state.total.acc != nullptr && !state.total.empty) {
      if (!state.chunk.empty) merge(state.total, state.chunk, M_, vectors);
      std::swap(state.total, state.chunk);
    }
    T* factors = tile_max_;
    normalise_rows(head, state.chunk, vectors, factors);
    transpose_columns(state.chunk.acc, M_, vectors, rows_);
    store_rows(rows_, factors, 1, outputs_of(head, state.block.rows));
    if (args_.statistics.data == nullptr) return;
    const Range rows = head.queries(state.block.rows);
    const View<RowStatistic<T>, 1> statistics = args_.statistics[head.b][head.h].slice(0, rows.begin, rows.end);
    for (int64_t i = 0; i < rows.size(); ++i) statistics(i) = {state.chunk.max[i], state.chunk.sum[i]};
  }

  // What turns acc into o; max and sum take in the sink.
  void normalise_rows(const Head<T>& head, Gathered<T>& rows, int64_t vectors, T* factors) {
    const Tag<T> d;
    const bool has_sink = args_.pattern.sinks.data != nullptr;
    const Vec<T> sink = hn::Set(d, has_sink ? args_.pattern.sinks(head.h) : T(0));
    for (int64_t lane = 0; lane < vectors * kLanes<T>; lane += kLanes<T>) {
      Vec<T> max = hn::Load(d, rows.max + lane), sum = hn::Load(d, rows.sum + lane);
      hn::Store(normalise<T>(max, sum, has_sink, sink), d, factors + lane);
      hn::Store(max, d, rows.max + lane);
      hn::Store(sum, d, rows.sum + lane);
    }
  }

  const AttentionForward<S>& args_;
  const int64_t K_, M_, blocks_;
  int64_t group_ = 0;  // key/value head of the task
  T* keys_;            // packed rows of the current tile, when they are not read where they lie
  RowsOfSteps<T> readable_keys_{};
  T* values_;  // packed rows of the current tile, infinities and NaN replaced by 0
  T* rows_;    // packed rows of a block, on their way in or out
  bool values_finite_ = true;
  T* scores_;  // [key][lane]
  T* tile_max_;
  T* addend_;
  Sight<T>* sight_;
  ReadAhead ahead_;
  State* states_;  // of the task's blocks
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
