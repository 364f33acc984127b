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
  T* queries;     // [column][lane], scaled
  T* d_o;         // [column][lane]
  T* query_rows;  // [row][column], scaled, padded to whole vectors; infinities and NaN replaced by 0
  T* d_o_rows;    // likewise
  bool queries_finite, d_o_finite;
  T* max;      // [lane] from the statistics, 0 where nothing is visible
  T* inverse;  // 1 / sum, 0 where nothing is visible
  T* D;        // do . o

  static BackwardBlock take(Arena& arena, int64_t K, int64_t M) {
    BackwardBlock out;
    out.queries = arena.take<T>(K * kBlockRows<T>);
    out.d_o = arena.take<T>(M * kBlockRows<T>);
    out.query_rows = arena.take<T>(padded<T>(K) * kBlockRows<T>);
    out.d_o_rows = arena.take<T>(padded<T>(M) * kBlockRows<T>);
    out.max = arena.take<T>(kBlockRows<T>);
    out.inverse = arena.take<T>(kBlockRows<T>);
    out.D = arena.take<T>(kBlockRows<T>);
    return out;
  }

  // `o_row`: memory for one padded row of o
  void load(const AttentionBackward<T>& args, const Head<T>& head, const Block& rows, T* o_row) {
    block = rows;
    const Range at{head.spans.q.begin + rows.rows.begin, head.spans.q.begin + rows.rows.end};
    const auto slice = [&](const View<const T, 4>& view) {
      return view[head.b].swap(0, 1)[head.h].slice(0, at.begin, at.end);
    };
    const int64_t K = args.q.size(3), M = args.v.size(3), count = rows.rows.size();
    pack_transposed(slice(args.q), args.pattern.scale, queries);
    pack_transposed(slice(args.d_o), T(1), d_o);
    queries_finite = copy_rows(slice(args.q), args.pattern.scale, query_rows, padded<T>(K));
    d_o_finite = copy_rows(slice(args.d_o), T(1), d_o_rows, padded<T>(M));
    for (int64_t lane = 0; lane < kBlockRows<T>; ++lane) {
      const auto statistic = lane < count ? args.statistics(head.b, head.h, at.begin + lane) : RowStatistic<T>{0, 0};
      max[lane] = statistic.max == kMinusInfinity<T> ? T(0) : statistic.max;
      inverse[lane] = statistic.sum == T(0) ? T(0) : T(1) / statistic.sum;
      D[lane] = T(0);
      if (lane >= count) continue;
      copy_rows(slice(args.o).slice(0, lane, lane + 1), T(1), o_row, padded<T>(M));
      D[lane] = dot(d_o_rows + lane * padded<T>(M), o_row, M);
    }
    if (!queries_finite) replace_non_finite(query_rows, count, K, padded<T>(K));
    if (!d_o_finite) replace_non_finite(d_o_rows, count, M, padded<T>(M));
  }

 private:
  // Of padded rows. An element of o that is 0 adds nothing, whatever do holds: rows that see nothing have D = 0.
  static T dot(const T* dout, const T* out, int64_t columns) {
    const Tag<T> d;
    Vec<T> sum = hn::Zero(d);
    for (int64_t c = 0; c < columns; c += kLanes<T>) {
      const Vec<T> x = hn::LoadU(d, out + c);
      const Vec<T> product = hn::Mul(hn::LoadU(d, dout + c), x);
      sum = hn::Add(sum, hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), product));
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }
};

// A tile of keys and the weights and their derivatives for one block of rows at a time.
template <class T>
class BackwardTile {
 public:
  BackwardTile(const AttentionBackward<T>& args, Arena& arena) : args_(args), K_(args.q.size(3)), M_(args.v.size(3)) {
    keys = arena.take<T>(kTileKeys * K_);
    values = arena.take<T>(kTileKeys * M_);
    weights = arena.take<T>(kTileKeys * kBlockRows<T>);
    d_scores = arena.take<T>(kTileKeys * kBlockRows<T>);
    cap_slope_ = arena.take<T>(args.pattern.soft_cap ? kTileKeys * kBlockRows<T> : 0);
    addend_ = arena.take<T>(args.pattern.mask.data || args.pattern.bias.data ? kTileKeys * kBlockRows<T> : 0);
    unused_max_ = arena.take<T>(kBlockRows<T>);
    mask = arena.take<TileMask<T>>(1);
    if (mask == nullptr) return;
    new (mask) TileMask<T>();
    std::fill(unused_max_, unused_max_ + kBlockRows<T>, T(0));
  }

  // Keys [range.begin, range.end) of the head, a part of the tile that starts at `tile`.
  void load(const Head<T>& head, int64_t tile, Range range) {
    const int64_t group = head.h / (args_.q.size(2) / args_.k.size(2));
    const int64_t begin = head.spans.k.begin + range.begin, end = head.spans.k.begin + range.end;
    keys_finite =
        copy_rows(args_.k[head.b].swap(0, 1)[group].slice(0, begin, end), T(1), keys + (range.begin - tile) * K_, K_);
    copy_rows(args_.v[head.b].swap(0, 1)[group].slice(0, begin, end), T(1), values + (range.begin - tile) * M_, M_);
  }

  // weights = P, d_scores = dS = P (dP - D), both 0 where invisible, for keys `seen` of the loaded ones.
  void compute(const Head<T>& head, const BackwardBlock<T>& rows, int64_t tile, Range seen) {
    const int64_t vectors = rows.block.vectors;
    const Range range{seen.begin - tile, seen.end - tile};
    const int64_t first = range.begin * kBlockRows<T>;
    prepare_mask(head, rows.block, tile, seen, addend_, *mask);
    // the forward's scores, in the forward's order of operations
    multiply<Into::kSet>(RowsOfSteps<T>{keys + range.begin * K_, K_}, range.size(), rows.queries, kBlockRows<T>,
                         vectors, K_, weights + first, kBlockRows<T>);
    finish_scores<T>(head, *mask, vectors, range, weights, args_.pattern.soft_cap ? cap_slope_ : nullptr, unused_max_);
    multiply<Into::kSet>(RowsOfSteps<T>{values + range.begin * M_, M_}, range.size(), rows.d_o, kBlockRows<T>, vectors,
                         M_, d_scores + first, kBlockRows<T>);
    const auto weigh = mask->everyone ? &BackwardTile::weigh<false> : &BackwardTile::weigh<true>;
    (this->*weigh)(rows, range);
  }

  // d_scores becomes the derivative of scale q . k, before the soft cap.
  void through_cap(int64_t vectors, Range range) {
    const Tag<T> d;
    for (int64_t key = range.begin; key < range.end; ++key) {
      for (int64_t lane = 0; lane < vectors * kLanes<T>; lane += kLanes<T>) {
        T* at = d_scores + key * kBlockRows<T> + lane;
        const Vec<T> slope = hn::Load(d, cap_slope_ + key * kBlockRows<T> + lane);
        const Vec<T> ds = hn::Mul(hn::Load(d, at), slope);
        hn::Store(hn::IfThenElse(mask->sees(key, lane), ds, hn::Zero(d)), d, at);
      }
    }
  }

  // all [key][...]
  T* keys;      // [K]
  T* values;    // [M]
  T* weights;   // [lane]
  T* d_scores;  // [lane]
  TileMask<T>* mask;
  bool keys_finite = true;

 private:
  template <bool kTested>
  void weigh(const BackwardBlock<T>& rows, Range range) {
    const Tag<T> d;
    for (int64_t lane = 0; lane < rows.block.vectors * kLanes<T>; lane += kLanes<T>) {
      const Vec<T> max = hn::Load(d, rows.max + lane), inverse = hn::Load(d, rows.inverse + lane);
      const Vec<T> D = hn::Load(d, rows.D + lane);
      for (int64_t key = range.begin; key < range.end; ++key) {
        T* weight_at = weights + key * kBlockRows<T> + lane;
        T* score_at = d_scores + key * kBlockRows<T> + lane;
        Vec<T> weight = hn::Mul(exp_down(d, hn::Sub(hn::Load(d, weight_at), max)), inverse);
        Vec<T> ds = hn::Mul(weight, hn::Sub(hn::Load(d, score_at), D));
        if constexpr (kTested) {
          const auto sees = mask->sees(key, lane);
          weight = hn::IfThenElse(sees, weight, hn::Zero(d));
          ds = hn::IfThenElse(sees, ds, hn::Zero(d));
        }
        hn::Store(weight, d, weight_at);
        hn::Store(ds, d, score_at);
      }
    }
  }

  const AttentionBackward<T>& args_;
  const int64_t K_, M_;
  T* cap_slope_;
  T* addend_;
  T* unused_max_;
};

// dq, dk, dv of one key/value head of one batch entry: all of its splits, or one of them.
template <class T>
class BackwardWorker {
 public:
  BackwardWorker(const AttentionBackward<T>& args, const BackwardPlan& plan, Arena& arena)
      : args_(args), plan_(plan), K_(args.q.size(3)), M_(args.v.size(3)), tile_(args, arena) {
    blocks_ = arena.take<BackwardBlock<T>>(plan.blocks);
    for (int64_t i = 0; i < plan.blocks; ++i) {
      const auto block = BackwardBlock<T>::take(arena, K_, M_);
      if (blocks_ != nullptr) new (blocks_ + i) BackwardBlock<T>(block);
    }
    o_row_ = arena.take<T>(padded<T>(M_));
    clean_keys_ = arena.take<T>(kTileKeys * K_);
    dk_ = arena.take<T>(plan.tiles_per_task * kTileKeys * padded<T>(K_));
    dv_ = arena.take<T>(plan.tiles_per_task * kTileKeys * padded<T>(M_));
    if (!plan.apart) {
      dq_ = arena.take<T>(dq_size());
      dq_total_ = arena.take<T>(dq_size());
    }
  }

  // numbers of one head's dq in blocks, [block][column][lane]
  int64_t dq_size() const { return plan_.blocks * K_ * kBlockRows<T>; }

  // `dq_parts`: with splits apart, [split][b][h] blocks of dq_size(). The sums get what the task adds to the
  // gradients of the sink and the slope: sinks [b][h], slopes [b][h][split].
  void run(const BackwardTask& task, T* dq_parts, double* sink_sums, double* slope_sums) {
    const int64_t H = args_.q.size(2), Hkv = args_.k.size(2), heads = H / Hkv;
    std::fill(dk_, dk_ + plan_.tiles_per_task * kTileKeys * padded<T>(K_), T(0));
    std::fill(dv_, dv_ + plan_.tiles_per_task * kTileKeys * padded<T>(M_), T(0));
    for (int64_t h = task.g * heads; h < (task.g + 1) * heads; ++h) {
      const Head<T> head(args_.pattern, task.b, h, args_.q.size(1), args_.k.size(1));
      const int64_t index = task.b * H + h;
      const int64_t blocks = load_blocks(head);
      if (task.splits.begin == 0 && args_.dsinks.data != nullptr) sink_sums[index] = sink_sum(head, blocks);
      for (int64_t split = task.splits.begin; split < task.splits.end; ++split) {
        if (plan_.apart) dq_ = dq_parts + (split * args_.q.size(0) * H + index) * dq_size();
        std::fill(dq_, dq_ + dq_size(), T(0));
        slope_sums[index * plan_.splits + split] = add_split(head, split, blocks);
        if (!plan_.apart) collect_dq(split);
      }
      if (!plan_.apart && args_.dq.data != nullptr) write_dq(head, dq_total_, 0);
    }
    write_keys(task);
  }

  // dq of a head from the sums in `parts`: one, or with a `part_step` those of all splits, this far apart.
  void write_dq(const Head<T>& head, T* parts, int64_t part_step) const {
    const Tag<T> d;
    const View<T, 2> dq = args_.dq[head.b].swap(0, 1)[head.h];
    const int64_t begin = head.spans.q.begin, end = head.spans.q.end;
    zero_rows(dq.slice(0, 0, begin));
    zero_rows(dq.slice(0, std::max(begin, end), dq.size(0)));
    for (int64_t row = begin, block = 0; row < end; row += kBlockRows<T>, ++block) {
      T* sum = parts + block * K_ * kBlockRows<T>;
      for (int64_t i = 0; i < K_ * kBlockRows<T>; i += kLanes<T>) {
        Vec<T> x = hn::Load(d, sum + i);
        for (int64_t split = 1; split < plan_.splits && part_step != 0; ++split) {
          x = hn::Add(x, hn::Load(d, sum + split * part_step + i));
        }
        // the sum with 0 turns -0 into 0, so that keys without weight cannot change the sign
        hn::Store(hn::MulAdd(x, hn::Set(d, args_.pattern.scale), hn::Zero(d)), d, sum + i);
      }
      unpack_transposed(sum, dq.slice(0, row, std::min(end, row + kBlockRows<T>)));
    }
  }

 private:
  int64_t load_blocks(const Head<T>& head) {
    int64_t blocks = 0;
    for (int64_t row = 0; row < head.spans.q.size(); row += kBlockRows<T>) {
      blocks_[blocks++].load(args_, head, block_of(head, row, head.spans.q.size()), o_row_);
    }
    return blocks;
  }

  // Which of a task's tiles is the one of this index of the head.
  int64_t tile_in_task(int64_t index) const { return plan_.apart ? index / plan_.splits : index; }

  // Adds the tiles of one split; gives what they add to the gradient of the slope.
  double add_split(const Head<T>& head, int64_t split, int64_t blocks) {
    double slope_sum = 0;
    if (blocks == 0) return slope_sum;
    // blocks see ever later keys
    const Range keys{blocks_[0].block.seen_by_some.begin, blocks_[blocks - 1].block.seen_by_some.end};
    for (int64_t index = keys.begin / kTileKeys; index * kTileKeys < keys.end; ++index) {
      if (index % plan_.splits != split) continue;
      const int64_t tile = index * kTileKeys;
      const Range tile_keys = intersect(keys, {tile, tile + kTileKeys});
      tile_.load(head, tile, tile_keys);
      if (!tile_.keys_finite) {
        std::copy(tile_.keys, tile_.keys + kTileKeys * K_, clean_keys_);
        replace_non_finite(clean_keys_ + (tile_keys.begin - tile) * K_, tile_keys.size(), K_, K_);
      }
      const int64_t in_task = tile_in_task(index);
      for (int64_t i = 0; i < blocks; ++i) {
        const Range seen = intersect(blocks_[i].block.seen_by_some, tile_keys);
        if (!seen.empty()) slope_sum += add_tile(head, i, tile, seen, in_task * kTileKeys);
      }
    }
    return slope_sum;
  }

  double add_tile(const Head<T>& head, int64_t i, int64_t tile, Range seen, int64_t task_key) {
    const BackwardBlock<T>& rows = blocks_[i];
    const int64_t vectors = rows.block.vectors, count = rows.block.rows.size();
    const Range range{seen.begin - tile, seen.end - tile};
    const int64_t first = range.begin * kBlockRows<T>;
    tile_.compute(head, rows, tile, seen);
    const double slope_sum = args_.dslopes.data == nullptr ? 0 : slope_gradient(rows, range);
    if (args_.pattern.soft_cap) tile_.through_cap(vectors, range);
    T* dk = dk_ + (task_key + range.begin) * padded<T>(K_);
    T* dv = dv_ + (task_key + range.begin) * padded<T>(M_);
    T* dq = dq_ + i * K_ * kBlockRows<T>;
    // dv = P^T do
    multiply<Into::kAdd>(RowsOfSteps<T>{tile_.weights + first, kBlockRows<T>}, range.size(), rows.d_o_rows,
                         padded<T>(M_), padded<T>(M_) / kLanes<T>, count, dv, padded<T>(M_));
    // dk = ds^T (scale q)
    multiply<Into::kAdd>(RowsOfSteps<T>{tile_.d_scores + first, kBlockRows<T>}, range.size(), rows.query_rows,
                         padded<T>(K_), padded<T>(K_) / kLanes<T>, count, dk, padded<T>(K_));
    // dq = ds k, scaled at the end
    const T* keys = tile_.keys_finite ? tile_.keys : clean_keys_;
    multiply<Into::kAdd>(StepsOfRows<T>{keys + range.begin * K_, K_}, K_, tile_.d_scores + first, kBlockRows<T>,
                         vectors, range.size(), dq, kBlockRows<T>);
    add_non_finite(rows, range, dq, dk, dv);
    return slope_sum;
  }

  // Infinities and NaN were left out of the products, where they would reach pairs that don't see each other.
  void add_non_finite(const BackwardBlock<T>& rows, Range range, T* dq, T* dk, T* dv) {
    const int64_t count = rows.block.rows.size();
    const auto each_pair = [&](auto body) {
      for (int64_t key = range.begin; key < range.end; ++key) {
        for (int64_t lane = 0; lane < count; ++lane) {
          if (tile_.mask->sees_one(key, lane)) body(key, lane);
        }
      }
    };
    const auto add = [](T& sum, T factor, T value) {
      if (!std::isfinite(value)) sum += factor * value;
    };
    const auto at = [](int64_t key, int64_t lane) { return key * kBlockRows<T> + lane; };
    if (!tile_.keys_finite) {
      each_pair([&](int64_t key, int64_t lane) {
        for (int64_t c = 0; c < K_; ++c) add(dq[at(c, lane)], tile_.d_scores[at(key, lane)], tile_.keys[key * K_ + c]);
      });
    }
    if (!rows.queries_finite) {
      each_pair([&](int64_t key, int64_t lane) {
        T* sums = dk + (key - range.begin) * padded<T>(K_);
        for (int64_t c = 0; c < K_; ++c) add(sums[c], tile_.d_scores[at(key, lane)], rows.queries[at(c, lane)]);
      });
    }
    if (!rows.d_o_finite) {
      each_pair([&](int64_t key, int64_t lane) {
        T* sums = dv + (key - range.begin) * padded<T>(M_);
        for (int64_t c = 0; c < M_; ++c) add(sums[c], tile_.weights[at(key, lane)], rows.d_o[at(c, lane)]);
      });
    }
  }

  // -sum of dS |p - r|
  double slope_gradient(const BackwardBlock<T>& rows, Range range) const {
    double sum = 0;
    for (int64_t key = range.begin; key < range.end; ++key) {
      for (int64_t lane = 0; lane < rows.block.rows.size(); ++lane) {
        const T distance = std::abs(tile_.mask->distance[lane] - static_cast<T>(key));
        sum -= double(tile_.d_scores[key * kBlockRows<T> + lane]) * double(distance);
      }
    }
    return sum;
  }

  // -sum of P_sink D
  double sink_sum(const Head<T>& head, int64_t blocks) const {
    const Tag<T> d;
    const Vec<T> sink = hn::Set(d, args_.pattern.sinks(head.h));
    alignas(64) T terms[kLanes<T>];
    double sum = 0;
    for (int64_t i = 0; i < blocks; ++i) {
      for (int64_t lane = 0; lane < blocks_[i].block.rows.size(); lane += kLanes<T>) {
        const Vec<T> e = exp_down(d, hn::Sub(sink, hn::Load(d, blocks_[i].max + lane)));
        const Vec<T> weight = hn::Mul(e, hn::Load(d, blocks_[i].inverse + lane));
        hn::Store(hn::Mul(weight, hn::Load(d, blocks_[i].D + lane)), d, terms);
        const int64_t count = std::min(kLanes<T>, blocks_[i].block.rows.size() - lane);
        for (int64_t k = 0; k < count; ++k) sum -= double(terms[k]);
      }
    }
    return sum;
  }

  void collect_dq(int64_t split) {
    const Tag<T> d;
    if (split == 0) {
      std::swap(dq_, dq_total_);
      return;
    }
    for (int64_t i = 0; i < dq_size(); i += kLanes<T>) {
      hn::Store(hn::Add(hn::Load(d, dq_total_ + i), hn::Load(d, dq_ + i)), d, dq_total_ + i);
    }
  }

  static void zero_rows(View<T, 2> rows) {
    for (int64_t i = 0; i < rows.size(0); ++i) {
      for (int64_t c = 0; c < rows.size(1); ++c) rows(i, c) = T(0);
    }
  }

  // dk and dv of the task's tiles; the first split also writes the rows outside the valid ones.
  void write_keys(const BackwardTask& task) {
    const Spans spans = spans_of(args_.pattern, task.b, args_.q.size(1), args_.k.size(1));
    write_key_rows(args_.dk, task, spans.k, dk_);
    write_key_rows(args_.dv, task, spans.k, dv_);
  }
  void write_key_rows(const View<T, 4>& gradient, const BackwardTask& task, Range span, const T* sums) {
    if (gradient.data == nullptr) return;
    const View<T, 2> rows = gradient[task.b].swap(0, 1)[task.g];
    const int64_t width = padded<T>(rows.size(1));
    if (task.splits.begin == 0) {
      zero_rows(rows.slice(0, 0, span.begin));
      zero_rows(rows.slice(0, std::max(span.begin, span.end), rows.size(0)));
    }
    for (int64_t index = 0; index * kTileKeys < span.size(); ++index) {
      const int64_t split = index % plan_.splits;
      if (split < task.splits.begin || split >= task.splits.end) continue;
      const T* from = sums + tile_in_task(index) * kTileKeys * width;
      const int64_t begin = span.begin + index * kTileKeys, end = std::min(span.end, begin + kTileKeys);
      for (int64_t j = begin; j < end; ++j) {
        // the sum with 0 turns -0 into 0, so that rows without weight cannot change the sign
        for (int64_t c = 0; c < rows.size(1); ++c) rows(j, c) = from[(j - begin) * width + c] + T(0);
      }
    }
  }

  const AttentionBackward<T>& args_;
  const BackwardPlan& plan_;
  const int64_t K_, M_;
  BackwardTile<T> tile_;
  BackwardBlock<T>* blocks_;
  T* o_row_;
  T* clean_keys_;  // [key][K], infinities and NaN replaced by 0
  T* dk_;          // [key of the task's tiles][padded K]
  T* dv_;
  T* dq_ = nullptr;        // of the current split
  T* dq_total_ = nullptr;  // of the splits so far
};

// dbias: dS summed over what the bias was broadcast to, in a pass of its own that recomputes dS.
template <class T>
class BiasWorker {
 public:
  BiasWorker(const AttentionBackward<T>& args, Arena& arena) : args_(args), tile_(args, arena) {
    rows_ = BackwardBlock<T>::take(arena, args.q.size(3), args.v.size(3));
    o_row_ = arena.take<T>(padded<T>(args.v.size(3)));
    sums_ = arena.take<double>((args.dbias.size(2) == 1 ? 1 : kBlockRows<T>)*args.dbias.size(3));
  }

  // tasks: (b, h, block of rows) of dbias
  static int64_t tasks(const AttentionBackward<T>& args) {
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
    rows_.load(args_, head, block_of(head, row, end), o_row_);
    const Range keys = rows_.block.seen_by_some;
    for (int64_t tile = keys.begin / kTileKeys * kTileKeys; tile < keys.end; tile += kTileKeys) {
      const Range seen = intersect(keys, {tile, tile + kTileKeys});
      tile_.load(head, tile, seen);
      tile_.compute(head, rows_, tile, seen);
      for (int64_t lane = 0; lane < rows_.block.rows.size(); ++lane) {
        const int64_t i = head.spans.q.begin + row + lane - first_row;
        double* sums = sums_ + (args_.dbias.size(2) == 1 ? 0 : i * args_.dbias.size(3));
        for (int64_t key = seen.begin; key < seen.end; ++key) {
          const int64_t j = args_.dbias.size(3) == 1 ? 0 : head.spans.k.begin + key;
          sums[j] += double(tile_.d_scores[(key - tile) * kBlockRows<T> + lane]);
        }
      }
    }
  }

  const AttentionBackward<T>& args_;
  BackwardTile<T> tile_;
  BackwardBlock<T> rows_;
  T* o_row_;
  double* sums_;  // [row][key] of the task's part of dbias
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
