#include "model/attention_sublayer.h"

#include <algorithm>
#include <cmath>

#include "headlight/kernels/attention.h"
#include "headlight/kernels/elementwise.h"
#include "headlight/kernels/matmul.h"
#include "headlight/kernels/rotary.h"
#include "model/linear.h"
#include "model/run_state.h"

namespace headlight {
namespace {

template <class T>
class Attention final : public Sublayer<T> {
 public:
  Attention(const ModelConfig& config, const std::string& prefix, Architecture<T>& architecture)
      : config_(config), rotates_(config.positions == Positions::kRotary) {
    declare_parameters(prefix, architecture.parameters);
    declare_sites(prefix, architecture.sites);
    cache_ = static_cast<int64_t>(architecture.caches.size());
    architecture.caches.push_back({key_heads(), key_width(), value_width()});
    make_slopes();
    cosine_ = architecture.rotary_cosine;
    sine_ = architecture.rotary_sine;
  }

  void forward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> residual, View<T, 2> out) const override {
    auto& run = pass.run;
    project(pass, in, w_q_, b_q_, q_, heads() * key_width());
    project(pass, in, w_k_, b_k_, k_, key_heads() * key_width());
    project(pass, in, w_v_, b_v_, v_, key_heads() * value_width());
    if (rotates_) {
      turn(pass, run.heads(q_, heads(), key_width()), run.heads(rotated_q_, heads(), key_width()), false);
      turn(pass, run.heads(k_, key_heads(), key_width()), run.heads(rotated_k_, key_heads(), key_width()), false);
      intervene<T>(pass.batch, run, rotated_q_);
      intervene<T>(pass.batch, run, rotated_k_);
    }
    AttentionForward<T> attention{.q = queries(run),
                                  .k = keys(run),
                                  .v = run.heads(v_, key_heads(), value_width()),
                                  .o = run.heads(z_, heads(), value_width()),
                                  .statistics = run.statistics(statistics_, heads()),
                                  .pattern = pattern(pass.batch)};
    if (pass.cache != nullptr) read_cache(*pass.cache, attention);
    attention_forward(attention);
    intervene<T>(pass.batch, run, z_);
    if (run.is_wanted(result_)) write_each_head(pass);
    linear_forward<T>(pass, w_o_, b_o_, run.rows(z_, heads() * value_width()), residual, out);
  }

  void backward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> d_out, View<T, 2> d_in,
                bool accumulate) const override {
    auto& run = pass.run;
    // out = z W_O + b_O
    linear_backward_weights<T>(pass, w_o_, b_o_, run.rows(z_, heads() * value_width()), d_out);
    linear_backward_input<T>(pass, w_o_, d_out, run.rows(d_z_, heads() * value_width()), false);
    // z = attention(q, k, v)
    const View<T, 4> dq = run.heads(d_q_, heads(), key_width());
    const View<T, 4> dk = run.heads(d_k_, key_heads(), key_width());
    attention_backward({.q = queries(run),
                        .k = keys(run),
                        .v = run.heads(v_, key_heads(), value_width()),
                        .o = run.heads(z_, heads(), value_width()),
                        .statistics = run.statistics(statistics_, heads()),
                        .d_o = run.heads(d_z_, heads(), value_width()),
                        .dq = dq,
                        .dk = dk,
                        .dv = run.heads(d_v_, key_heads(), value_width()),
                        .pattern = pattern(pass.batch)});
    // q, k = turned(q, k)
    if (rotates_) {
      turn(pass, dq, dq, true);
      turn(pass, dk, dk, true);
    }
    // q = in W_Q + b_Q, k = in W_K + b_K, v = in W_V + b_V
    backward_projection(pass, in, w_q_, b_q_, run.rows(d_q_, heads() * key_width()), d_in, accumulate);
    backward_projection(pass, in, w_k_, b_k_, run.rows(d_k_, key_heads() * key_width()), d_in, true);
    backward_projection(pass, in, w_v_, b_v_, run.rows(d_v_, key_heads() * value_width()), d_in, true);
  }

  void rows(const Batch& batch, typename BasicRun<T>::State& run, int64_t head_begin, int64_t row_begin,
            View<T, 4> weights) const {
    attention_rows({.q = queries(run),
                    .k = keys(run),
                    .statistics = run.statistics(statistics_, heads()),
                    .head_begin = head_begin,
                    .row_begin = row_begin,
                    .weights = weights,
                    .pattern = pattern(batch)});
  }

 private:
  int64_t heads() const { return config_.heads; }
  int64_t key_heads() const { return config_.key_value_heads; }
  int64_t key_width() const { return config_.head_width; }
  int64_t value_width() const { return config_.value_width; }

  void declare_parameters(const std::string& prefix, ParameterTable& table) {
    const int64_t d = config_.width;
    w_q_ = add_matrix(table, prefix + "W_Q", d, heads() * key_width());
    b_q_ = add_bias(table, config_, prefix + "b_Q", heads() * key_width());
    w_k_ = add_matrix(table, prefix + "W_K", d, key_heads() * key_width());
    b_k_ = add_bias(table, config_, prefix + "b_K", key_heads() * key_width());
    w_v_ = add_matrix(table, prefix + "W_V", d, key_heads() * value_width());
    b_v_ = add_bias(table, config_, prefix + "b_V", key_heads() * value_width());
    w_o_ = add_writer(table, config_, prefix + "W_O", heads() * value_width());
    b_o_ = add_bias(table, config_, prefix + "b_O", d);
  }

  void declare_sites(const std::string& prefix, SiteTable& sites) {
    const std::vector<int64_t> q{kBatchSize, kTimeSize, heads(), key_width()};
    const std::vector<int64_t> k{kBatchSize, kTimeSize, key_heads(), key_width()};
    const std::vector<int64_t> v{kBatchSize, kTimeSize, key_heads(), value_width()};
    const std::vector<int64_t> z{kBatchSize, kTimeSize, heads(), value_width()};
    // with rotary positions only the turned queries and keys are needed on the way back
    q_ = sites.add({.name = prefix + "hook_q", .shape = q, .saved = !rotates_, .meaning = "queries before positions"});
    k_ = sites.add({.name = prefix + "hook_k", .shape = k, .saved = !rotates_, .meaning = "keys before positions"});
    v_ = sites.add({.name = prefix + "hook_v", .shape = v, .saved = true, .meaning = "values"});
    if (rotates_) {
      rotated_q_ = sites.add({.name = prefix + "hook_rot_q", .shape = q, .saved = true, .meaning = "turned queries"});
      rotated_k_ = sites.add({.name = prefix + "hook_rot_k", .shape = k, .saved = true, .meaning = "turned keys"});
    }
    statistics_ = sites.add({.name = prefix + "statistics",
                             .shape = {kBatchSize, heads(), kTimeSize, 2},
                             .saved = true,
                             .is_site = false,
                             .meaning = "row maxima and sums that the weights are recomputed from"});
    sites.add({.name = prefix + "hook_pattern",
               .shape = {kBatchSize, heads(), kTimeSize, kTimeSize},
               .use = SlotUse::kRecomputed,
               .changeable = false,
               .meaning = "attention weights, by rows: pattern_rows()",
               .sources = {rotates_ ? rotated_q_ : q_, rotates_ ? rotated_k_ : k_, statistics_}});
    z_ = sites.add({.name = prefix + "hook_z", .shape = z, .saved = true, .meaning = "each head's output before W_O"});
    result_ = sites.add({.name = prefix + "hook_result",
                         .shape = {kBatchSize, kTimeSize, heads(), config_.width},
                         .use = SlotUse::kOnRequest,
                         .changeable = false,
                         .meaning = "each head's write: z W_O of that head"});
    const auto workspace = [&](const std::string& name, const std::vector<int64_t>& shape) {
      return sites.add({.name = prefix + name, .shape = shape, .use = SlotUse::kWorkspace, .is_site = false});
    };
    d_q_ = workspace("d_q", q);
    d_k_ = workspace("d_k", k);
    d_v_ = workspace("d_v", v);
    d_z_ = workspace("d_z", z);
  }

  void make_slopes() {
    if (config_.positions != Positions::kAlibi) return;
    slopes_ = Buffer<T>(heads());
    const std::vector<double> slopes = alibi_slopes(heads());
    for (int64_t h = 0; h < heads(); ++h) slopes_[h] = static_cast<T>(slopes[static_cast<std::size_t>(h)]);
  }

  View<T, 4> queries(typename BasicRun<T>::State& run) const {
    return run.heads(rotates_ ? rotated_q_ : q_, heads(), key_width());
  }
  View<T, 4> keys(typename BasicRun<T>::State& run) const {
    return run.heads(rotates_ ? rotated_k_ : k_, key_heads(), key_width());
  }

  AttentionPattern<T> pattern(const Batch& batch) const {
    AttentionPattern<T> pattern;
    pattern.scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(key_width())));
    if (config_.causal) pattern.right = 0;
    pattern.q_len = pattern.k_len = batch.lengths.view<1>({batch.size});
    pattern.q_begin = pattern.k_begin = batch.begins.view<1>({batch.size});
    if (slopes_.count() > 0) pattern.slopes = slopes_.template view<1>({heads()});
    return pattern;
  }

  // The keys and values of the batch go to the end of the cache, and those of the cache into the attention.
  void read_cache(BasicCache<T>& cache, AttentionForward<T>& attention) const {
    const int64_t past = cache.length(), length = past + attention.k.size(1);
    const View<T, 4> k = cache.keys(cache_).slice(1, 0, length), v = cache.values(cache_).slice(1, 0, length);
    copy_rows(attention.k[0], k[0].slice(0, past, length));
    copy_rows(attention.v[0], v[0].slice(0, past, length));
    attention.k = k;
    attention.v = v;
    attention.pattern.pos0 = past;
    attention.pattern.k_len = attention.pattern.k_begin = {};
  }
  // (T, Hkv, width)
  static void copy_rows(View<const T, 3> from, View<T, 3> to) {
    for (int64_t i = 0; i < from.size(0); ++i) {
      for (int64_t h = 0; h < from.size(1); ++h) {
        const View<const T, 1> row = from[i][h];
        std::copy(row.data, row.data + row.count(), to[i][h].data);
      }
    }
  }

  void project(const Pass<T>& pass, View<const T, 2> in, int weight, int bias, int slot, int64_t width) const {
    linear_forward<T>(pass, weight, bias, in, {}, pass.run.rows(slot, width));
    intervene<T>(pass.batch, pass.run, slot);
  }

  void backward_projection(const Pass<T>& pass, View<const T, 2> in, int weight, int bias, View<const T, 2> d,
                           View<T, 2> d_in, bool accumulate) const {
    linear_backward_weights<T>(pass, weight, bias, in, d);
    linear_backward_input<T>(pass, weight, d, d_in, accumulate);
  }

  void turn(const Pass<T>& pass, View<const T, 4> x, View<T, 4> y, bool inverse) const {
    rotary<T>({.x = x,
               .positions = pass.positions(),
               .cosine = pass.run.table(cosine_, config_.rotary_width / 2),
               .sine = pass.run.table(sine_, config_.rotary_width / 2),
               .y = y,
               .pairs = config_.rotary_pairs,
               .inverse = inverse});
  }

  // result(b, t, h) = z(b, t, h) W_O(h)
  void write_each_head(const Pass<T>& pass) const {
    auto& run = pass.run;
    const int64_t m = value_width();
    const View<T, 2> z = run.rows(z_, heads() * m);
    const View<T, 2> result = run.rows(result_, heads() * config_.width);
    for (int64_t h = 0; h < heads(); ++h) {
      matmul<T>({.a = z.slice(1, h * m, (h + 1) * m),
                 .b = pass.weight(w_o_).slice(0, h * m, (h + 1) * m),
                 .c = result.slice(1, h * config_.width, (h + 1) * config_.width)});
    }
  }

  ModelConfig config_;
  bool rotates_;
  Buffer<T> slopes_;                                                           // (H)
  int64_t cache_;                                                              // its place in the caches
  int cosine_, sine_;                                                          // slots of the rotary tables
  int w_q_, b_q_, w_k_, b_k_, w_v_, b_v_, w_o_, b_o_;                          // parameters
  int q_, k_, v_, rotated_q_ = -1, rotated_k_ = -1, statistics_, z_, result_;  // slots
  int d_q_, d_k_, d_v_, d_z_;
};

}  // namespace

std::vector<double> alibi_slopes(int64_t heads) {
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> slopes;
  for (int64_t h = 0; h < power; ++h)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  for (int64_t h = 0; power + h < heads; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(2 * h + 1) / static_cast<double>(2 * power)));
  }
  return slopes;
}

template <class T>
std::unique_ptr<Sublayer<T>> make_attention(const ModelConfig& config, const std::string& prefix,
                                            Architecture<T>& architecture) {
  return std::make_unique<Attention<T>>(config, prefix, architecture);
}

template <class T>
void attention_sublayer_rows(const Sublayer<T>& sublayer, const Batch& batch, typename BasicRun<T>::State& run,
                             int64_t head_begin, int64_t row_begin, View<T, 4> weights) {
  dynamic_cast<const Attention<T>&>(sublayer).rows(batch, run, head_begin, row_begin, weights);
}

template std::unique_ptr<Sublayer<float>> make_attention(const ModelConfig&, const std::string&, Architecture<float>&);
template std::unique_ptr<Sublayer<double>> make_attention(const ModelConfig&, const std::string&,
                                                          Architecture<double>&);
template void attention_sublayer_rows(const Sublayer<float>&, const Batch&, BasicRun<float>::State&, int64_t, int64_t,
                                      View<float, 4>);
template void attention_sublayer_rows(const Sublayer<double>&, const Batch&, BasicRun<double>::State&, int64_t, int64_t,
                                      View<double, 4>);

}  // namespace headlight
