#include "headlight/model/count.h"

#include <algorithm>

#include "model/architecture.h"

namespace headlight {
namespace {

// elements of the parameters whose names begin with `prefix`
int64_t parameters_under(const ParameterTable& table, const std::string& prefix) {
  int64_t count = 0;
  for (const Parameter& p : table.all()) {
    if (p.name.rfind(prefix, 0) == 0) count += p.count;
  }
  return count;
}

// a product with a matrix: a multiply and an add per weight and row
double product_flops(const ParameterTable& table, const std::string& prefix, double rows) {
  double flops = 0;
  for (const Parameter& p : table.all()) {
    if (p.name.rfind(prefix, 0) == 0 && p.shape.size() == 2) flops += 2.0 * rows * static_cast<double>(p.count);
  }
  return flops;
}

}  // namespace

double visible_pairs(int64_t time, bool causal, int64_t window) {
  const double t = static_cast<double>(time);
  if (!causal) return t * t;
  // the rows from the window's width on see that many keys
  const double w = window == 0 ? t : std::min(t, static_cast<double>(window));
  return w * (w + 1) / 2 + (t - w) * w;
}

ModelCost count_cost(const ModelConfig& given, int64_t time) {
  const ModelConfig config = resolve(given);
  const auto architecture = build_architecture<float>(config);
  const ParameterTable& table = architecture->parameters;
  const double rows = static_cast<double>(time);
  ModelCost cost;
  cost.time = time;
  double products = 0;
  const auto add = [&](const std::string& part, int64_t parameters, double flops, const std::string& note) {
    cost.parts.push_back({part, parameters, flops, note});
    cost.forward_flops += flops;
  };
  add("embed",
      parameters_under(table, "embed.") + parameters_under(table, "pos_embed.") +
          parameters_under(table, "type_embed."),
      0, "rows of a table");
  const double per_pair =
      static_cast<double>(config.heads) * 2.0 * static_cast<double>(config.head_width + config.value_width);
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string prefix = "blocks." + std::to_string(block) + ".";
    const double attention = visible_pairs(time, config.causal, window_of(config, block)) * per_pair;
    const double projections = product_flops(table, prefix + "attn.", rows);
    add(prefix + "attn", parameters_under(table, prefix + "attn."), projections + attention,
        "products with W_Q, W_K, W_V, W_O, and scores and values of the visible pairs");
    cost.attention_flops += attention;
    products += projections;
    if (config.feed_forward != FeedForward::kNone) {
      const double feed_forward = product_flops(table, prefix + "mlp.", rows);
      add(prefix + "mlp", parameters_under(table, prefix + "mlp."), feed_forward, "products with its matrices");
      products += feed_forward;
    }
    if (config.norm != NormKind::kNone) {
      add(prefix + "norms", parameters_under(table, prefix + "ln"), 0, "not counted: a percent or less");
    }
  }
  if (architecture->final_norm.kind != NormKind::kNone) {
    add("ln_final", parameters_under(table, "ln_final."), 0, "not counted: a percent or less");
  }
  if (config.prediction_head) {
    const double head = product_flops(table, "prediction.", rows);
    add("prediction", parameters_under(table, "prediction."), head, "product with its matrix");
    products += head;
  }
  const double unembedding =
      !config.unembedding ? 0 : 2.0 * rows * static_cast<double>(config.width) * static_cast<double>(config.vocabulary);
  if (config.unembedding) {
    add("unembed", parameters_under(table, "unembed."), unembedding,
        config.tied ? "product with W_E transposed" : "product with W_U");
  }
  products += unembedding;
  cost.parameters = table.count();
  cost.backward_flops = 2.0 * products + 2.5 * cost.attention_flops;
  return cost;
}

}  // namespace headlight
