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
// S: the type that q and k are stored as.
template <class S>
class RowsWorker {
 public:
  using T = Accumulator<S>;

  RowsWorker(const AttentionRows<S>& args, Arena& arena) : args_(args), K_(args.q.size(3)) {
    keys_ = arena.take<T>(kTileKeys * padded<T>(K_));
    rows_ = arena.take<T>(kBlockRows<T> * std::max(kTileKeys, padded<T>(K_)));
    queries_ = arena.take<T>(K_ * kBlockRows<T>);
    scores_ = arena.take<T>((kTileKeys + kLanes<T>)*kBlockRows<T>);
    unused_max_ = arena.take<T>(kBlockRows<T>);
    addend_ = arena.take<T>(args.pattern.mask.data || args.pattern.bias.data ? kTileKeys * kBlockRows<T> : 0);
    row_ = arena.take<RowWeights<T>>(1);
    sight_ = arena.take<Sight<T>>(1);
    if (sight_ == nullptr) return;
    new (sight_) Sight<T>();
    std::fill(unused_max_, unused_max_ + kBlockRows<T>, T(0));
  }

  // tasks: (b, head, block of rows)
  static int64_t blocks(const AttentionRows<S>& args) {
    return (args.weights.size(2) + kBlockRows<T> - 1) / kBlockRows<T>;
  }
  static int64_t tasks(const AttentionRows<S>& args) {
    return args.weights.size(0) * args.weights.size(1) * blocks(args);
  }

  void run(int64_t task) {
    const int64_t N = args_.weights.size(1), b = task / blocks(args_) / N, n = task / blocks(args_) % N;
    const int64_t first = task % blocks(args_) * kBlockRows<T>;
    const View<T, 2> out = args_.weights[b][n].slice(0, first, std::min(args_.weights.size(2), first + kBlockRows<T>));
    store_zeros(out);
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
    load_block(args_.q[head.b].swap(0, 1)[head.h].slice(0, valid.begin, valid.end), head.query_factor(), block.vectors,
               rows_);
    transpose_rows(rows_, K_, block.vectors, queries_);
    row_->load(args_.statistics[head.b][head.h].slice(0, valid.begin, valid.end));
    const View<const S, 2> keys = args_.k[head.b].swap(0, 1)[head.h / (args_.q.size(2) / args_.k.size(2))];
    for (int64_t tile = block.seen.begin / kTileKeys * kTileKeys; tile < block.seen.end; tile += kTileKeys) {
      const Range seen = intersect(block.seen, {tile, tile + kTileKeys});
      load_rows(keys.slice(0, head.spans.k.begin + seen.begin, head.spans.k.begin + seen.end), T(1),
                keys_ + (seen.begin - tile) * padded<T>(K_));
      look(head, block, tile, addend_, *sight_);
      raw_scores(head, *sight_, queries_, keys_, K_, scores_, ahead_);
      finish_scores<T>(head, *sight_, block.vectors, scores_, nullptr, unused_max_);
      for (int64_t v = 0; v < block.vectors; ++v) store_vector(v * kLanes<T>, sight_->some[v], head, tile, out);
    }
  }

  // scores of one vector of rows become weights in `out`
  void store_vector(int64_t lane, Range keys, const Head<T>& head, int64_t tile, View<T, 2> out) {
    const Tag<T> d;
    const Vec<T> max = hn::Load(d, row_->max + lane), inverse = hn::Load(d, row_->inverse + lane);
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      T* at = scores_ + key * kBlockRows<T> + lane;
      const Vec<T> weight = hn::Mul(exp_down(d, hn::Sub(hn::Load(d, at), max)), inverse);
      hn::Store(hn::IfThenElse(sight_->sees(key, lane), weight, hn::Zero(d)), d, at);
    }
    transpose_columns(scores_ + keys.begin * kBlockRows<T> + lane, keys.size(), 1, rows_);
    const int64_t first = head.spans.k.begin + tile;
    store_rows(
        rows_, T(1),
        out.slice(0, lane, std::min(out.size(0), lane + kLanes<T>)).slice(1, first + keys.begin, first + keys.end));
  }

  const AttentionRows<S>& args_;
  const int64_t K_;
  T* keys_;     // packed rows of the current tile
  T* rows_;     // packed rows, on their way in or out
  T* queries_;  // [column][lane], multiplied by query_factor()
  T* scores_;   // [key][lane]
  T* unused_max_;
  T* addend_;
  RowWeights<T>* row_;
  Sight<T>* sight_;
  ReadAhead ahead_;
};

template <class S>
void rows(const AttentionRows<S>& args) {
  ThreadPool& pool = default_pool();
  Arena counter;
  RowsWorker<S>(args, counter);
  const int64_t per_worker = counter.used();
  std::byte* memory = scratch(static_cast<std::size_t>(pool.threads() * per_worker));
  pool.run(RowsWorker<S>::tasks(args), [&](int64_t task, int worker) {
    Arena arena(memory + worker * per_worker);
    RowsWorker<S>(args, arena).run(task);
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
