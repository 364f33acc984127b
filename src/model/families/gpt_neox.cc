// GPT-NeoX and Pythia: rotary positions on a part of each head, attention and feed-forward side by side or not.

#include <fmt/format.h>

#include "model/families/family.h"

namespace headlight {
namespace {

ModelConfig arrangement() {
  ModelConfig config;
  config.positions = Positions::kRotary;
  config.norm = NormKind::kLayerNorm;
  config.feed_forward = FeedForward::kGelu;
  return config;
}

ModelConfig from_hugging_face(HuggingFaceConfig& json) {
  ModelConfig config = arrangement();
  config.vocabulary = json.size("vocab_size");
  config.context = json.size_or("max_position_embeddings", 2048);
  config.width = json.size("hidden_size");
  config.blocks = json.blocks("num_hidden_layers");
  config.heads = json.size("num_attention_heads");
  config.feed_forward_width = json.size("intermediate_size");
  config.norm_epsilon = json.number_or("layer_norm_eps", 1e-5, 1e-30, 0.5);
  config.feed_forward = json.activation("hidden_act", "gelu");
  config.parallel = json.boolean_or("use_parallel_residual", true);
  config.tied = json.boolean_or("tie_word_embeddings", false);
  config.unembedding = config.tied || json.predicts();
  config.biases.query_key_value = config.biases.attention_output = json.boolean_or("attention_bias", true);
  json.rotary(config, 0.25);
  json.has("is_decoder");  // it is one, whatever this says
  return config;
}

ModelConfig from_gguf(GgufKeys& keys) {
  ModelConfig config = arrangement();
  keys.sizes(config);
  config.norm_epsilon = keys.number("attention.layer_norm_epsilon", 1e-30, 0.5);
  config.parallel = keys.boolean_or("use_parallel_residual", true);
  config.biases.query_key_value = keys.has_tensor("blk.0.attn_qkv.bias");
  config.biases.attention_output = keys.has_tensor("blk.0.attn_output.bias");
  keys.rotary(config);
  return config;
}

struct Names {
  const char* parameter;
  const char* hugging_face;
  const char* gguf;
};

constexpr Names kNorms[] = {{"ln1", "input_layernorm", "attn_norm"}, {"ln2", "post_attention_layernorm", "ffn_norm"}};
constexpr Names kMaps[] = {{"attn.?_O", "attention.dense", "attn_output"},
                           {"mlp.?_in", "mlp.dense_h_to_4h", "ffn_up"},
                           {"mlp.?_out", "mlp.dense_4h_to_h", "ffn_down"}};

std::vector<TensorPart> parts(const ModelConfig& config, Naming naming) {
  const bool gguf = naming == Naming::kGguf;
  std::vector<TensorPart> out{{"embed.W_E", gguf ? "token_embd.weight" : "gpt_neox.embed_in.weight"},
                              {"ln_final.w", gguf ? "output_norm.weight" : "gpt_neox.final_layer_norm.weight"},
                              {"ln_final.b", gguf ? "output_norm.bias" : "gpt_neox.final_layer_norm.bias"}};
  if (config.unembedding && !config.tied) {
    out.push_back({"unembed.W_U", gguf ? "output.weight" : "embed_out.weight", true});
  }
  const int64_t k = config.head_width;
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string here = fmt::format("blocks.{}.", block);
    const auto tensor = [&](const char* hugging_face, const char* in_gguf, const char* kind) {
      return gguf ? fmt::format("blk.{}.{}.{}", block, in_gguf, kind)
                  : fmt::format("gpt_neox.layers.{}.{}.{}", block, hugging_face, kind);
    };
    for (const Names& names : kNorms) {
      out.push_back({here + names.parameter + ".w", tensor(names.hugging_face, names.gguf, "weight")});
      out.push_back({here + names.parameter + ".b", tensor(names.hugging_face, names.gguf, "bias")});
    }
    // one tensor: a head's query, key and value follow each other; in GGUF all queries, all keys, all values
    int64_t which = 0;
    for (const char* letter : {"Q", "K", "V"}) {
      const OutputOrder order = gguf ? OutputOrder{.group = config.width, .stride = 0, .offset = which * config.width}
                                     : OutputOrder{.group = k, .stride = 3 * k, .offset = which * k};
      out.push_back(
          {here + "attn.W_" + letter, tensor("attention.query_key_value", "attn_qkv", "weight"), true, order});
      if (config.biases.query_key_value) {
        out.push_back(
            {here + "attn.b_" + letter, tensor("attention.query_key_value", "attn_qkv", "bias"), false, order});
      }
      ++which;
    }
    for (const Names& names : kMaps) {
      const bool biased = names.parameter[0] == 'm' || config.biases.attention_output;
      const auto named = [&](char letter) { return here + with_letter(names.parameter, letter); };
      out.push_back({named('W'), tensor(names.hugging_face, names.gguf, "weight"), true});
      if (biased) out.push_back({named('b'), tensor(names.hugging_face, names.gguf, "bias")});
    }
  }
  return out;
}

std::string to_hugging_face(const ModelConfig& c, nlohmann::ordered_json& json) {
  const Biases& b = c.biases;
  const std::string misfit = first_misfit({
      {c.norm == NormKind::kLayerNorm, "norm " + to_string(c.norm)},
      {c.norm_placement == NormPlacement::kPre, "norm_placement post"},
      {c.feed_forward != FeedForward::kNone && c.feed_forward != FeedForward::kSiluGated,
       "feed_forward " + to_string(c.feed_forward)},
      {c.positions == Positions::kRotary, "positions " + to_string(c.positions)},
      {c.rotary_pairs == RotaryPairs::kHalves, "rotary_pairs adjacent"},
      {c.rotary_scaling.kind != RotaryScalingKind::kListed, "rotary_scaling listed"},
      {c.causal, "a bidirectional model"},
      {c.key_value_heads == c.heads, "grouped heads"},
      {c.heads * c.head_width == c.width && c.value_width == c.head_width, "heads that are not width / heads wide"},
      {c.token_types == 0 && !c.embedding_norm && !c.prediction_head, "the ends of BERT"},
      {!c.query_key_norm && c.window == 0, "norms of queries and keys, and windows"},
      {b.query_key_value == b.attention_output && b.feed_forward && b.norms && !b.unembedding, "these biases"},
  });
  if (!misfit.empty()) return misfit;
  json["model_type"] = "gpt_neox";
  json["architectures"] = {c.unembedding ? "GPTNeoXForCausalLM" : "GPTNeoXModel"};
  json["vocab_size"] = c.vocabulary;
  json["max_position_embeddings"] = c.context;
  json["hidden_size"] = c.width;
  json["num_hidden_layers"] = c.blocks;
  json["num_attention_heads"] = c.heads;
  json["intermediate_size"] = c.feed_forward_width;
  json["hidden_act"] = activation_name(c.feed_forward);
  json["layer_norm_eps"] = c.norm_epsilon;
  json["use_parallel_residual"] = c.parallel;
  json["attention_bias"] = b.query_key_value;
  json["tie_word_embeddings"] = c.tied;
  write_rotary(c, json);
  if (!json["rope_parameters"].contains("partial_rotary_factor"))
    json["rope_parameters"]["partial_rotary_factor"] = 1.0;
  return "";
}

}  // namespace

Family gpt_neox_family() {
  return {.name = "gpt_neox",
          .model_types = {"gpt_neox"},
          .architectures = {"gptneox"},
          .prefix = "gpt_neox.",
          .skipped = {"*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq", "score.weight"},
          .from_hugging_face = from_hugging_face,
          .from_gguf = from_gguf,
          .parts = parts,
          .to_hugging_face = to_hugging_face};
}

}  // namespace headlight
