#include "headlight/model/count.h"

#include <algorithm>
#include <unordered_map>

#include "model/architecture.h"

namespace headlight {
namespace {

// What the parameters of each part add up to, by the beginning of their names: "embed", "blocks.0.attn".
class Parts {
 public:
  explicit Parts(const ParameterTable& table) {
    for (const Parameter& p : table.all()) {
      Sum& sum = sums_[part_of(p.name)];
      sum.parameters += p.count;
      if (p.shape.size() == 2) sum.products += static_cast<double>(p.count);
    }
  }

  int64_t parameters(const std::string& part) const { return sum(part).parameters; }
  // products with matrices: a multiply and an add per weight and row
  double flops(const std::string& part, double rows) const { return 2.0 * rows * sum(part).products; }

 private:
  struct Sum {
    int64_t parameters = 0;
    double products = 0;
  };

  static std::string part_of(const std::string& name) {
    std::size_t end = name.find('.');
    if (name.rfind("blocks.", 0) == 0) end = name.find('.', name.find('.', end + 1) + 1);
    return name.substr(0, end);
  }

  Sum sum(const std::string& part) const {
    const auto at = sums_.find(part);
    return at == sums_.end() ? Sum{} : at->second;
  }

  std::unordered_map<std::string, Sum> sums_;
};

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
  const Parts parts(architecture->parameters);
  const double rows = static_cast<double>(time);
  ModelCost cost;
  cost.time = time;
  double products = 0;
  const auto add = [&](const std::string& part, int64_t parameters, double flops, const std::string& note) {
    cost.parts.push_back({part, parameters, flops, note});
    cost.forward_flops += flops;
  };
  add("embed", parts.parameters("embed") + parts.parameters("pos_embed") + parts.parameters("type_embed"), 0,
      "rows of a table");
  const double per_pair =
      static_cast<double>(config.heads) * 2.0 * static_cast<double>(config.head_width + config.value_width);
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string prefix = "blocks." + std::to_string(block) + ".";
    const double attention = visible_pairs(time, config.causal, window_of(config, block)) * per_pair;
    const double projections = parts.flops(prefix + "attn", rows);
    add(prefix + "attn", parts.parameters(prefix + "attn"), projections + attention,
        "products with W_Q, W_K, W_V, W_O, and scores and values of the visible pairs");
    cost.attention_flops += attention;
    products += projections;
    if (config.feed_forward != FeedForward::kNone) {
      const double feed_forward = parts.flops(prefix + "mlp", rows);
      add(prefix + "mlp", parts.parameters(prefix + "mlp"), feed_forward, "products with its matrices");
      products += feed_forward;
    }
    if (config.norm != NormKind::kNone) {
      add(prefix + "norms", parts.parameters(prefix + "ln1") + parts.parameters(prefix + "ln2"), 0,
          "not counted: a percent or less");
    }
  }
  if (architecture->final_norm.kind != NormKind::kNone) {
    add("ln_final", parts.parameters("ln_final"), 0, "not counted: a percent or less");
  }
  if (config.prediction_head) {
    const double head = parts.flops("prediction", rows);
    add("prediction", parts.parameters("prediction"), head, "product with its matrix");
    products += head;
  }
  const double unembedding =
      !config.unembedding ? 0 : 2.0 * rows * static_cast<double>(config.width) * static_cast<double>(config.vocabulary);
  if (config.unembedding) {
    add("unembed", parts.parameters("unembed"), unembedding,
        config.tied ? "product with W_E transposed" : "product with W_U");
  }
  products += unembedding;
  cost.parameters = architecture->parameters.count();
  cost.backward_flops = 2.0 * products + 2.5 * cost.attention_flops;
  return cost;
}

}  // namespace headlight
