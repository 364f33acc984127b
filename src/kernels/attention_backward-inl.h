// The backward. One pass over keys: for each tile of keys, all blocks of rows that see it recompute their
// weights and add to dk and dv of the tile and to their own dq.
//
// Tiles are dealt to kKeySplits splits in turn. Each split has its own dq, and these are added in order, so
// that the splits of one head can run side by side without changing a bit.

#if defined(HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_
#endif

#include "kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block of rows with all that its gradients need.
template <class T>
struct BackwardBlock {
  Block block;
  bool loaded;    // all below is of the current head
  T* queries;     // [column][lane], multiplied by query_factor()
  T* d_o;         // [column][lane]
  T* query_rows;  // [row][column], likewise, padded to whole vectors; infinities and NaN replaced by 0
  T* d_o_rows;    // likewise
  bool queries_finite, d_o_finite;
  RowWeights<T>* row;
  T* D;  // [lane] do . o

  static BackwardBlock take(Arena& arena, int64_t K, int64_t M) {
    BackwardBlock out;
    out.queries = arena.take<T>(K * kBlockRows<T>);
    out.d_o = arena.take<T>(M * kBlockRows<T>);
    out.query_rows = arena.take<T>(padded<T>(K) * kBlockRows<T>);
    out.d_o_rows = arena.take<T>(padded<T>(M) * kBlockRows<T>);
    out.row = arena.take<RowWeights<T>>(1);
    out.D = arena.take<T>(kBlockRows<T>);
    return out;
  }

  // `output_rows` and `outputs`: memory for the packed rows of o and for [M][lane]
  template <class S>
  void load(const AttentionBackward<S>& args, const Head<T>& head, const Block& rows, T* output_rows, T* outputs) {
    block = rows;
    loaded = true;
    const Range at = head.queries(rows.rows);
    const auto slice = [&](const View<const S, 4>& tensor) { return rows_of(tensor, head.b, head.h, at); };
    const int64_t K = args.q.size(3), M = args.v.size(3), count = rows.rows.size();
    queries_finite = load_block(slice(args.q), head.query_factor(), block.vectors, query_rows);
    d_o_finite = load_block(slice(args.d_o), T(1), block.vectors, d_o_rows);
    load_block(slice(args.o), T(1), block.vectors, output_rows);
    transpose_rows(query_rows, K, block.vectors, queries);
    transpose_rows(d_o_rows, M, block.vectors, d_o);
    transpose_rows(output_rows, M, block.vectors, outputs);
    if (!queries_finite) replace_non_finite(query_rows, count * padded<T>(K));
    if (!d_o_finite) replace_non_finite(d_o_rows, count * padded<T>(M));
    row->load(args.statistics[head.b][head.h].slice(0, at.begin, at.end));
    set_D(outputs, M);
  }

 private:
  // An element of o that is 0 adds nothing, whatever do holds: rows that see nothing have D = 0.
  void set_D(const T* outputs, int64_t columns) {
    const Tag<T> d;
    for (int64_t lane = 0; lane < block.vectors * kLanes<T>; lane += kLanes<T>) {
      Vec<T> sum = hn::Zero(d);
      for (int64_t c = 0; c < columns; ++c) {
        const Vec<T> x = hn::Load(d, outputs + c * kBlockRows<T> + lane);
        const Vec<T> dx = hn::Load(d, d_o + c * kBlockRows<T> + lane);
        sum = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), sum, hn::MulAdd(dx, x, sum));
      }
      hn::Store(sum, d, D + lane);
    }
  }
};

// A tile of keys and the weights and their derivatives for one block of rows at a time.
// S: the type that q, k, v, o and their gradients are stored as.
template <class S>
class BackwardTile {
 public:
  using T = Accumulator<S>;

  BackwardTile(const AttentionBackward<S>& args, Arena& arena) : args_(args), K_(args.q.size(3)), M_(args.v.size(3)) {
    keys = arena.take<T>(kTileKeys * padded<T>(K_));
    values = arena.take<T>(kTileKeys * padded<T>(M_));
    weights = arena.take<T>(std::max({kTileKeys, padded<T>(M_), padded<T>(K_)}) * kBlockRows<T>);
    d_scores = arena.take<T>(std::max(kTileKeys, padded<T>(M_)) * kBlockRows<T>);
    cap_slope_ = arena.take<T>(args.pattern.soft_cap ? kTileKeys * kBlockRows<T> : 0);
    addend_ = arena.take<T>(args.pattern.mask.data || args.pattern.bias.data ? kTileKeys * kBlockRows<T> : 0);
    unused_max_ = arena.take<T>(kBlockRows<T>);
    sight = arena.take<Sight<T>>(1);
    if (sight == nullptr) return;
    new (sight) Sight<T>();
    std::fill(unused_max_, unused_max_ + kBlockRows<T>, T(0));
  }

  // Keys [range.begin, range.end) of the head, a part of the tile that starts at `tile`.
  void load(const Head<T>& head, int64_t tile, Range range) {
    const int64_t group = head.h / (args_.q.size(2) / args_.k.size(2));
    const Range rows = head.keys(range);
    keys_finite = load_rows(rows_of(args_.k, head.b, group, rows), T(1), keys + (range.begin - tile) * padded<T>(K_));
    load_rows(rows_of(args_.v, head.b, group, rows), T(1), values + (range.begin - tile) * padded<T>(M_));
  }

  // weights = P and d_scores = dS = P (dP - D) of the loaded tile, both 0 where invisible. Only what some lane
  // of a vector sees is set: see Sight.
  void compute(const Head<T>& head, const BackwardBlock<T>& rows, int64_t tile) {
    look(head, rows.block, tile, addend_, *sight);
    // the forward's scores, in the forward's order of operations
    raw_scores(head, *sight, rows.queries, {keys, padded<T>(K_)}, K_, weights, ahead);
    finish_scores<T>(head, *sight, rows.block.vectors, weights, args_.pattern.soft_cap ? cap_slope_ : nullptr,
                     unused_max_);
    multiply_queries(*sight, rows.d_o, {values, padded<T>(M_)}, M_, d_scores, ahead);
    for (int64_t v = 0; v < rows.block.vectors; ++v) {
      const Range some = sight->some[v], all = sight->all[v];
      weigh<true>(rows, v * kLanes<T>, {some.begin, all.begin});
      weigh<false>(rows, v * kLanes<T>, all);
      weigh<true>(rows, v * kLanes<T>, {all.end, some.end});
    }
  }

  // d_scores becomes the derivative of the raw scores, before the soft cap.
  void through_cap(int64_t vectors) {
    const Tag<T> d;
    for (int64_t v = 0, lane = 0; v < vectors; ++v, lane += kLanes<T>) {
      for (int64_t key = sight->some[v].begin; key < sight->some[v].end; ++key) {
        T* at = d_scores + key * kBlockRows<T> + lane;
        const Vec<T> slope = hn::Load(d, cap_slope_ + key * kBlockRows<T> + lane);
        const Vec<T> ds = hn::Mul(hn::Load(d, at), slope);
        hn::Store(hn::IfThenElse(sight->sees(key, lane), ds, hn::Zero(d)), d, at);
      }
    }
  }

  // all [key][...]
  T* keys;      // [K]
  T* values;    // [M]
  T* weights;   // [lane]
  T* d_scores;  // [lane]
  Sight<T>* sight;
  bool keys_finite = true;
  ReadAhead ahead;

 private:
  template <bool kTested>
  HWY_NOINLINE void weigh(const BackwardBlock<T>& rows, int64_t lane, Range run) {
    const Tag<T> d;
    const Vec<T> max = hn::Load(d, rows.row->max + lane), inverse = hn::Load(d, rows.row->inverse + lane);
    const Vec<T> D = hn::Load(d, rows.D + lane);
    for (int64_t key = run.begin; key < run.end; ++key) {
      T* weight_at = weights + key * kBlockRows<T> + lane;
      T* score_at = d_scores + key * kBlockRows<T> + lane;
      Vec<T> weight = hn::Mul(exp_down(d, hn::Sub(hn::Load(d, weight_at), max)), inverse);
      Vec<T> ds = hn::Mul(weight, hn::Sub(hn::Load(d, score_at), D));
      if constexpr (kTested) {
        const auto sees = sight->sees(key, lane);
        weight = hn::IfThenElse(sees, weight, hn::Zero(d));
        ds = hn::IfThenElse(sees, ds, hn::Zero(d));
      }
      hn::Store(weight, d, weight_at);
      hn::Store(ds, d, score_at);
    }
  }

  const AttentionBackward<S>& args_;
  const int64_t K_, M_;
  T* cap_slope_;
  T* addend_;
  T* unused_max_;
};

// What the heads of a call add to gradients that all of the batch shares.
struct HeadSums {
  double* sinks;     // [b][h]
  double* slopes;    // [b][h][split]
  double* additive;  // [b][h][split][K], but for the scale

  static HeadSums take(Arena& arena, int64_t heads, int64_t splits, int64_t additive_columns) {
    HeadSums out;
    out.sinks = arena.take<double>(heads);
    out.slopes = arena.take<double>(heads * splits);
    out.additive = arena.take<double>(heads * splits * additive_columns);
    return out;
  }
};

// dq, dk, dv of one key/value head of one batch entry: all of its splits, or one of them.
template <class S>
class BackwardWorker {
 public:
  using T = Accumulator<S>;

  BackwardWorker(const AttentionBackward<S>& args, const BackwardPlan& plan, Arena& arena)
      : args_(args), plan_(plan), K_(args.q.size(3)), M_(args.v.size(3)), tile_(args, arena) {
    blocks_ = arena.take<BackwardBlock<T>>(plan.blocks);
    for (int64_t i = 0; i < plan.blocks; ++i) {
      const auto block = BackwardBlock<T>::take(arena, K_, M_);
      if (blocks_ != nullptr) new (blocks_ + i) BackwardBlock<T>(block);
    }
    clean_keys_ = arena.take<T>(kTileKeys * padded<T>(K_));
    dk_ = arena.take<T>(plan.tiles_per_task * kTileKeys * padded<T>(K_));
    dv_ = arena.take<T>(plan.tiles_per_task * kTileKeys * padded<T>(M_));
    additive_lanes_ = arena.take<T>(args.pattern.additive.data ? K_ * kLanes<T> : 0);
    if (!plan.apart) {
      dq_ = arena.take<T>(dq_size());
      dq_total_ = arena.take<T>(dq_size());
    }
  }

  // numbers of one head's dq in blocks, [block][column][lane]
  int64_t dq_size() const { return plan_.blocks * dq_block(); }
  int64_t dq_block() const { return padded<T>(K_) * kBlockRows<T>; }

  // `dq_parts`: with splits apart, [split][b][h] blocks of dq_size(). `sums` gets what the task's heads add.
  // `next`: the task that this worker is likely to get next, or null.
  void run(const BackwardTask& task, const BackwardTask* next, T* dq_parts, const HeadSums& sums) {
    const int64_t H = args_.q.size(2), heads = H / args_.k.size(2), end = (task.g + 1) * heads;
    std::fill(dk_, dk_ + plan_.tiles_per_task * kTileKeys * padded<T>(K_), T(0));
    std::fill(dv_, dv_ + plan_.tiles_per_task * kTileKeys * padded<T>(M_), T(0));
    for (int64_t h = task.g * heads; h < end; ++h) {
      const Head<T> head(args_.pattern, task.b, h, args_.q.size(1), args_.k.size(1));
      const int64_t index = task.b * H + h;
      const int64_t blocks = lay_blocks(head);
      next_ = h + 1 < end ? NextHead{task.b, h + 1} : next != nullptr ? NextHead{next->b, next->g * heads} : NextHead{};
      for (int64_t split = task.splits.begin; split < task.splits.end; ++split) {
        if (plan_.apart) dq_ = dq_parts + (split * args_.q.size(0) * H + index) * dq_size();
        std::fill(dq_, dq_ + dq_size(), T(0));
        if (head.is_additive()) {
          additive_sums_ = sums.additive + (index * plan_.splits + split) * K_;
          std::fill(additive_sums_, additive_sums_ + K_, 0.0);
        }
        sums.slopes[index * plan_.splits + split] = add_split(head, split, blocks);
        if (!plan_.apart) collect_dq(split);
      }
      if (task.splits.begin == 0 && args_.dsinks.data != nullptr) sums.sinks[index] = sink_sum(head, blocks);
      if (!plan_.apart && args_.dq.data != nullptr) write_dq(head, dq_total_, 0);
    }
    write_keys(task);
  }

  // dq of a head from the sums in `parts`: one, or with a `part_step` those of all splits, this far apart.
  void write_dq(const Head<T>& head, T* parts, int64_t part_step) const {
    const int64_t begin = head.spans.q.begin, end = head.spans.q.end;
    store_zeros(rows_of(args_.dq, head.b, head.h, {0, begin}));
    store_zeros(rows_of(args_.dq, head.b, head.h, {end, args_.dq.size(1)}));
    for (int64_t row = begin, block = 0; row < end; row += kBlockRows<T>, ++block) {
      T* sum = parts + block * dq_block();
      for (int64_t split = 1; split < plan_.splits && part_step != 0; ++split) {
        add_to(sum, sum + split * part_step, dq_block());
      }
      const Range rows{row, std::min(end, row + kBlockRows<T>)};
      transpose_columns(sum, K_, (rows.size() + kLanes<T> - 1) / kLanes<T>, tile_.weights);
      store_rows(tile_.weights, args_.pattern.scale, rows_of(args_.dq, head.b, head.h, rows));
    }
  }

 private:
  struct NextHead {
    int64_t b = -1, h = -1;
  };

  int64_t lay_blocks(const Head<T>& head) {
    int64_t blocks = 0;
    for (int64_t row = 0; row < head.spans.q.size(); row += kBlockRows<T>) {
      blocks_[blocks].block = block_of(head, row, head.spans.q.size());
      blocks_[blocks++].loaded = false;
    }
    return blocks;
  }

  void load_block_once(const Head<T>& head, int64_t i) {
    if (blocks_[i].loaded) return;
    blocks_[i].load(args_, head, blocks_[i].block, tile_.weights, tile_.d_scores);
  }

  void read_queries_ahead(const Head<T>& head, Range rows) {
    for (const auto* tensor : {&args_.o, &args_.d_o, &args_.q}) {
      tile_.ahead.add(rows_of(*tensor, head.b, head.h, head.queries(rows)));
    }
  }

  // After tile `index` of a split comes the next one, or the gradients and what the next head begins with.
  void read_ahead(const Head<T>& head, int64_t split, int64_t index, Range keys) {
    tile_.ahead.clear();
    int64_t next = index + plan_.splits;
    if (next * kTileKeys >= keys.end && !plan_.apart && split + 1 < plan_.splits) next = split + 1;
    if (next * kTileKeys < keys.end) {
      const int64_t group = head.h / (args_.q.size(2) / args_.k.size(2));
      const Range rows = head.keys(intersect(keys, {next * kTileKeys, (next + 1) * kTileKeys}));
      tile_.ahead.add(rows_of(args_.v, head.b, group, rows));
      tile_.ahead.add(rows_of(args_.k, head.b, group, rows));
      return;
    }
    if (next_.b >= 0) {
      const Head<T> other(args_.pattern, next_.b, next_.h, args_.q.size(1), args_.k.size(1));
      const int64_t group = next_.h / (args_.q.size(2) / args_.k.size(2));
      const Range rows = other.keys(intersect({0, kTileKeys}, {0, other.spans.k.size()}));
      tile_.ahead.add(rows_of(args_.v, other.b, group, rows));
      tile_.ahead.add(rows_of(args_.k, other.b, group, rows));
      read_queries_ahead(other, intersect({0, kBlockRows<T>}, {0, other.spans.q.size()}));
    }
  }

  // Which of a task's tiles is the one of this index of the head.
  int64_t tile_in_task(int64_t index) const { return plan_.apart ? index / plan_.splits : index; }

  // Adds the tiles of one split; gives what they add to the gradient of the slope.
  double add_split(const Head<T>& head, int64_t split, int64_t blocks) {
    double slope_sum = 0;
    if (blocks == 0) return slope_sum;
    // blocks see ever later keys
    const Range keys{blocks_[0].block.seen.begin, blocks_[blocks - 1].block.seen.end};
    for (int64_t index = keys.begin / kTileKeys; index * kTileKeys < keys.end; ++index) {
      if (index % plan_.splits != split) continue;
      const int64_t tile = index * kTileKeys;
      const Range tile_keys = intersect(keys, {tile, tile + kTileKeys});
      tile_.load(head, tile, tile_keys);
      read_ahead(head, split, index, keys);
      if (!tile_.keys_finite) {
        std::copy(tile_.keys, tile_.keys + kTileKeys * padded<T>(K_), clean_keys_);
        replace_non_finite(clean_keys_, kTileKeys * padded<T>(K_));
      }
      const int64_t in_task = tile_in_task(index);
      for (int64_t i = 0; i < blocks; ++i) {
        if (intersect(blocks_[i].block.seen, tile_keys).empty()) continue;
        load_block_once(head, i);
        if (i + 1 < blocks && !blocks_[i + 1].loaded) read_queries_ahead(head, blocks_[i + 1].block.rows);
        slope_sum += add_tile(head, i, tile, in_task * kTileKeys);
      }
    }
    return slope_sum;
  }

  double add_tile(const Head<T>& head, int64_t i, int64_t tile, int64_t task_key) {
    const BackwardBlock<T>& rows = blocks_[i];
    tile_.compute(head, rows, tile);
    const double slope_sum = args_.dslopes.data == nullptr ? 0 : slope_gradient(rows);
    if (args_.pattern.soft_cap) tile_.through_cap(rows.block.vectors);
    T* dq = dq_ + i * dq_block();
    T* dk = dk_ + task_key * padded<T>(K_);
    T* dv = dv_ + task_key * padded<T>(M_);
    for (int number = 0; number < tile_.sight->count; ++number) {
      const auto& piece = tile_.sight->pieces[number];
      add_values(rows, piece, dv);
      if (head.is_additive()) {
        add_through_tanh(head, rows, piece, dq, dk);
      } else {
        add_products(rows, piece, dq, dk);
      }
    }
    if (!rows.d_o_finite) add_non_finite_values(rows, dv);
    // tanh takes every number, pair by pair
    if (!head.is_additive() && (!tile_.keys_finite || !rows.queries_finite)) add_non_finite_products(rows, dq, dk);
    return slope_sum;
  }

  // dv of the tile: dv = P^T do
  void add_values(const BackwardBlock<T>& rows, const typename Sight<T>::Piece& piece, T* dv) {
    const int64_t M = padded<T>(M_), key = piece.keys.begin, at = key * kBlockRows<T> + piece.lane;
    multiply<Into::kAdd>(RowsOfSteps<T>{tile_.weights + at, kBlockRows<T>}, piece.keys.size(),
                         rows.d_o_rows + piece.lane * M, M, M / kLanes<T>, lanes_of(rows, piece), dv + key * M, M,
                         tile_.ahead);
  }

  // rows of a piece that are not past the end
  static int64_t lanes_of(const BackwardBlock<T>& rows, const typename Sight<T>::Piece& piece) {
    return std::min(rows.block.rows.size() - piece.lane, piece.vectors * kLanes<T>);
  }

  // dq of the block and dk of the tile
  void add_products(const BackwardBlock<T>& rows, const typename Sight<T>::Piece& piece, T* dq, T* dk) {
    const int64_t key = piece.keys.begin, keys = piece.keys.size(), lane = piece.lane, lanes = lanes_of(rows, piece);
    const int64_t K = padded<T>(K_), at = key * kBlockRows<T> + lane;
    // dk = ds^T (scale q)
    multiply<Into::kAdd>(RowsOfSteps<T>{tile_.d_scores + at, kBlockRows<T>}, keys, rows.query_rows + lane * K, K,
                         K / kLanes<T>, lanes, dk + key * K, K, tile_.ahead);
    // dq = ds k, scaled at the end
    const T* k = tile_.keys_finite ? tile_.keys : clean_keys_;
    multiply<Into::kAdd>(StepsOfRows<T>{k + key * K, K}, K_, tile_.d_scores + at, kBlockRows<T>, piece.vectors, keys,
                         dq + lane, kBlockRows<T>, tile_.ahead);
  }

  // dq of the block, dk of the tile and the sums of d_additive, all but for the scale: with t = tanh(q + k),
  // e = ds additive (1 - t^2), dq and dk are the sums of e over keys and rows, d_additive that of ds t over both.
  HWY_NOINLINE void add_through_tanh(const Head<T>& head, const BackwardBlock<T>& rows,
                                     const typename Sight<T>::Piece& piece, T* dq, T* dk) {
    const Tag<T> d;
    const Vec<T> zero = hn::Zero(d), one = hn::Set(d, T(1));
    const View<const T, 1> additive = head.pattern.additive[head.h];
    const int64_t K = padded<T>(K_), last_lane = piece.lane + lanes_of(rows, piece);
    for (int64_t lane = piece.lane; lane < last_lane; lane += kLanes<T>) {
      const auto in_rows = hn::FirstN(d, static_cast<size_t>(std::min(kLanes<T>, last_lane - lane)));
      std::fill(additive_lanes_, additive_lanes_ + K_ * kLanes<T>, T(0));
      for (int64_t key = piece.keys.begin; key < piece.keys.end; ++key) {
        const Vec<T> ds = hn::Load(d, tile_.d_scores + key * kBlockRows<T> + lane);
        // what is invisible has ds = 0 and may have any tanh
        const auto adds = hn::AndNot(hn::Eq(ds, zero), in_rows);
        for (int64_t c = 0; c < K_; ++c) {
          const int64_t at = c * kBlockRows<T> + lane;
          const Vec<T> bent = tanh(d, hn::Add(hn::Load(d, rows.queries + at), hn::Set(d, tile_.keys[key * K + c])));
          const Vec<T> slope = hn::Mul(hn::Sub(one, bent), hn::Add(one, bent));
          const Vec<T> e = hn::IfThenElseZero(adds, hn::Mul(hn::Mul(ds, hn::Set(d, additive(c))), slope));
          hn::Store(hn::Add(hn::Load(d, dq + at), e), d, dq + at);
          dk[key * K + c] += hn::GetLane(hn::SumOfLanes(d, e));
          T* sum = additive_lanes_ + c * kLanes<T>;
          hn::Store(hn::Add(hn::Load(d, sum), hn::IfThenElseZero(adds, hn::Mul(ds, bent))), d, sum);
        }
      }
      for (int64_t c = 0; c < K_; ++c) {
        additive_sums_[c] += double(hn::GetLane(hn::SumOfLanes(d, hn::Load(d, additive_lanes_ + c * kLanes<T>))));
      }
    }
  }

  // Infinities and NaN were left out of the products, where they would reach pairs that don't see each other.
  void add_non_finite_products(const BackwardBlock<T>& rows, T* dq, T* dk) {
    each_visible_pair(rows, [&](int64_t key, int64_t lane) {
      const T ds = tile_.d_scores[key * kBlockRows<T> + lane];
      for (int64_t c = 0; c < K_ && !tile_.keys_finite; ++c) {
        add_non_finite(dq[c * kBlockRows<T> + lane], ds, tile_.keys[key * padded<T>(K_) + c]);
      }
      for (int64_t c = 0; c < K_ && !rows.queries_finite; ++c) {
        add_non_finite(dk[key * padded<T>(K_) + c], ds, rows.queries[c * kBlockRows<T> + lane]);
      }
    });
  }
  void add_non_finite_values(const BackwardBlock<T>& rows, T* dv) {
    each_visible_pair(rows, [&](int64_t key, int64_t lane) {
      const T weight = tile_.weights[key * kBlockRows<T> + lane];
      for (int64_t c = 0; c < M_; ++c) {
        add_non_finite(dv[key * padded<T>(M_) + c], weight, rows.d_o[c * kBlockRows<T> + lane]);
      }
    });
  }
  static void add_non_finite(T& sum, T factor, T value) {
    if (!std::isfinite(value)) sum += factor * value;
  }
  template <class Body>
  void each_visible_pair(const BackwardBlock<T>& rows, Body body) const {
    for (int64_t key = 0; key < kTileKeys; ++key) {
      for (int64_t lane = 0; lane < rows.block.rows.size(); ++lane) {
        if (tile_.sight->sees_one(key, lane)) body(key, lane);
      }
    }
  }

  // -sum of dS |p - r|
  double slope_gradient(const BackwardBlock<T>& rows) const {
    double sum = 0;
    for (int64_t lane = 0; lane < rows.block.rows.size(); ++lane) {
      const Range some = tile_.sight->some[lane / kLanes<T>];
      for (int64_t key = some.begin; key < some.end; ++key) {
        const T distance = std::abs(tile_.sight->distance[lane] - static_cast<T>(key));
        sum -= double(tile_.d_scores[key * kBlockRows<T> + lane]) * double(distance);
      }
    }
    return sum;
  }

  // -sum of P_sink D
  double sink_sum(const Head<T>& head, int64_t blocks) {
    const Tag<T> d;
    const Vec<T> sink = hn::Set(d, args_.pattern.sinks(head.h));
    alignas(64) T terms[kLanes<T>];
    double sum = 0;
    for (int64_t i = 0; i < blocks; ++i) {
      load_block_once(head, i);
      for (int64_t lane = 0; lane < blocks_[i].block.rows.size(); lane += kLanes<T>) {
        const Vec<T> e = exp_down(d, hn::Sub(sink, hn::Load(d, blocks_[i].row->max + lane)));
        const Vec<T> weight = hn::Mul(e, hn::Load(d, blocks_[i].row->inverse + lane));
        hn::Store(hn::Mul(weight, hn::Load(d, blocks_[i].D + lane)), d, terms);
        const int64_t count = std::min(kLanes<T>, blocks_[i].block.rows.size() - lane);
        for (int64_t k = 0; k < count; ++k) sum -= double(terms[k]);
      }
    }
    return sum;
  }

  void collect_dq(int64_t split) {
    if (split == 0) {
      std::swap(dq_, dq_total_);
      return;
    }
    add_to(dq_total_, dq_, dq_size());
  }

  static void add_to(T* sums, const T* terms, int64_t count) {
    const Tag<T> d;
    for (int64_t i = 0; i < count; i += kLanes<T>) {
      hn::Store(hn::Add(hn::Load(d, sums + i), hn::Load(d, terms + i)), d, sums + i);
    }
  }

  // dk and dv of the task's tiles; the first split also writes the rows outside the valid ones.
  void write_keys(const BackwardTask& task) {
    const Spans spans = spans_of(args_.pattern, task.b, args_.q.size(1), args_.k.size(1));
    // the products take in the scale with the queries
    write_key_rows(args_.dk, task, spans.k, dk_, args_.pattern.additive.data ? args_.pattern.scale : T(1));
    write_key_rows(args_.dv, task, spans.k, dv_, T(1));
  }
  void write_key_rows(const View<S, 4>& gradient, const BackwardTask& task, Range span, const T* sums, T factor) {
    if (gradient.data == nullptr) return;
    const int64_t width = padded<T>(gradient.size(3));
    if (task.splits.begin == 0) {
      store_zeros(rows_of(gradient, task.b, task.g, {0, span.begin}));
      store_zeros(rows_of(gradient, task.b, task.g, {span.end, gradient.size(1)}));
    }
    for (int64_t index = 0; index * kTileKeys < span.size(); ++index) {
      const int64_t split = index % plan_.splits;
      if (split < task.splits.begin || split >= task.splits.end) continue;
      const T* from = sums + tile_in_task(index) * kTileKeys * width;
      const int64_t begin = span.begin + index * kTileKeys, end = std::min(span.end, begin + kTileKeys);
      store_rows(from, factor, rows_of(gradient, task.b, task.g, {begin, end}));
    }
  }

  const AttentionBackward<S>& args_;
  const BackwardPlan& plan_;
  const int64_t K_, M_;
  BackwardTile<S> tile_;
  BackwardBlock<T>* blocks_;
  NextHead next_;
  T* clean_keys_;  // [key][K], infinities and NaN replaced by 0
  T* dk_;          // [key of the task's tiles][padded K]
  T* dv_;
  T* dq_ = nullptr;                  // of the current split
  T* dq_total_ = nullptr;            // of the splits so far
  double* additive_sums_ = nullptr;  // of the current split: [K]
  T* additive_lanes_;                // [K][lane], what one vector of rows adds to them
};

// dbias: dS summed over what the bias was broadcast to, in a pass of its own that recomputes dS.
template <class S>
class BiasWorker {
 public:
  using T = Accumulator<S>;

  BiasWorker(const AttentionBackward<S>& args, Arena& arena) : args_(args), tile_(args, arena) {
    rows_ = BackwardBlock<T>::take(arena, args.q.size(3), args.v.size(3));
    sums_ = arena.take<double>((args.dbias.size(2) == 1 ? 1 : kBlockRows<T>)*args.dbias.size(3));
  }

  // tasks: (b, h, block of rows) of dbias
  static int64_t tasks(const AttentionBackward<S>& args) {
    const auto& n = args.dbias.sizes;
    return n[0] * n[1] * ((n[2] + kBlockRows<T> - 1) / kBlockRows<T>);
  }

  void run(int64_t task) {
    const auto& n = args_.dbias.sizes;
    const int64_t blocks = (n[2] + kBlockRows<T> - 1) / kBlockRows<T>;
    const int64_t b = task / blocks / n[1], h = task / blocks % n[1];
    const int64_t begin = task % blocks * kBlockRows<T>;
    const Range rows{begin, std::min(n[2], begin + kBlockRows<T>)};
    std::fill(sums_, sums_ + rows.size() * n[3], 0.0);
    for (int64_t entry = n[0] == 1 ? 0 : b; entry < (n[0] == 1 ? args_.q.size(0) : b + 1); ++entry) {
      for (int64_t q_head = n[1] == 1 ? 0 : h; q_head < (n[1] == 1 ? args_.q.size(2) : h + 1); ++q_head) {
        const Head<T> head(args_.pattern, entry, q_head, args_.q.size(1), args_.k.size(1));
        // the rows of dbias that are rows of the entry, counted from its first valid one
        const Range all = n[2] == 1 ? Range{0, args_.q.size(1)} : rows;
        const Range valid = intersect(all, head.spans.q);
        for (int64_t row = valid.begin; row < valid.end; row += kBlockRows<T>) {
          add_rows(head, row - head.spans.q.begin, valid.end - head.spans.q.begin, rows.begin);
        }
      }
    }
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = 0; j < n[3]; ++j) {
        args_.dbias(b, h, i, j) = static_cast<T>(sums_[(i - rows.begin) * n[3] + j]);
      }
    }
  }

 private:
  void add_rows(const Head<T>& head, int64_t row, int64_t end, int64_t first_row) {
    rows_.load(args_, head, block_of(head, row, end), tile_.weights, tile_.d_scores);
    const Range keys = rows_.block.seen;
    for (int64_t tile = keys.begin / kTileKeys * kTileKeys; tile < keys.end; tile += kTileKeys) {
      tile_.load(head, tile, intersect(keys, {tile, tile + kTileKeys}));
      tile_.compute(head, rows_, tile);
      for (int64_t lane = 0; lane < rows_.block.rows.size(); ++lane) {
        const int64_t i = head.spans.q.begin + row + lane - first_row;
        double* sums = sums_ + (args_.dbias.size(2) == 1 ? 0 : i * args_.dbias.size(3));
        const Range some = tile_.sight->some[lane / kLanes<T>];
        for (int64_t key = some.begin; key < some.end; ++key) {
          const int64_t j = args_.dbias.size(3) == 1 ? 0 : head.spans.k.begin + tile + key;
          sums[j] += double(tile_.d_scores[key * kBlockRows<T> + lane]);
        }
      }
    }
  }

  const AttentionBackward<S>& args_;
  BackwardTile<S> tile_;
  BackwardBlock<T> rows_;
  double* sums_;  // [row][key] of the task's part of dbias
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
