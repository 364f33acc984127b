#include "headlight/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_rows.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "headlight/base/thread_pool.h"
#include "kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// Rows of one head of one batch entry, counted from the first that is asked for; done by one worker.
struct RowsTask {
  int64_t b, n;
  Range rows;
};

// How a call is cut into tasks.
template <class S>
class RowsPlan {
 public:
  RowsPlan(const AttentionRows<S>& args, int threads)
      : rows_(args.weights.size(2)), heads_(args.weights.size(1)), all_heads_(args.weights.size(0) * heads_) {
    constexpr int64_t kBlock = kBlockRows<Accumulator<S>>;
    const auto count = [&](int64_t rows_per_task) {
      return all_heads_ * ((rows_ + rows_per_task - 1) / rows_per_task);
    };
    rows_per_task_ = rows_for_tasks(kBlock, threads, count);
    count_ = count(rows_per_task_);
  }

  int64_t count() const { return count_; }
  int64_t rows_per_task() const { return std::min(rows_, rows_per_task_); }
  // the last rows first, which see most when attention is causal
  RowsTask task(int64_t i) const {
    const int64_t begin = (count_ - 1 - i) / all_heads_ * rows_per_task_;
    const int64_t head = i % all_heads_;
    return {head / heads_, head % heads_, {begin, std::min(rows_, begin + rows_per_task_)}};
  }

 private:
  int64_t rows_, heads_, all_heads_, rows_per_task_, count_;
};

// The weights of the rows of a task, tile by tile.
// S: the type that q and k are stored as.
template <class S>
class RowsWorker {
 public:
  using T = Accumulator<S>;

  // Memory for tasks of up to `rows` rows; an arena without memory only counts.
  RowsWorker(const AttentionRows<S>& args, int64_t rows, Arena& arena) : args_(args), K_(args.q.size(3)) {
    keys_ = arena.take<T>(kTileKeys * padded<T>(K_));
    rows_ = arena.take<T>(kBlockRows<T> * std::max(kTileKeys, padded<T>(K_)));
    scores_ = arena.take<T>(kTileKeys * kBlockRows<T>);
    addend_ = arena.take<T>(args.pattern.mask.data || args.pattern.bias.data ? kTileKeys * kBlockRows<T> : 0);
    sight_ = arena.take<Sight<T>>(1);
    if (sight_ != nullptr) new (sight_) Sight<T>();
    const int64_t blocks = (rows + kBlockRows<T> - 1) / kBlockRows<T>;
    states_ = arena.take<State>(blocks);
    for (int64_t i = 0; i < blocks; ++i) {
      T* queries = arena.take<T>(K_ * kBlockRows<T>);
      auto* weights = arena.take<RowWeights<T>>(1);
      if (states_ != nullptr) new (states_ + i) State{{}, {}, queries, weights};
    }
  }

  void run(const RowsTask& task, const RowsTask* next) {
    const Head<T> head = head_of(task);
    const View<T, 2> out = args_.weights[task.b][task.n].slice(0, task.rows.begin, task.rows.end);
    const int64_t begin = args_.row_begin + task.rows.begin;
    const Range valid = intersect({begin, begin + out.size(0)}, head.spans.q);
    if (valid.empty()) return store_zeros(out);
    store_zeros(out.slice(0, 0, valid.begin - begin));
    store_zeros(out.slice(0, valid.end - begin, out.size(0)));
    const Range rows{valid.begin - head.spans.q.begin, valid.end - head.spans.q.begin};
    add_keys(head, start(head, rows, out.slice(0, valid.begin - begin, valid.end - begin)), next);
  }

 private:
  struct State {
    Block block;
    View<T, 2> out;
    T* queries;  // [column][lane], multiplied by query_factor()
    RowWeights<T>* weights;
  };

  Head<T> head_of(const RowsTask& task) const {
    return {args_.pattern, task.b, args_.head_begin + task.n, args_.q.size(1), args_.k.size(1)};
  }
  View<const S, 2> keys_of(const Head<T>& head, Range keys) const {
    return rows_of(args_.k, head.b, head.h / (args_.q.size(2) / args_.k.size(2)), head.keys(keys));
  }
  View<const S, 2> queries_of(const Head<T>& head, Range rows) const {
    return rows_of(args_.q, head.b, head.h, head.queries(rows));
  }

  // Lays `rows` into blocks, and says how many. out: their weights.
  int64_t start(const Head<T>& head, Range rows, View<T, 2> out) {
    int64_t blocks = 0;
    for (int64_t row = rows.begin; row < rows.end; row += kBlockRows<T>) {
      State& state = states_[blocks++];
      const Block block = block_of(head, row, rows.end);
      state.block = block;
      state.out = out.slice(0, block.rows.begin - rows.begin, block.rows.end - rows.begin);
      load_block(queries_of(head, block.rows), head.query_factor(), block.vectors, rows_);
      transpose_rows(rows_, K_, block.vectors, state.queries);
      const Range queries = head.queries(block.rows);
      state.weights->load(args_.statistics[head.b][head.h].slice(0, queries.begin, queries.end));
      for (int64_t v = 0; v < block.vectors; ++v) store_unseen(head, state, v);
    }
    return blocks;
  }

  // Zeros for the keys that no row of a vector sees: all others are in some tile.
  void store_unseen(const Head<T>& head, const State& state, int64_t v) {
    const View<T, 2> out = rows_of_vector(state, v);
    const int64_t row = state.block.rows.begin + v * kLanes<T>;
    const Range some = head.band.seen_by_some({row, row + out.size(0)});
    if (some.empty()) return store_zeros(out);
    const Range keys = head.keys(some);
    store_zeros(out.slice(1, 0, keys.begin));
    store_zeros(out.slice(1, keys.end, out.size(1)));
  }

  static View<T, 2> rows_of_vector(const State& state, int64_t v) {
    return state.out.slice(0, v * kLanes<T>, std::min(state.out.size(0), (v + 1) * kLanes<T>));
  }

  void add_keys(const Head<T>& head, int64_t blocks, const RowsTask* next) {
    // blocks see ever later keys
    const Range keys{states_[0].block.seen.begin, states_[blocks - 1].block.seen.end};
    for (int64_t tile = keys.begin / kTileKeys * kTileKeys; tile < keys.end; tile += kTileKeys) {
      const Range tile_keys = intersect(keys, {tile, tile + kTileKeys});
      load_rows(keys_of(head, tile_keys), T(1), keys_ + (tile_keys.begin - tile) * padded<T>(K_));
      read_ahead(head, intersect(keys, {tile + kTileKeys, tile + 2 * kTileKeys}), next);
      for (int64_t i = 0; i < blocks; ++i) {
        if (!intersect(states_[i].block.seen, tile_keys).empty()) add_tile(head, states_[i], tile);
      }
    }
  }

  // The next tile, or after the last one what the next task begins with.
  void read_ahead(const Head<T>& head, Range keys, const RowsTask* next) {
    ahead_.clear();
    if (!keys.empty()) return ahead_.add(keys_of(head, keys));
    if (next == nullptr) return;
    const Head<T> other = head_of(*next);
    const int64_t begin = args_.row_begin - other.spans.q.begin;
    const Range rows = intersect({begin + next->rows.begin, begin + next->rows.end}, {0, other.spans.q.size()});
    if (rows.empty()) return;
    const Range seen = other.band.seen_by_some(rows);
    ahead_.add(keys_of(other, {seen.begin, std::min(seen.end, seen.begin + kTileKeys)}));
    ahead_.add(queries_of(other, rows));
  }

  void add_tile(const Head<T>& head, const State& state, int64_t tile) {
    look(head, state.block, tile, addend_, *sight_);
    raw_scores(head, *sight_, state.queries, keys_, K_, scores_, ahead_);
    for (int64_t v = 0; v < state.block.vectors; ++v) {
      const Range keys = sight_->some[v];
      head.changes_scores() ? weigh<true>(head, *state.weights, v) : weigh<false>(head, *state.weights, v);
      const int64_t first = head.spans.k.begin + tile;
      store_rows(rows_, T(1), rows_of_vector(state, v).slice(1, first + keys.begin, first + keys.end));
    }
  }

  // Turns the raw scores of one vector for the keys it sees into packed rows of weights.
  template <bool kChanged>
  HWY_NOINLINE void weigh(const Head<T>& head, const RowWeights<T>& weights, int64_t v) {
    const Range keys = sight_->some[v], all = sight_->all[v];
    const int64_t lane = v * kLanes<T>, width = padded<T>(keys.size());
    for (int64_t key = keys.begin; key < keys.end; key += kPiece<T>) {
      const bool tested = key < all.begin || key + kPiece<T> > all.end;
      const auto square = tested ? weigh_square<kChanged, true>(head, weights, lane, key, keys.end - 1)
                                 : weigh_square<kChanged, false>(head, weights, lane, key, keys.end - 1);
      square.store(rows_ + key - keys.begin, width);
    }
  }

  // The weights of kPiece keys, the last of them again for any after it, as rows.
  template <bool kChanged, bool kTested>
  HWY_INLINE Square<T> weigh_square(const Head<T>& head, const RowWeights<T>& weights, int64_t lane, int64_t first,
                                    int64_t last) {
    const Tag<T> d;
    const Vec<T> max = hn::Load(d, weights.max + lane), inverse = hn::Load(d, weights.inverse + lane);
    Square<T> square;
    for (int64_t k = 0; k < kPiece<T>; ++k) {
      const int64_t key = std::min(first + k, last), at = key * kBlockRows<T> + lane;
      Vec<T> s = hn::Load(d, scores_ + at);
      if constexpr (kChanged) {
        const Vec<T> distance = hn::Sub(hn::Load(d, sight_->distance + lane), hn::Set(d, static_cast<T>(key)));
        s = change_score<T>(head, s, sight_->addend == nullptr ? nullptr : sight_->addend + at, distance, nullptr);
      }
      const Vec<T> weight = hn::Mul(exp_down(d, hn::Sub(s, max)), inverse);
      square.v[k] = kTested ? hn::IfThenElse(sight_->sees(key, lane), weight, hn::Zero(d)) : weight;
    }
    square.transpose();
    return square;
  }

  const AttentionRows<S>& args_;
  const int64_t K_;
  T* keys_;    // packed rows of the current tile
  T* rows_;    // packed rows, on their way in or out
  T* scores_;  // [key][lane]
  T* addend_;
  Sight<T>* sight_;
  ReadAhead ahead_;
  State* states_;  // of the task's blocks
};

template <class S>
void rows(const AttentionRows<S>& args) {
  ThreadPool& pool = default_pool();
  const RowsPlan<S> plan(args, pool.threads());
  Arena counter;
  RowsWorker<S>(args, plan.rows_per_task(), counter);
  const int64_t per_worker = counter.used();
  std::byte* memory = scratch(static_cast<std::size_t>(pool.threads() * per_worker));
  pool.run(plan.count(), [&](int64_t i, int worker) {
    Arena arena(memory + worker * per_worker);
    const int64_t likely = i + pool.threads();
    const RowsTask next = plan.task(std::min(likely, plan.count() - 1));
    RowsWorker<S>(args, plan.rows_per_task(), arena).run(plan.task(i), likely < plan.count() ? &next : nullptr);
  });
}

void rows_float(const AttentionRows<float>& args) { rows(args); }
void rows_double(const AttentionRows<double>& args) { rows(args); }
void rows_bf16(const AttentionRows<BFloat16>& args) { rows(args); }
void rows_f16(const AttentionRows<Float16>& args) { rows(args); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(rows_float);
HWY_EXPORT(rows_double);
HWY_EXPORT(rows_bf16);
HWY_EXPORT(rows_f16);

void dispatch(const AttentionRows<float>& args) { HEADLIGHT_DISPATCH(rows_float)(args); }
void dispatch(const AttentionRows<double>& args) { HEADLIGHT_DISPATCH(rows_double)(args); }
void dispatch(const AttentionRows<BFloat16>& args) { HEADLIGHT_DISPATCH(rows_bf16)(args); }
void dispatch(const AttentionRows<Float16>& args) { HEADLIGHT_DISPATCH(rows_f16)(args); }

}  // namespace

template <class T>
void attention_rows(const AttentionRows<T>& args) {
  check(args);
  dispatch(args);
}

template void attention_rows<float>(const AttentionRows<float>&);
template void attention_rows<double>(const AttentionRows<double>&);
template void attention_rows<BFloat16>(const AttentionRows<BFloat16>&);
template void attention_rows<Float16>(const AttentionRows<Float16>&);

}  // namespace headlight
#endif
