#include "model/attention_sublayer.h"

#include <algorithm>
#include <cmath>

#include "headlight/kernels/attention.h"
#include "headlight/kernels/attention_sums.h"
#include "headlight/kernels/elementwise.h"
#include "headlight/kernels/matmul.h"
#include "headlight/kernels/norm.h"
#include "headlight/kernels/rotary.h"
#include "model/linear.h"
#include "model/run_state.h"

namespace headlight {
namespace {

// The queries or the keys: projected, normalised when the model does so, turned when positions are rotary.
struct Side {
  int64_t heads;
  int weight = -1, bias = -1, norm_weight = -1;                          // parameters
  int projected = -1, normalized = -1, scale = -1, turned = -1, d = -1;  // slots
  int ready() const { return turned >= 0 ? turned : normalized >= 0 ? normalized : projected; }
};

template <class T>
class Attention final : public Sublayer<T> {
 public:
  Attention(const ModelConfig& config, int64_t block, const std::string& prefix, Architecture<T>& architecture)
      : config_(config), pattern_(attention_pattern<T>(config, block)) {
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
    multiply(std::array{project(pass, in, q_.weight, q_.bias, q_.projected, heads() * key_width()),
                        project(pass, in, k_.weight, k_.bias, k_.projected, key_heads() * key_width()),
                        project(pass, in, w_v_, b_v_, v_, key_heads() * value_width())});
    for (const int slot : {q_.projected, k_.projected, v_}) intervene<T>(pass.batch, run, slot);
    prepare(pass, q_);
    prepare(pass, k_);
    AttentionForward<T> attention{.q = ready(run, q_),
                                  .k = ready(run, k_),
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
    attention_backward({.q = ready(run, q_),
                        .k = ready(run, k_),
                        .v = run.heads(v_, key_heads(), value_width()),
                        .o = run.heads(z_, heads(), value_width()),
                        .statistics = run.statistics(statistics_, heads()),
                        .d_o = run.heads(d_z_, heads(), value_width()),
                        .dq = run.heads(q_.d, heads(), key_width()),
                        .dk = run.heads(k_.d, key_heads(), key_width()),
                        .dv = run.heads(d_v_, key_heads(), value_width()),
                        .pattern = pattern(pass.batch)});
    prepare_backward(pass, q_, in, d_in, accumulate);
    prepare_backward(pass, k_, in, d_in, true);
    // v = in W_V + b_V
    project_backward(pass, in, w_v_, b_v_, run.rows(d_v_, key_heads() * value_width()), d_in, true);
  }

  void rows(const Batch& batch, typename BasicRun<T>::State& run, int64_t head_begin, int64_t row_begin,
            View<T, 4> weights) const {
    attention_rows({.q = ready(run, q_),
                    .k = ready(run, k_),
                    .statistics = run.statistics(statistics_, heads()),
                    .head_begin = head_begin,
                    .row_begin = row_begin,
                    .weights = weights,
                    .pattern = pattern(batch)});
  }

  void sums(const Batch& batch, typename BasicRun<T>::State& run, const PatternSums<T>& sums) const {
    attention_sums({.q = ready(run, q_),
                    .k = ready(run, k_),
                    .statistics = run.statistics(statistics_, heads()),
                    .sum = sums.sum,
                    .entropy = sums.entropy,
                    .distance = sums.distance,
                    .chosen = sums.chosen,
                    .weights = sums.weights,
                    .pattern = pattern(batch)});
  }

 private:
  int64_t heads() const { return config_.heads; }
  int64_t key_heads() const { return config_.key_value_heads; }
  int64_t key_width() const { return config_.head_width; }
  int64_t value_width() const { return config_.value_width; }

  void declare_parameters(const std::string& prefix, ParameterTable& table) {
    const int64_t d = config_.width;
    const bool biased = config_.biases.query_key_value;
    q_.heads = heads();
    k_.heads = key_heads();
    const auto add_side = [&](Side& side, const std::string& letter) {
      side.weight = add_matrix(table, prefix + "W_" + letter, d, side.heads * key_width());
      side.bias = add_bias(table, biased, prefix + "b_" + letter, side.heads * key_width());
    };
    add_side(q_, "Q");
    add_side(k_, "K");
    w_v_ = add_matrix(table, prefix + "W_V", d, key_heads() * value_width());
    b_v_ = add_bias(table, biased, prefix + "b_V", key_heads() * value_width());
    w_o_ = add_writer(table, config_, prefix + "W_O", heads() * value_width());
    b_o_ = add_bias(table, config_.biases.attention_output, prefix + "b_O", d);
    if (!config_.query_key_norm) return;
    q_.norm_weight = table.add({.name = prefix + "norm_q.w", .shape = {key_width()}, .initial_mean = 1});
    k_.norm_weight = table.add({.name = prefix + "norm_k.w", .shape = {key_width()}, .initial_mean = 1});
  }

  void declare_side(const std::string& prefix, const std::string& letter, const std::string& meaning, SiteTable& sites,
                    Side& side) {
    const std::vector<int64_t> shape{kBatchSize, kTimeSize, side.heads, key_width()};
    const bool normalizes = config_.query_key_norm, turns = config_.positions == Positions::kRotary;
    const auto add = [&](const std::string& name, bool saved, const std::string& what) {
      return sites.add({.name = prefix + name + letter, .shape = shape, .saved = saved, .meaning = what});
    };
    // on the way back only what a norm or the attention itself read is needed
    side.projected = add("hook_", normalizes || !turns,
                         meaning + (normalizes ? " before their norm"
                                    : turns    ? " before positions"
                                               : ""));
    if (normalizes) {
      side.scale = sites.add({.name = prefix + "norm_" + letter + ".scale",
                              .shape = {kBatchSize, kTimeSize, side.heads},
                              .saved = true,
                              .is_site = false,
                              .meaning = "what each head's row was divided by"});
      side.normalized = add("hook_norm_", !turns, "normalised " + meaning);
    }
    if (turns) side.turned = add("hook_rot_", true, "turned " + meaning);
    side.d = sites.add({.name = prefix + "d_" + letter, .shape = shape, .use = SlotUse::kWorkspace, .is_site = false});
  }

  void declare_sites(const std::string& prefix, SiteTable& sites) {
    const std::vector<int64_t> v{kBatchSize, kTimeSize, key_heads(), value_width()};
    const std::vector<int64_t> z{kBatchSize, kTimeSize, heads(), value_width()};
    declare_side(prefix, "q", "queries", sites, q_);
    declare_side(prefix, "k", "keys", sites, k_);
    v_ = sites.add({.name = prefix + "hook_v", .shape = v, .saved = true, .meaning = "values"});
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
               .sources = {q_.ready(), k_.ready(), statistics_}});
    z_ = sites.add({.name = prefix + "hook_z", .shape = z, .saved = true, .meaning = "each head's output before W_O"});
    result_ = sites.add({.name = prefix + "hook_result",
                         .shape = {kBatchSize, kTimeSize, heads(), config_.width},
                         .use = SlotUse::kOnRequest,
                         .changeable = false,
                         .meaning = "each head's write: z W_O of that head"});
    const auto workspace = [&](const std::string& name, const std::vector<int64_t>& shape) {
      return sites.add({.name = prefix + name, .shape = shape, .use = SlotUse::kWorkspace, .is_site = false});
    };
    d_v_ = workspace("d_v", v);
    d_z_ = workspace("d_z", z);
  }

  void make_slopes() {
    if (config_.positions != Positions::kAlibi) return;
    slopes_ = Buffer<T>(heads());
    const std::vector<double> slopes = alibi_slopes(heads());
    for (int64_t h = 0; h < heads(); ++h) slopes_[h] = static_cast<T>(slopes[static_cast<std::size_t>(h)]);
    pattern_.slopes = slopes_.template view<1>({heads()});
  }

  // what attention reads
  View<T, 4> ready(typename BasicRun<T>::State& run, const Side& side) const {
    return run.heads(side.ready(), side.heads, key_width());
  }

  AttentionPattern<T> pattern(const Batch& batch) const {
    AttentionPattern<T> pattern = pattern_;
    pattern.q_len = pattern.k_len = batch.lengths.view<1>({batch.size});
    pattern.q_begin = pattern.k_begin = batch.begins.view<1>({batch.size});
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

  // (B T heads, K): a head's row of one token in each
  View<T, 2> head_rows(typename BasicRun<T>::State& run, const Side& side, int slot) const {
    return {run.at(slot), {run.size * run.time * side.heads, key_width()}};
  }
  View<T, 1> head_scales(typename BasicRun<T>::State& run, const Side& side) const {
    return {run.at(side.scale), {run.size * run.time * side.heads}};
  }

  // What was projected: normalised and turned as the model does.
  void prepare(const Pass<T>& pass, const Side& side) const {
    auto& run = pass.run;
    int last = side.projected;
    if (side.normalized >= 0) {
      norm_forward<T>({.kind = NormKind::kRmsNorm,
                       .x = head_rows(run, side, last),
                       .weight = pass.weight_vector(side.norm_weight),
                       .epsilon = static_cast<T>(config_.norm_epsilon),
                       .y = head_rows(run, side, side.normalized),
                       .scale = head_scales(run, side)});
      last = side.normalized;
      intervene<T>(pass.batch, run, last);
    }
    if (side.turned < 0) return;
    turn(pass, run.heads(last, side.heads, key_width()), ready(run, side), false);
    intervene<T>(pass.batch, run, side.turned);
  }

  void prepare_backward(const Pass<T>& pass, const Side& side, View<const T, 2> in, View<T, 2> d_in,
                        bool accumulate) const {
    auto& run = pass.run;
    const View<T, 4> d = run.heads(side.d, side.heads, key_width());
    if (side.turned >= 0) turn(pass, d, d, true);
    if (side.normalized >= 0) {
      norm_backward<T>({.kind = NormKind::kRmsNorm,
                        .x = head_rows(run, side, side.projected),
                        .weight = pass.weight_vector(side.norm_weight),
                        .scale = head_scales(run, side),
                        .dy = head_rows(run, side, side.d),
                        .dx = head_rows(run, side, side.d),
                        .dweight = pass.gradient_vector(side.norm_weight)});
    }
    project_backward(pass, in, side.weight, side.bias, run.rows(side.d, side.heads * key_width()), d_in, accumulate);
  }

  StoredProduct<T> project(const Pass<T>& pass, View<const T, 2> in, int weight, int bias, int slot,
                           int64_t width) const {
    return linear<T>(pass, weight, bias, in, {}, pass.run.rows(slot, width));
  }

  void project_backward(const Pass<T>& pass, View<const T, 2> in, int weight, int bias, View<const T, 2> d,
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
      multiply<T>({.a = z.slice(1, h * m, (h + 1) * m),
                   .b = {},
                   .c = result.slice(1, h * config_.width, (h + 1) * config_.width)},
                  pass.weight(w_o_).slice(0, h * m, (h + 1) * m));
    }
  }

  ModelConfig config_;
  AttentionPattern<T> pattern_;  // of the block, without the sequences
  Buffer<T> slopes_;             // (H)
  int64_t cache_;                // its place in the caches
  int cosine_, sine_;            // slots of the rotary tables
  Side q_, k_;
  int w_v_, b_v_, w_o_, b_o_;        // parameters
  int v_, statistics_, z_, result_;  // slots
  int d_v_, d_z_;
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
std::unique_ptr<Sublayer<T>> make_attention(const ModelConfig& config, int64_t block, const std::string& prefix,
                                            Architecture<T>& architecture) {
  return std::make_unique<Attention<T>>(config, block, prefix, architecture);
}

std::string queries_site(const ModelConfig& config, const std::string& prefix) {
  if (config.positions == Positions::kRotary) return prefix + "hook_rot_q";
  return prefix + (config.query_key_norm ? "hook_norm_q" : "hook_q");
}

std::string keys_site(const ModelConfig& config, const std::string& prefix) {
  std::string name = queries_site(config, prefix);
  name.back() = 'k';
  return name;
}

template <class T>
void attention_sublayer_rows(const Sublayer<T>& sublayer, const Batch& batch, typename BasicRun<T>::State& run,
                             int64_t head_begin, int64_t row_begin, View<T, 4> weights) {
  dynamic_cast<const Attention<T>&>(sublayer).rows(batch, run, head_begin, row_begin, weights);
}

template <class T>
void attention_sublayer_sums(const Sublayer<T>& sublayer, const Batch& batch, typename BasicRun<T>::State& run,
                             const PatternSums<T>& sums) {
  dynamic_cast<const Attention<T>&>(sublayer).sums(batch, run, sums);
}

template std::unique_ptr<Sublayer<float>> make_attention(const ModelConfig&, int64_t, const std::string&,
                                                         Architecture<float>&);
template std::unique_ptr<Sublayer<double>> make_attention(const ModelConfig&, int64_t, const std::string&,
                                                          Architecture<double>&);
template void attention_sublayer_rows(const Sublayer<float>&, const Batch&, BasicRun<float>::State&, int64_t, int64_t,
                                      View<float, 4>);
template void attention_sublayer_rows(const Sublayer<double>&, const Batch&, BasicRun<double>::State&, int64_t, int64_t,
                                      View<double, 4>);
template void attention_sublayer_sums(const Sublayer<float>&, const Batch&, BasicRun<float>::State&,
                                      const PatternSums<float>&);
template void attention_sublayer_sums(const Sublayer<double>&, const Batch&, BasicRun<double>::State&,
                                      const PatternSums<double>&);

}  // namespace headlight
