#include "headlight/kernels/attention_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_sums.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/attention_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// Sums of the weights of the rows of a task. A tile of weights is never anywhere but in the first cache.
template <class S>
class SumsWorker {
 public:
  using T = Accumulator<S>;

  SumsWorker(const AttentionSums<S>& args, int64_t rows, Arena& arena)
      : args_(args), N_(args.chosen.size(2)), tiles_(args, rows, arena) {
    const int64_t blocks = tiles_.blocks_of(rows);
    totals_ = arena.take<Totals>(blocks);
    chosen_ = arena.take<int64_t>(blocks * N_ * kBlockRows<T>);
    weights_ = arena.take<T>(blocks * N_ * kBlockRows<T>);
  }

  void run(const WeightsTask& task, const WeightsTask* next) {
    const Head<T> head = tiles_.head_of(task);
    const Range rows = tiles_.valid_rows(head, task);
    for (int64_t i = task.rows.begin; i < task.rows.end; ++i) {
      if (rows.empty() || i < head.queries(rows).begin || i >= head.queries(rows).end) set_zeros(task, i);
    }
    if (rows.empty()) return;
    tiles_.lay(head, rows);
    for (int64_t i = 0; i < tiles_.blocks(); ++i) start(head, i);
    tiles_.each_tile(head, next, [&](int64_t i, int64_t tile) { add_tile(head, i, tile); });
    for (int64_t i = 0; i < tiles_.blocks(); ++i) finish(head, i);
  }

 private:
  // Of the rows of a block, by lane.
  struct Totals {
    double sum[kBlockRows<T>];
    double exponent[kBlockRows<T>];  // sum of P (score - max)
    double distance[kBlockRows<T>];
  };
  // The same of one vector of rows and one tile.
  struct Part {
    Vec<T> sum, exponent, distance;
  };

  bool wants_moments() const { return args_.entropy.data != nullptr || args_.distance.data != nullptr; }

  void start(const Head<T>& head, int64_t i) {
    totals_[i] = {};
    std::fill_n(weights_ + i * N_ * kBlockRows<T>, N_ * kBlockRows<T>, T(0));
    const Range rows = head.queries(tiles_.block(i).rows);
    for (int64_t n = 0; n < N_; ++n) {
      int64_t* keys = chosen_ + (i * N_ + n) * kBlockRows<T>;
      for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) {
        const int64_t key = lane < rows.size() ? args_.chosen(head.b, rows.begin + lane, n) : -1;
        keys[lane] = key >= head.spans.k.begin && key < head.spans.k.end ? key - head.spans.k.begin : -1;
      }
    }
  }

  void add_tile(const Head<T>& head, int64_t i, int64_t tile) {
    const auto add =
        head.changes_scores()
            ? (wants_moments() ? &SumsWorker::add_vector<true, true> : &SumsWorker::add_vector<true, false>)
            : (wants_moments() ? &SumsWorker::add_vector<false, true> : &SumsWorker::add_vector<false, false>);
    for (int64_t v = 0; v < tiles_.block(i).vectors; ++v) (this->*add)(head, i, tile, v);
    for (int64_t n = 0; n < N_; ++n) take_chosen(i, tile, n);
  }

  // Replaces the scores of one vector by weights, and adds them to the totals.
  template <bool kChanged, bool kMoments>
  HWY_NOINLINE void add_vector(const Head<T>& head, int64_t i, int64_t tile, int64_t v) {
    const Tag<T> d;
    const int64_t lane = v * kLanes<T>;
    const Range some = tiles_.sight().some[v], all = tiles_.sight().all[v];
    const auto from_tile = static_cast<T>(head.band.distance(tiles_.block(i).rows.begin + lane, tile));
    const Vec<T> place = hn::Iota(d, from_tile);
    Part part{hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    add_run<kChanged, kMoments, true>(head, i, lane, {some.begin, all.begin}, place, part);
    add_run<kChanged, kMoments, false>(head, i, lane, all, place, part);
    add_run<kChanged, kMoments, true>(head, i, lane, {all.end, some.end}, place, part);
    add_lanes(part.sum, totals_[i].sum + lane);
    if constexpr (kMoments) {
      add_lanes(part.exponent, totals_[i].exponent + lane);
      add_lanes(part.distance, totals_[i].distance + lane);
    }
  }

  // place: p - tile's first key
  template <bool kChanged, bool kMoments, bool kTested>
  HWY_INLINE void add_run(const Head<T>& head, int64_t i, int64_t lane, Range run, Vec<T> place, Part& part) {
    const Tag<T> d;
    const RowWeights<T>& row = tiles_.statistics(i);
    const Vec<T> max = hn::Load(d, row.max + lane), inverse = hn::Load(d, row.inverse + lane);
    for (int64_t key = run.begin; key < run.end; ++key) {
      Vec<T> exponent = hn::Sub(tiles_.template score<kChanged>(head, key, lane), max);
      // where the weight is 0 and this would be -inf
      if constexpr (kMoments) exponent = max_or_second(d, hn::Set(d, ExpDown<T>::kLowest), exponent);
      Vec<T> weight = hn::Mul(exp_down(d, exponent), inverse);
      if constexpr (kTested) {
        const auto sees = tiles_.sight().sees(key, lane);
        weight = hn::IfThenElseZero(sees, weight);
        exponent = hn::IfThenElseZero(sees, exponent);
      }
      hn::Store(weight, d, tiles_.scores() + key * kBlockRows<T> + lane);
      part.sum = hn::Add(part.sum, weight);
      if constexpr (kMoments) {
        const Vec<T> distance = hn::Abs(hn::Sub(place, hn::Set(d, static_cast<T>(key))));
        part.exponent = hn::MulAdd(weight, exponent, part.exponent);
        part.distance = hn::MulAdd(weight, distance, part.distance);
      }
    }
  }

  static void add_lanes(Vec<T> part, double* totals) {
    alignas(64) T lanes[kLanes<T>];
    hn::Store(part, Tag<T>(), lanes);
    for (int64_t lane = 0; lane < kLanes<T>; ++lane) totals[lane] += static_cast<double>(lanes[lane]);
  }

  // The n-th chosen weights of the block that are in the tile.
  void take_chosen(int64_t i, int64_t tile, int64_t n) {
    const int64_t* keys = chosen_ + (i * N_ + n) * kBlockRows<T>;
    T* weights = weights_ + (i * N_ + n) * kBlockRows<T>;
    bool any = false;
    for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) any |= keys[lane] >= tile && keys[lane] < tile + kTileKeys;
    for (int64_t lane = 0; any && lane < tiles_.block(i).rows.size(); ++lane) {
      const Range some = tiles_.sight().some[lane / kLanes<T>];
      const int64_t key = keys[lane] - tile;
      if (key >= some.begin && key < some.end) weights[lane] = tiles_.scores()[key * kBlockRows<T> + lane];
    }
  }

  void finish(const Head<T>& head, int64_t i) {
    const Range rows = head.queries(tiles_.block(i).rows);
    const Totals& totals = totals_[i];
    for (int64_t lane = 0; lane < rows.size(); ++lane) {
      const int64_t row = rows.begin + lane;
      if (args_.sum.data != nullptr) args_.sum(head.b, head.h, row) = totals.sum[lane];
      if (args_.distance.data != nullptr) args_.distance(head.b, head.h, row) = totals.distance[lane];
      if (args_.entropy.data != nullptr) {
        // - sum of P ln P with ln P = score - max - ln(sum of exponentials)
        const T sum = args_.statistics(head.b, head.h, row).sum;
        const double logarithm = sum == T(0) ? 0.0 : std::log(static_cast<double>(sum));
        args_.entropy(head.b, head.h, row) = totals.sum[lane] * logarithm - totals.exponent[lane];
      }
      if (args_.weights.data == nullptr) continue;
      for (int64_t n = 0; n < N_; ++n) {
        args_.weights(head.b, head.h, row, n) = weights_[(i * N_ + n) * kBlockRows<T> + lane];
      }
    }
  }

  void set_zeros(const WeightsTask& task, int64_t row) {
    for (const View<double, 3>* out : {&args_.sum, &args_.entropy, &args_.distance}) {
      if (out->data != nullptr) (*out)(task.b, task.h, row) = 0;
    }
    for (int64_t n = 0; n < N_; ++n) args_.weights(task.b, task.h, row, n) = T(0);
  }

  const AttentionSums<S>& args_;
  const int64_t N_;
  WeightTiles<S> tiles_;
  Totals* totals_;   // of each block
  int64_t* chosen_;  // [block][n][lane], counted from the first valid key; -1 for none
  T* weights_;       // [block][n][lane]
};

template <class S>
void sums(const AttentionSums<S>& args) {
  const WeightsPlan plan(args.q.size(0), {0, args.q.size(2)}, {0, args.q.size(1)}, kBlockRows<Accumulator<S>>,
                         default_pool().threads());
  run_tasks<SumsWorker<S>>(args, plan);
}

void sums_float(const AttentionSums<float>& args) { sums(args); }
void sums_double(const AttentionSums<double>& args) { sums(args); }
void sums_bf16(const AttentionSums<BFloat16>& args) { sums(args); }
void sums_f16(const AttentionSums<Float16>& args) { sums(args); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(sums_float);
HWY_EXPORT(sums_double);
HWY_EXPORT(sums_bf16);
HWY_EXPORT(sums_f16);

void dispatch(const AttentionSums<float>& args) { HEADLIGHT_DISPATCH(sums_float)(args); }
void dispatch(const AttentionSums<double>& args) { HEADLIGHT_DISPATCH(sums_double)(args); }
void dispatch(const AttentionSums<BFloat16>& args) { HEADLIGHT_DISPATCH(sums_bf16)(args); }
void dispatch(const AttentionSums<Float16>& args) { HEADLIGHT_DISPATCH(sums_f16)(args); }

}  // namespace

template <class T>
void attention_sums(const AttentionSums<T>& args) {
  check(args);
  dispatch(args);
}

template void attention_sums<float>(const AttentionSums<float>&);
template void attention_sums<double>(const AttentionSums<double>&);
template void attention_sums<BFloat16>(const AttentionSums<BFloat16>&);
template void attention_sums<Float16>(const AttentionSums<Float16>&);

}  // namespace headlight
#endif
