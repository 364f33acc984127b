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

// The weights of a block of rows of one head, tile by tile.
template <class T>
class RowsWorker {
 public:
  RowsWorker(const AttentionRows<T>& args, Arena& arena) : args_(args), K_(args.q.size(3)) {
    keys_ = arena.take<T>(kTileKeys * K_);
    queries_ = arena.take<T>(K_ * kBlockRows<T>);
    scores_ = arena.take<T>(kTileKeys * kBlockRows<T>);
    max_ = arena.take<T>(kBlockRows<T>);
    inverse_ = arena.take<T>(kBlockRows<T>);
    unused_max_ = arena.take<T>(kBlockRows<T>);
    addend_ = arena.take<T>(args.pattern.mask.data || args.pattern.bias.data ? kTileKeys * kBlockRows<T> : 0);
    mask_ = arena.take<TileMask<T>>(1);
    if (mask_ == nullptr) return;
    new (mask_) TileMask<T>();
    std::fill(unused_max_, unused_max_ + kBlockRows<T>, T(0));
  }

  // tasks: (b, head, block of rows)
  static int64_t blocks(const AttentionRows<T>& args) {
    return (args.weights.size(2) + kBlockRows<T> - 1) / kBlockRows<T>;
  }
  static int64_t tasks(const AttentionRows<T>& args) {
    return args.weights.size(0) * args.weights.size(1) * blocks(args);
  }

  void run(int64_t task) {
    const int64_t N = args_.weights.size(1), b = task / blocks(args_) / N, n = task / blocks(args_) % N;
    const int64_t first = task % blocks(args_) * kBlockRows<T>;
    const View<T, 2> out = args_.weights[b][n].slice(0, first, std::min(args_.weights.size(2), first + kBlockRows<T>));
    for (int64_t i = 0; i < out.size(0); ++i) {
      for (int64_t j = 0; j < out.size(1); ++j) out(i, j) = T(0);
    }
    const Head<T> head(args_.pattern, b, args_.head_begin + n, args_.q.size(1), args_.k.size(1));
    const int64_t begin = args_.row_begin + first;
    const Range valid = intersect({begin, begin + out.size(0)}, head.spans.q);
    if (valid.empty()) return;
    add_rows(head, valid, out.slice(0, valid.begin - begin, valid.end - begin));
  }

 private:
  // `valid`: rows of q, the weights of which are `out`
  void add_rows(const Head<T>& head, Range valid, View<T, 2> out) {
    const Block block = block_of(head, valid.begin - head.spans.q.begin, valid.end - head.spans.q.begin);
    pack_transposed(args_.q[head.b].swap(0, 1)[head.h].slice(0, valid.begin, valid.end), args_.pattern.scale, queries_);
    for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) {
      const auto statistic =
          lane < valid.size() ? args_.statistics(head.b, head.h, valid.begin + lane) : RowStatistic<T>{0, 0};
      max_[lane] = statistic.max == kMinusInfinity<T> ? T(0) : statistic.max;
      inverse_[lane] = statistic.sum == T(0) ? T(0) : T(1) / statistic.sum;
    }
    const View<const T, 2> keys = args_.k[head.b].swap(0, 1)[head.h / (args_.q.size(2) / args_.k.size(2))];
    for (int64_t tile = block.seen_by_some.begin / kTileKeys * kTileKeys; tile < block.seen_by_some.end;
         tile += kTileKeys) {
      const Range seen = intersect(block.seen_by_some, {tile, tile + kTileKeys});
      const int64_t begin = head.spans.k.begin + seen.begin, end = head.spans.k.begin + seen.end;
      const Range range{seen.begin - tile, seen.end - tile};
      T* scores = scores_ + range.begin * kBlockRows<T>;
      copy_rows(keys.slice(0, begin, end), T(1), keys_, K_);
      multiply<Into::kSet>(RowsOfSteps<T>{keys_, K_}, range.size(), queries_, kBlockRows<T>, block.vectors, K_, scores,
                           kBlockRows<T>);
      prepare_mask(head, block, tile, seen, addend_, *mask_);
      finish_scores<T>(head, *mask_, block.vectors, range, scores_, nullptr, unused_max_);
      weigh(block.vectors, range);
      unpack_transposed(scores, out.slice(1, begin, end));
    }
  }

  // scores become exp(score - max) / sum
  void weigh(int64_t vectors, Range keys) {
    const Tag<T> d;
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      for (int64_t lane = 0; lane < vectors * kLanes<T>; lane += kLanes<T>) {
        T* at = scores_ + key * kBlockRows<T> + lane;
        const Vec<T> e = exp_down(d, hn::Sub(hn::Load(d, at), hn::Load(d, max_ + lane)));
        const Vec<T> weight = hn::Mul(e, hn::Load(d, inverse_ + lane));
        hn::Store(mask_->everyone ? weight : hn::IfThenElse(mask_->sees(key, lane), weight, hn::Zero(d)), d, at);
      }
    }
  }

  const AttentionRows<T>& args_;
  const int64_t K_;
  T* keys_;     // [key][K]
  T* queries_;  // [column][lane], scaled
  T* scores_;   // [key][lane]
  T* max_;
  T* inverse_;
  T* unused_max_;
  T* addend_;
  TileMask<T>* mask_;
};

template <class T>
void rows(const AttentionRows<T>& args) {
  ThreadPool& pool = default_pool();
  Arena counter;
  RowsWorker<T>(args, counter);
  const int64_t per_worker = counter.used();
  std::byte* memory = scratch(static_cast<std::size_t>(pool.threads() * per_worker));
  pool.run(RowsWorker<T>::tasks(args), [&](int64_t task, int worker) {
    Arena arena(memory + worker * per_worker);
    RowsWorker<T>(args, arena).run(task);
  });
}

void rows_float(const AttentionRows<float>& args) { rows(args); }
void rows_double(const AttentionRows<double>& args) { rows(args); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(rows_float);
HWY_EXPORT(rows_double);

void dispatch(const AttentionRows<float>& args) { HEADLIGHT_DISPATCH(rows_float)(args); }
void dispatch(const AttentionRows<double>& args) { HEADLIGHT_DISPATCH(rows_double)(args); }

}  // namespace

template <class T>
void attention_rows(const AttentionRows<T>& args) {
  check(args);
  dispatch(args);
}

template void attention_rows<float>(const AttentionRows<float>&);
template void attention_rows<double>(const AttentionRows<double>&);

}  // namespace headlight
#endif
