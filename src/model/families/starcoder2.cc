// StarCoder2: LayerNorm before, GELU feed-forward, rotary positions, grouped heads, one window for all blocks.

#include <fmt/format.h>

#include "model/families/family.h"

namespace headlight {
namespace {

ModelConfig from_hugging_face(HuggingFaceConfig& json) {
  ModelConfig config;
  config.norm = NormKind::kLayerNorm;
  json.sizes(config, 4096);
  config.key_value_heads = json.size_or("num_key_value_heads", 2);
  config.head_width = json.size_or("head_dim", 0);
  config.norm_epsilon = json.number_or("norm_epsilon", 1e-5, 1e-30, 0.5);
  config.feed_forward = json.activation("hidden_act", "gelu_pytorch_tanh");
  config.tied = json.boolean_or("tie_word_embeddings", true);
  config.unembedding = config.tied || json.predicts();
  const bool biased = json.boolean_or("use_bias", true);
  config.biases.query_key_value = config.biases.attention_output = config.biases.feed_forward = biased;
  json.rotary(config);
  config.window = json.size_or("sliding_window", 0);
  for (const char* key : {"residual_dropout", "embedding_dropout"}) json.has(key);  // of training
  // checkpoints may carry these of the code that trained them; the library reads none of them
  for (const char* key : {"activation_function", "attention_softmax_in_fp32", "layer_norm_epsilon", "mlp_type",
                          "norm_type", "scale_attention_softmax_in_fp32", "scale_attn_weights"}) {
    json.has(key);
  }
  return config;
}

constexpr PartNames kNorms[] = {{"ln1", "input_layernorm"}, {"ln2", "post_attention_layernorm"}};
constexpr PartNames kMaps[] = {{"attn.?_Q", "self_attn.q_proj"}, {"attn.?_K", "self_attn.k_proj"},
                               {"attn.?_V", "self_attn.v_proj"}, {"attn.?_O", "self_attn.o_proj"},
                               {"mlp.?_in", "mlp.c_fc"},         {"mlp.?_out", "mlp.c_proj"}};

std::vector<TensorPart> parts(const ModelConfig& config, Naming naming) {
  PartList list(naming, "model.layers.{}.");
  list.whole({"embed.W_E", "model.embed_tokens.weight"});
  list.whole({"ln_final.w", "model.norm.weight"});
  list.whole({"ln_final.b", "model.norm.bias"});
  if (config.unembedding && !config.tied) list.whole({"unembed.W_U", "lm_head.weight"}, true);
  const bool biased = config.biases.feed_forward;  // all maps have one, or none has
  for (int64_t block = 0; block < config.blocks; ++block) {
    for (const PartNames& names : kNorms) list.norm(block, names, true);
    for (const PartNames& names : kMaps) list.map(block, names, biased, true);
  }
  return list.take();
}

std::string to_hugging_face(const ModelConfig& c, nlohmann::ordered_json& json) {
  const Biases& b = c.biases;
  const std::string misfit = first_of(
      {layer_norm_misfit(c), rotary_misfit(c), decoder_misfit(c),
       first_misfit({
           {c.rotary_width == c.head_width, fmt::format("rotary_width {}", c.rotary_width)},
           {!c.parallel, "parallel"},
           {c.value_width == c.head_width, fmt::format("value_width {}", c.value_width)},
           {!c.query_key_norm, "norms of queries and keys"},
           {c.windowed_blocks.empty(), "windows in some blocks"},
           {b.query_key_value == b.feed_forward && b.attention_output == b.feed_forward && b.norms && !b.unembedding,
            "these biases"},
       })});
  if (!misfit.empty()) return misfit;
  json["model_type"] = "starcoder2";
  json["architectures"] = {c.unembedding ? "Starcoder2ForCausalLM" : "Starcoder2Model"};
  write_sizes(c, json);
  json["num_key_value_heads"] = c.key_value_heads;
  json["head_dim"] = c.head_width;
  json["norm_epsilon"] = c.norm_epsilon;
  json["use_bias"] = b.feed_forward;
  json["tie_word_embeddings"] = c.tied;
  json["sliding_window"] = c.window > 0 ? nlohmann::ordered_json(c.window) : nullptr;
  write_rotary(c, json);
  return "";
}

}  // namespace

Family starcoder2_family() {
  return {.name = "starcoder2",
          .model_types = {"starcoder2"},
          .architectures = {},
          .prefix = "model.",
          .skipped = {"*.rotary_emb.inv_freq", "score.weight"},
          .from_hugging_face = from_hugging_face,
          .from_gguf = nullptr,
          .parts = parts,
          .to_hugging_face = to_hugging_face};
}

}  // namespace headlight
