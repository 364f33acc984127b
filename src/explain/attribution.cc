#include "headlight/explain/attribution.h"

#include <algorithm>
#include <cmath>

#include "explain/direct_logits.h"
#include "explain/parts.h"
#include "headlight/kernels/matmul.h"

namespace headlight {
namespace {

std::string block_name(int64_t block) { return "blocks." + std::to_string(block) + "."; }

// Where each component's rows lie: row (b, t) begins at data + (b T + t) stride; a bias is the same in every row.
struct Component {
  std::string name;
  const float* data;
  int64_t stride;
};

void add_heads(const Model& model, const Run& run, int64_t block, std::vector<Component>& components) {
  const View<const float, 4> result = run.site(block_name(block) + "attn.hook_result");
  for (int64_t h = 0; h < model.config().heads; ++h) {
    components.push_back({block_name(block) + "head." + std::to_string(h), &result(0, 0, h, 0), result.stride(1)});
  }
  if (const float* bias = optional_vector(model, block_name(block) + "attn.b_O")) {
    components.push_back({block_name(block) + "attn.b_O", bias, 0});
  }
}

// Everything that is added to the stream, in the order of the forward.
std::vector<Component> components_of(const Model& model, const Run& run, bool heads) {
  const int64_t width = model.config().width;
  std::vector<Component> components;
  const auto add = [&](const std::string& name, const std::string& site) {
    const View<const float, 3> rows = run.site(site);
    components.push_back({name, rows.data, width});
  };
  add("embed", "hook_embed");
  if (model.sites().contains("hook_pos_embed")) add("positions", "hook_pos_embed");
  if (model.sites().contains("hook_type_embed")) add("token types", "hook_type_embed");
  for (int64_t block = 0; block < model.config().blocks; ++block) {
    if (heads) {
      add_heads(model, run, block, components);
    } else {
      add(block_name(block) + "attn", block_name(block) + "hook_attn_out");
    }
    if (model.config().feed_forward != FeedForward::kNone) {
      add(block_name(block) + "mlp", block_name(block) + "hook_mlp_out");
    }
  }
  return components;
}

void check_place(const Model& model, const Batch& batch, const LogitPlace& place) {
  const bool inside = place.entry >= 0 && place.entry < batch.size && place.position >= 0 &&
                      place.position < batch.lengths[place.entry] && place.token >= 0 &&
                      place.token < model.config().vocabulary;
  if (inside) return;
  throw LogicError("direct_attribution", "no logit of token " + std::to_string(place.token) + " at position " +
                                             std::to_string(place.position) + " of sequence " +
                                             std::to_string(place.entry));
}

// Shares of one logit. `direction` is d(logit) / d(normalised component): w_d W_U[d, v] / scale.
class Shares {
 public:
  Shares(const Model& model, const FrozenNorm& norm)
      : model_(model), norm_(norm), unembedding_bias_(optional_vector(model, "unembed.b_U")), direction_(size()) {}

  void point_at(int32_t token, double scale) {
    const View<const float, 2> unembedding = model_.unembedding();
    total_ = total_magnitude_ = 0;
    bias_ = unembedding_bias_ == nullptr ? 0 : static_cast<double>(unembedding_bias_[token]);
    bias_magnitude_ = std::abs(bias_);
    for (std::size_t d = 0; d < size(); ++d) {
      const double u = static_cast<double>(unembedding(static_cast<int64_t>(d), token));
      direction_[d] = u / scale * (norm_.weight == nullptr ? 1.0 : static_cast<double>(norm_.weight[d]));
      total_ += direction_[d];
      total_magnitude_ += std::abs(direction_[d]);
      if (norm_.bias == nullptr) continue;
      bias_ += u * static_cast<double>(norm_.bias[d]);
      bias_magnitude_ += std::abs(u * static_cast<double>(norm_.bias[d]));
    }
  }

  double share(const float* row) const {
    double sum = 0;
    double mean = 0;
    for (std::size_t d = 0; d < size(); ++d) {
      sum += static_cast<double>(row[d]) * direction_[d];
      mean += static_cast<double>(row[d]);
    }
    return norm_.centres ? sum - mean / static_cast<double>(size()) * total_ : sum;
  }

  double magnitude(const float* row) const {
    double sum = 0;
    double mean = 0;
    for (std::size_t d = 0; d < size(); ++d) {
      sum += std::abs(static_cast<double>(row[d]) * direction_[d]);
      mean += std::abs(static_cast<double>(row[d]));
    }
    return norm_.centres ? sum + mean / static_cast<double>(size()) * total_magnitude_ : sum;
  }

  double bias() const { return bias_; }
  double bias_magnitude() const { return bias_magnitude_; }

 private:
  std::size_t size() const { return static_cast<std::size_t>(model_.config().width); }

  const Model& model_;
  const FrozenNorm norm_;
  const float* const unembedding_bias_;  // (V), or absent
  std::vector<double> direction_;        // (D)
  double total_ = 0;                     // sum of direction_
  double total_magnitude_ = 0;
  double bias_ = 0;
  double bias_magnitude_ = 0;
};

// z W_O(head), centred and weighted as the final norm does: what the head adds to the normalised stream
Buffer<float> normalised_writes(const Model& model, const HeadId& head, View<const float, 2> z) {
  const int64_t m = model.config().value_width;
  const int64_t width = model.config().width;
  Buffer<float> writes(z.size(0) * width);
  matmul<float>({.a = z,
                 .b = model.matrix(block_name(head.block) + "attn.W_O").slice(0, head.head * m, (head.head + 1) * m),
                 .c = writes.view<2>({z.size(0), width})});
  const FrozenNorm norm = frozen_norm(model);
  for (int64_t i = 0; i < z.size(0); ++i) {
    float* const row = writes.data() + i * width;
    double mean = 0;
    for (int64_t d = 0; d < width && norm.centres; ++d) mean += static_cast<double>(row[d]);
    mean /= static_cast<double>(width);
    for (int64_t d = 0; d < width; ++d) {
      const double weight = norm.weight == nullptr ? 1.0 : static_cast<double>(norm.weight[d]);
      row[d] = static_cast<float>((static_cast<double>(row[d]) - mean) * weight);
    }
  }
  return writes;
}

std::vector<TokenWeight> largest_of(const float* logits, int64_t count, int64_t top) {
  double mean = 0;
  std::vector<int32_t> tokens;
  for (int32_t v = 0; v < count; ++v) {
    mean += static_cast<double>(logits[v]) / static_cast<double>(count);
    if (std::isfinite(logits[v])) tokens.push_back(v);
  }
  const auto last = tokens.begin() + std::min(top, static_cast<int64_t>(tokens.size()));
  std::partial_sort(tokens.begin(), last, tokens.end(),
                    [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  std::vector<TokenWeight> largest;
  for (auto token = tokens.begin(); token != last && std::isfinite(mean); ++token) {
    largest.push_back({*token, static_cast<float>(static_cast<double>(logits[*token]) - mean)});
  }
  return largest;
}

// Adds z / scale of each valid row to the heads' sums, (L, H, M).
void add_scaled_z(const Model& model, const Batch& part, const Run& run, std::vector<double>& sums) {
  const ModelConfig& config = model.config();
  const std::vector<double> scales = final_scales(model, part, run);
  for (int64_t block = 0; block < config.blocks; ++block) {
    const View<const float, 4> z = run.site(block_name(block) + "attn.hook_z");
    double* const block_sums = sums.data() + block * config.heads * config.value_width;
    for (int64_t b = 0; b < part.size; ++b) {
      for (int64_t i = 0; i < part.lengths[b]; ++i) {
        const int64_t t = part.begins[b] + i;
        const double scale = scales[static_cast<std::size_t>(b * part.time + t)];
        const float* const row = &z(b, t, 0, 0);
        for (int64_t c = 0; c < config.heads * config.value_width; ++c) {
          block_sums[c] += static_cast<double>(row[c]) / scale;
        }
      }
    }
  }
}

}  // namespace

std::vector<double> final_scales(const Model& model, const Batch& batch, const Run& run) {
  const std::size_t rows = static_cast<std::size_t>(batch.size * batch.time);
  if (!model.sites().contains(kFinalScale)) return std::vector<double>(rows, 1);
  const View<const float, 2> scales = run.site(kFinalScale);
  return {scales.data, scales.data + rows};
}

FrozenNorm frozen_norm(const Model& model) {
  return {.centres = model.config().norm == NormKind::kLayerNorm,
          .weight = optional_vector(model, "ln_final.w"),
          .bias = optional_vector(model, "ln_final.b")};
}

std::vector<std::vector<TokenWeight>> raised_tokens(const Model& model, const HeadId& head, View<const float, 2> z,
                                                    int64_t top) {
  constexpr int64_t kRowsAtOnce = 64;
  const int64_t vocabulary = model.config().vocabulary;
  Buffer<float> logits(std::min(kRowsAtOnce, z.size(0)) * vocabulary);
  std::vector<std::vector<TokenWeight>> raised;
  for (int64_t begin = 0; begin < z.size(0); begin += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, z.size(0) - begin);
    const Buffer<float> writes = normalised_writes(model, head, z.slice(0, begin, begin + rows));
    matmul<float>({.a = writes.view<2>({rows, model.config().width}),
                   .b = model.unembedding(),
                   .c = logits.view<2>({rows, vocabulary})});
    for (int64_t i = 0; i < rows; ++i) raised.push_back(largest_of(logits.data() + i * vocabulary, vocabulary, top));
  }
  return raised;
}

std::vector<std::string> captures_for_attribution(const Model& model, const AttributionOptions& options) {
  std::vector<std::string> captures{"hook_embed"};
  for (const char* site : {"hook_pos_embed", "hook_type_embed"}) {
    if (model.sites().contains(site)) captures.emplace_back(site);
  }
  if (model.sites().contains(kFinalScale)) captures.push_back(kFinalScale);
  if (model.config().blocks == 0) return captures;
  captures.push_back(options.heads ? "blocks.*.attn.hook_result" : "blocks.*.hook_attn_out");
  if (model.config().feed_forward != FeedForward::kNone) captures.push_back("blocks.*.hook_mlp_out");
  return captures;
}

bool has_direct_logits(const ModelConfig& config) {
  return config.unembedding && !config.embedding_norm && !config.prediction_head &&
         (config.norm_placement == NormPlacement::kPre || config.norm == NormKind::kNone);
}

Attribution direct_attribution(const Model& model, const Batch& batch, const Run& run,
                               const std::vector<LogitPlace>& places, const AttributionOptions& options) {
  if (!has_direct_logits(model.config())) {
    throw LogicError("direct_attribution", "the logits of this model are no sum of writes through one norm");
  }
  const std::vector<Component> components = components_of(model, run, options.heads);
  const std::vector<double> scales = final_scales(model, batch, run);
  Shares shares(model, frozen_norm(model));
  Attribution attribution;
  for (const Component& component : components) attribution.components.push_back(component.name);
  attribution.components.push_back("bias");
  attribution.places = places;
  for (const LogitPlace& place : places) {
    check_place(model, batch, place);
    const int64_t t = batch.begins[place.entry] + place.position;
    const int64_t at = place.entry * batch.time + t;
    shares.point_at(place.token, scales[static_cast<std::size_t>(at)]);
    double magnitude = shares.bias_magnitude();
    for (const Component& component : components) {
      const float* const row = component.data + at * component.stride;
      attribution.shares.push_back(shares.share(row));
      magnitude += shares.magnitude(row);
    }
    attribution.shares.push_back(shares.bias());
    attribution.logits.push_back(static_cast<double>(run.logits()(place.entry, t, place.token)));
    attribution.magnitudes.push_back(magnitude);
  }
  return attribution;
}

std::string writes_definition(const ModelConfig& config) {
  if (!has_direct_logits(config)) {
    return "not given: something else than a norm lies between a head's write and the logits (norms after every write, "
           "a norm of the embeddings, a prediction head, or no logits at all), so that a head has no direct share";
  }
  return "tokens whose logits the head's write z W_O raises most" +
         std::string(config.norm == NormKind::kNone ? "" : ", through the final norm with its scale frozen") +
         ", less the mean over the vocabulary";
}

std::vector<std::vector<TokenWeight>> top_writes(const Model& model, const Batch& batch, int64_t top) {
  const ModelConfig& config = model.config();
  const std::vector<HeadId> heads = all_heads(config);
  std::vector<std::vector<TokenWeight>> writes(heads.size());
  if (!has_direct_logits(config) || heads.empty()) return writes;
  std::vector<std::string> capture{"blocks.*.attn.hook_z"};
  if (model.sites().contains(kFinalScale)) capture.push_back(kFinalScale);
  const int64_t width = config.value_width;
  const int64_t step = std::min(batch.size, sequences_per_part(batch.time * config.blocks * config.heads * width));
  Run run(model, step, batch.time, {.logits = false, .capture = capture});
  std::vector<double> sums(heads.size() * static_cast<std::size_t>(width));
  int64_t rows = 0;
  for (int64_t begin = 0; begin < batch.size; begin += step) {
    const Batch part = slice_sequences(batch, begin, std::min(batch.size, begin + step));
    forward(model, part, run);
    add_scaled_z(model, part, run, sums);
    for (int64_t b = 0; b < part.size; ++b) rows += part.lengths[b];
  }
  if (rows == 0) return writes;
  Buffer<float> mean(width);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    for (int64_t c = 0; c < width; ++c) {
      const double sum = sums[h * static_cast<std::size_t>(width) + static_cast<std::size_t>(c)];
      mean[c] = static_cast<float>(sum / static_cast<double>(rows));
    }
    writes[h] = raised_tokens(model, heads[h], mean.view<2>({1, width}), top).front();
  }
  return writes;
}

}  // namespace headlight
