// Weights from the statistics of a finished forward, tile by tile: what attention_rows and attention_sums have in
// common.

#if defined(HEADLIGHT_KERNELS_ATTENTION_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_WEIGHTS_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_WEIGHTS_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_WEIGHTS_INL_H_
#endif

#include "headlight/base/thread_pool.h"
#include "kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of q, of one head of one batch entry; done by one worker.
struct WeightsTask {
  int64_t b, h;
  Range rows;
};

// How the rows of some heads are cut into tasks. Those of one head may be all that is asked for: tasks as short as the
// forward's would then read the keys too often for what they do with them.
class WeightsPlan {
 public:
  WeightsPlan(int64_t entries, Range heads, Range rows, int64_t block, int threads)
      : heads_(heads), rows_(rows), all_heads_(entries * heads.size()) {
    const auto count = [&](int64_t rows_per_task) {
      return all_heads_ * ((rows_.size() + rows_per_task - 1) / rows_per_task);
    };
    rows_per_task_ = rows_for_tasks(block, threads, count, kTasksPerThread / 2);
    count_ = count(rows_per_task_);
  }

  int64_t count() const { return count_; }
  int64_t rows_per_task() const { return std::min(rows_.size(), rows_per_task_); }
  // the last rows first, which see most when attention is causal
  WeightsTask task(int64_t i) const {
    const int64_t begin = rows_.begin + (count_ - 1 - i) / all_heads_ * rows_per_task_;
    const int64_t head = i % all_heads_;
    return {head / heads_.size(),
            heads_.begin + head % heads_.size(),
            {begin, std::min(rows_.end, begin + rows_per_task_)}};
  }

 private:
  Range heads_, rows_;
  int64_t all_heads_, rows_per_task_, count_;
};

// Does all tasks of a plan, each by a Worker(args, rows of a task, arena).run(task, next task or null).
template <class Worker, class Args>
void run_tasks(const Args& args, const WeightsPlan& plan) {
  ThreadPool& pool = default_pool();
  Arena counter;
  Worker(args, plan.rows_per_task(), counter);
  const int64_t per_worker = counter.used();
  std::byte* memory = scratch(static_cast<std::size_t>(pool.threads() * per_worker));
  pool.run(plan.count(), [&](int64_t i, int worker) {
    Arena arena(memory + worker * per_worker);
    const int64_t likely = i + pool.threads();
    const WeightsTask next = plan.task(std::min(likely, plan.count() - 1));
    Worker(args, plan.rows_per_task(), arena).run(plan.task(i), likely < plan.count() ? &next : nullptr);
  });
}

// The scores of one task in tiles, and the weights that they become.
// S: the type that q and k are stored as.
template <class S>
class WeightTiles {
 public:
  using T = Accumulator<S>;

  // Memory for tasks of up to `rows` rows; an arena without memory only counts. args: AttentionRows or AttentionSums.
  template <class Args>
  WeightTiles(const Args& args, int64_t rows, Arena& arena)
      : q_(args.q), k_(args.k), statistics_(args.statistics), pattern_(args.pattern), K_(q_.size(3)) {
    keys_ = arena.take<T>(kTileKeys * padded<T>(K_));
    rows_ = arena.take<T>(kBlockRows<T> * padded<T>(K_));
    scores_ = arena.take<T>(kTileKeys * kBlockRows<T>);
    addend_ = arena.take<T>(pattern_.mask.data || pattern_.bias.data ? kTileKeys * kBlockRows<T> : 0);
    sight_ = arena.take<Sight<T>>(1);
    if (sight_ != nullptr) new (sight_) Sight<T>();
    const int64_t blocks = blocks_of(rows);
    states_ = arena.take<State>(blocks);
    for (int64_t i = 0; i < blocks; ++i) {
      T* queries = arena.take<T>(K_ * kBlockRows<T>);
      auto* weights = arena.take<RowWeights<T>>(1);
      if (states_ != nullptr) new (states_ + i) State{{}, queries, weights};
    }
  }

  // blocks that `rows` rows make
  static int64_t blocks_of(int64_t rows) { return (rows + kBlockRows<T> - 1) / kBlockRows<T>; }

  Head<T> head_of(const WeightsTask& task) const { return {pattern_, task.b, task.h, q_.size(1), k_.size(1)}; }

  // The valid rows of a task, counted from the first valid one.
  static Range valid_rows(const Head<T>& head, const WeightsTask& task) {
    const Range valid = intersect(task.rows, head.spans.q);
    return {valid.begin - head.spans.q.begin, valid.end - head.spans.q.begin};
  }

  // Lays `rows`, counted from the first valid one, into blocks_of(rows) blocks. There must be some.
  void lay(const Head<T>& head, Range rows) {
    blocks_ = 0;
    for (int64_t row = rows.begin; row < rows.end; row += kBlockRows<T>) {
      State& state = states_[blocks_++];
      const Block block = state.block = block_of(head, row, rows.end);
      load_block(queries_of(head, block.rows), head.query_factor(), block.vectors, rows_);
      transpose_rows(rows_, K_, block.vectors, state.queries);
      const Range queries = head.queries(block.rows);
      state.weights->load(statistics_[head.b][head.h].slice(0, queries.begin, queries.end));
    }
  }
  int64_t blocks() const { return blocks_; }
  const Block& block(int64_t i) const { return states_[i].block; }
  const RowWeights<T>& statistics(int64_t i) const { return *states_[i].weights; }

  // For each tile that block i sees, in rising order, calls use(i, tile's first key). sight() and scores() are then
  // of this block and tile.
  template <class Use>
  void each_tile(const Head<T>& head, const WeightsTask* next, Use use) {
    // blocks see ever later keys
    const Range keys{states_[0].block.seen.begin, states_[blocks_ - 1].block.seen.end};
    for (int64_t tile = keys.begin / kTileKeys * kTileKeys; tile < keys.end; tile += kTileKeys) {
      const Range tile_keys = intersect(keys, {tile, tile + kTileKeys});
      const RowsOfSteps<T> rows = readable(keys_of(head, {tile, tile_keys.end}), tile_keys.begin - tile, keys_);
      read_ahead(head, intersect(keys, {tile + kTileKeys, tile + 2 * kTileKeys}), next);
      for (int64_t i = 0; i < blocks_; ++i) {
        const State& state = states_[i];
        if (intersect(state.block.seen, tile_keys).empty()) continue;
        look(head, state.block, tile, addend_, *sight_);
        raw_scores(head, *sight_, state.queries, rows, K_, scores_, ahead_);
        use(i, tile);
      }
    }
  }

  const Sight<T>& sight() const { return *sight_; }
  // [key][lane], before cap, bias and slope
  T* scores() { return scores_; }

  // The score of a key of the tile with one vector of queries.
  template <bool kChanged>
  HWY_INLINE Vec<T> score(const Head<T>& head, int64_t key, int64_t lane) const {
    const Tag<T> d;
    const int64_t at = key * kBlockRows<T> + lane;
    const Vec<T> raw = hn::Load(d, scores_ + at);
    if constexpr (!kChanged) return raw;
    const Vec<T> distance = hn::Sub(hn::Load(d, sight_->distance + lane), hn::Set(d, static_cast<T>(key)));
    return change_score<T>(head, raw, sight_->addend == nullptr ? nullptr : sight_->addend + at, distance, nullptr);
  }

 private:
  struct State {
    Block block;
    T* queries;  // [column][lane], multiplied by query_factor()
    RowWeights<T>* weights;
  };

  View<const S, 2> keys_of(const Head<T>& head, Range keys) const {
    return rows_of(k_, head.b, head.h / (q_.size(2) / k_.size(2)), head.keys(keys));
  }
  View<const S, 2> queries_of(const Head<T>& head, Range rows) const {
    return rows_of(q_, head.b, head.h, head.queries(rows));
  }

  // The next tile, or after the last one what the next task begins with.
  void read_ahead(const Head<T>& head, Range keys, const WeightsTask* next) {
    ahead_.clear();
    if (!keys.empty()) return ahead_.add(keys_of(head, keys));
    if (next == nullptr) return;
    const Head<T> other = head_of(*next);
    const Range rows = valid_rows(other, *next);
    if (rows.empty()) return;
    const Range seen = other.band.seen_by_some(rows);
    ahead_.add(keys_of(other, {seen.begin, std::min(seen.end, seen.begin + kTileKeys)}));
    ahead_.add(queries_of(other, rows));
  }

  const View<const S, 4>& q_;
  const View<const S, 4>& k_;
  const View<const RowStatistic<T>, 3>& statistics_;
  const AttentionPattern<T>& pattern_;
  const int64_t K_;
  T* keys_;    // packed rows of the current tile, when they are not read where they lie
  T* rows_;    // packed rows of queries, on their way in
  T* scores_;  // [key][lane]
  T* addend_;
  Sight<T>* sight_;
  ReadAhead ahead_;
  State* states_;  // of the task's blocks
  int64_t blocks_ = 0;
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
