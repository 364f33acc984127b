// GPT-NeoX and Pythia: rotary positions on a part of each head, attention and feed-forward side by side or not.

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
  json.sizes(config, 2048);
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

constexpr PartNames kNorms[] = {{"ln1", "input_layernorm", "attn_norm"},
                                {"ln2", "post_attention_layernorm", "ffn_norm"}};
constexpr PartNames kOutput = {"attn.?_O", "attention.dense", "attn_output"};
constexpr PartNames kFeedForward[] = {{"mlp.?_in", "mlp.dense_h_to_4h", "ffn_up"},
                                      {"mlp.?_out", "mlp.dense_4h_to_h", "ffn_down"}};

std::vector<TensorPart> parts(const ModelConfig& config, Naming naming) {
  PartList list(naming, "gpt_neox.layers.{}.");
  list.whole({"embed.W_E", "gpt_neox.embed_in.weight", "token_embd.weight"});
  list.whole({"ln_final.w", "gpt_neox.final_layer_norm.weight", "output_norm.weight"});
  list.whole({"ln_final.b", "gpt_neox.final_layer_norm.bias", "output_norm.bias"});
  if (config.unembedding && !config.tied) list.whole({"unembed.W_U", "embed_out.weight", "output.weight"}, true);
  const int64_t k = config.head_width;
  for (int64_t block = 0; block < config.blocks; ++block) {
    for (const PartNames& names : kNorms) list.norm(block, names, true);
    // one tensor: a head's query, key and value follow each other; in GGUF all queries, all keys, all values
    int64_t which = 0;
    for (const char* parameter : {"attn.?_Q", "attn.?_K", "attn.?_V"}) {
      const OutputOrder order = naming == Naming::kGguf
                                    ? OutputOrder{.group = config.width, .offset = which * config.width}
                                    : OutputOrder{.group = k, .stride = 3 * k, .offset = which * k};
      list.map(block, {parameter, "attention.query_key_value", "attn_qkv"}, config.biases.query_key_value, true, order);
      ++which;
    }
    list.map(block, kOutput, config.biases.attention_output, true);
    for (const PartNames& names : kFeedForward) list.map(block, names, true, true);
  }
  return list.take();
}

std::string to_hugging_face(const ModelConfig& c, nlohmann::ordered_json& json) {
  const Biases& b = c.biases;
  const std::string misfit = first_of(
      {layer_norm_misfit(c), rotary_misfit(c), decoder_misfit(c),
       first_misfit({
           {c.key_value_heads == c.heads, "grouped heads"},
           {c.heads * c.head_width == c.width && c.value_width == c.head_width,
            "heads that are not width / heads wide"},
           {!c.query_key_norm && c.window == 0, "norms of queries and keys, and windows"},
           {b.query_key_value == b.attention_output && b.feed_forward && b.norms && !b.unembedding, "these biases"},
       })});
  if (!misfit.empty()) return misfit;
  json["model_type"] = "gpt_neox";
  json["architectures"] = {c.unembedding ? "GPTNeoXForCausalLM" : "GPTNeoXModel"};
  write_sizes(c, json);
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
