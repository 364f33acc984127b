#include "headlight/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_rows.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/attention_weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// The weights of the rows of a task, tile by tile.
template <class S>
class RowsWorker {
 public:
  using T = Accumulator<S>;

  RowsWorker(const AttentionRows<S>& args, int64_t rows, Arena& arena) : args_(args), tiles_(args, rows, arena) {
    panel_ = arena.take<T>(kLanes<T> * kLanes<T>);
    out_ = arena.take<View<T, 2>>(tiles_.blocks_of(rows));
  }

  void run(const WeightsTask& task, const WeightsTask* next) {
    const Head<T> head = tiles_.head_of(task);
    const View<T, 2> out = args_.weights[task.b][task.h - args_.head_begin].slice(0, task.rows.begin - args_.row_begin,
                                                                                  task.rows.end - args_.row_begin);
    const Range rows = tiles_.valid_rows(head, task);
    if (rows.empty()) return store_zeros(out);
    const int64_t first = head.queries(rows).begin - task.rows.begin, end = first + rows.size();
    store_zeros(out.slice(0, 0, first));
    store_zeros(out.slice(0, end, out.size(0)));
    tiles_.lay(head, rows);
    for (int64_t i = 0; i < tiles_.blocks(); ++i) start(head, i, out.slice(0, first, end), rows.begin);
    tiles_.each_tile(head, next, [&](int64_t i, int64_t tile) { store_tile(head, i, tile); });
  }

 private:
  // `out`: the weights of the valid rows of the task, from row `begin` on
  void start(const Head<T>& head, int64_t i, View<T, 2> out, int64_t begin) {
    const Block& block = tiles_.block(i);
    new (out_ + i) View<T, 2>(out.slice(0, block.rows.begin - begin, block.rows.end - begin));
    for (int64_t v = 0; v < block.vectors; ++v) store_unseen(head, i, v);
  }

  // Zeros for the keys that no row of a vector sees: all others are in some tile.
  void store_unseen(const Head<T>& head, int64_t i, int64_t v) {
    const View<T, 2> out = rows_of_vector(i, v);
    const int64_t row = tiles_.block(i).rows.begin + v * kLanes<T>;
    const Range some = head.band.seen_by_some({row, row + out.size(0)});
    if (some.empty()) return store_zeros(out);
    const Range keys = head.keys(some);
    store_zeros(out.slice(1, 0, keys.begin));
    store_zeros(out.slice(1, keys.end, out.size(1)));
  }

  View<T, 2> rows_of_vector(int64_t i, int64_t v) const {
    return out_[i].slice(0, v * kLanes<T>, std::min(out_[i].size(0), (v + 1) * kLanes<T>));
  }

  void store_tile(const Head<T>& head, int64_t i, int64_t tile) {
    for (int64_t v = 0; v < tiles_.block(i).vectors; ++v) {
      const Range keys = head.keys({tile, tile + kTileKeys});
      const View<T, 2> out = rows_of_vector(i, v).slice(1, keys.begin, std::min(keys.end, out_[i].size(1)));
      const auto store = head.changes_scores() ? &RowsWorker::store_vector<true> : &RowsWorker::store_vector<false>;
      (this->*store)(head, i, v, out);
    }
  }

  // out: rows of the vector, keys of the tile
  template <bool kChanged>
  HWY_NOINLINE void store_vector(const Head<T>& head, int64_t i, int64_t v, View<T, 2> out) {
    const RowWeights<T>& row = tiles_.statistics(i);
    const Range keys = tiles_.sight().some[v], all = tiles_.sight().all[v];
    const int64_t lane = v * kLanes<T>;
    for (int64_t key = keys.begin; key < keys.end; key += kLanes<T>) {
      const int64_t end = std::min(key + kLanes<T>, keys.end);
      const bool whole = end - key == kLanes<T> && out.size(0) == kLanes<T> && out.stride(1) == 1;
      T* to = whole ? out.data + key : panel_;
      const int64_t step = whole ? out.stride(0) : kLanes<T>;
      if (key < all.begin || end > all.end) {
        store_panel<kChanged, true>(head, row, lane, key, end - 1, to, step);
      } else {
        store_panel<kChanged, false>(head, row, lane, key, end - 1, to, step);
      }
      if (!whole) store_rows(panel_, T(1), out.slice(1, key, end));
    }
  }

  // The weights of kLanes keys, the last of them again for any after it, as rows: to[row * step][key].
  template <bool kChanged, bool kTested>
  HWY_INLINE void store_panel(const Head<T>& head, const RowWeights<T>& row, int64_t lane, int64_t first, int64_t last,
                              T* to, int64_t step) {
    const Tag<T> d;
    const Vec<T> max = hn::Load(d, row.max + lane), inverse = hn::Load(d, row.inverse + lane);
    constexpr int64_t kSquares = kLanes<T> / kPiece<T>;
    Square<T> squares[kSquares];
    for (int64_t s = 0; s < kSquares; ++s) {
      for (int64_t k = 0; k < kPiece<T>; ++k) {
        const int64_t key = std::min(first + s * kPiece<T> + k, last);
        const Vec<T> score = tiles_.template score<kChanged>(head, key, lane);
        const Vec<T> weight = hn::Mul(exp_down(d, hn::Sub(score, max)), inverse);
        squares[s].v[k] = kTested ? hn::IfThenElse(tiles_.sight().sees(key, lane), weight, hn::Zero(d)) : weight;
      }
      squares[s].transpose();
    }
    // piece g of vector k of square s is the s-th piece of row g kPiece + k
    for (int64_t k = 0; k < kPiece<T>; ++k) {
      Vec<T> pieces[kSquares];
      for (int64_t s = 0; s < kSquares; ++s) pieces[s] = squares[s].v[k];
      transpose_pieces<T>(pieces);
      for (int64_t g = 0; g < kSquares; ++g) hn::StoreU(pieces[g], d, to + (g * kPiece<T> + k) * step);
    }
  }

  const AttentionRows<S>& args_;
  WeightTiles<S> tiles_;
  T* panel_;         // [lane][key], on its way to where the result has no whole rows of vectors
  View<T, 2>* out_;  // of each block
};

template <class S>
void rows(const AttentionRows<S>& args) {
  const View<Accumulator<S>, 4>& out = args.weights;
  const Range heads{args.head_begin, args.head_begin + out.size(1)};
  const Range rows{args.row_begin, args.row_begin + out.size(2)};
  run_tasks<RowsWorker<S>>(args,
                           WeightsPlan(out.size(0), heads, rows, kBlockRows<Accumulator<S>>, default_pool().threads()));
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
