// Llama, Mistral, SmolLM, Qwen2, Qwen3: RMSNorm before, SiLU-gated feed-forward, rotary positions, grouped heads.

#include <fmt/format.h>

#include "model/families/family.h"

namespace headlight {
namespace {

ModelConfig arrangement() {
  ModelConfig config;
  config.feed_forward = FeedForward::kSiluGated;
  config.norm = NormKind::kRmsNorm;
  config.positions = Positions::kRotary;
  config.biases = kNoBiases;
  return config;
}

ModelConfig from_hugging_face(HuggingFaceConfig& json) {
  ModelConfig config = arrangement();
  const std::string type = json.text_or("model_type", "");
  const bool is_qwen = type == "qwen2" || type == "qwen3";
  json.sizes(config, type == "llama" ? 2048 : 32768);
  config.key_value_heads = json.size_or("num_key_value_heads", config.heads);
  config.head_width = json.size_or("head_dim", type == "qwen3" ? 128 : 0);
  config.norm_epsilon = json.number_or("rms_norm_eps", 1e-6, 1e-30, 0.5);
  if (const std::string act = json.text_or("hidden_act", "silu"); act != "silu" && act != "swish") {
    json.fail("hidden_act", in_quotes(act), "expected silu");
  }
  config.tied = json.boolean_or("tie_word_embeddings", false);
  config.unembedding = config.tied || json.predicts();
  config.query_key_norm = type == "qwen3";
  const bool biased = json.boolean_or("attention_bias", false);
  config.biases.query_key_value = biased || type == "qwen2";
  config.biases.attention_output = biased && type != "qwen2";
  config.biases.feed_forward = json.boolean_or("mlp_bias", false);
  json.rotary(config);
  const bool windowed = json.boolean_or("use_sliding_window", !is_qwen);
  const int64_t first = json.has("max_window_layers") ? json.size_or("max_window_layers", 0) : is_qwen ? 28 : 0;
  json.windows(config, windowed ? json.size_or("sliding_window", 0) : (json.has("sliding_window"), 0), first);
  return config;
}

ModelConfig from_gguf(GgufKeys& keys) {
  ModelConfig config = arrangement();
  keys.sizes(config);
  config.norm_epsilon = keys.number("attention.layer_norm_rms_epsilon", 1e-30, 0.5);
  keys.rotary(config);
  config.query_key_norm = keys.has_tensor("blk.0.attn_q_norm.weight");
  config.biases.query_key_value = keys.has_tensor("blk.0.attn_q.bias");
  config.biases.attention_output = keys.has_tensor("blk.0.attn_output.bias");
  config.biases.feed_forward = keys.has_tensor("blk.0.ffn_down.bias");
  // its queries and keys are stored for turning neighbouring coordinates
  if (keys.architecture() == "llama") config.rotary_pairs = RotaryPairs::kAdjacent;
  return config;
}

constexpr PartNames kNorms[] = {{"ln1", "input_layernorm", "attn_norm", "attention_norm"},
                                {"ln2", "post_attention_layernorm", "ffn_norm", "ffn_norm"}};
constexpr PartNames kHeadNorms[] = {{"attn.norm_q", "self_attn.q_norm", "attn_q_norm"},
                                    {"attn.norm_k", "self_attn.k_norm", "attn_k_norm"}};
constexpr PartNames kTurned[] = {{"attn.?_Q", "self_attn.q_proj", "attn_q", "wq"},
                                 {"attn.?_K", "self_attn.k_proj", "attn_k", "wk"}};
constexpr PartNames kValue = {"attn.?_V", "self_attn.v_proj", "attn_v", "wv"};
constexpr PartNames kOutput = {"attn.?_O", "self_attn.o_proj", "attn_output", "wo"};
constexpr PartNames kFeedForward[] = {{"mlp.?_gate", "mlp.gate_proj", "ffn_gate", "w1"},
                                      {"mlp.?_in", "mlp.up_proj", "ffn_up", "w3"},
                                      {"mlp.?_out", "mlp.down_proj", "ffn_down", "w2"}};

std::vector<TensorPart> parts(const ModelConfig& config, Naming naming) {
  PartList list(naming, "model.layers.{}.");
  list.whole({"embed.W_E", "model.embed_tokens.weight", "token_embd.weight", "tok_embeddings"});
  list.whole({"ln_final.w", "model.norm.weight", "output_norm.weight", "norm"});
  if (config.unembedding && !config.tied)
    list.whole({"unembed.W_U", "lm_head.weight", "output.weight", "output"}, true);
  // of W_Q and W_K where the file turns neighbouring coordinates
  OutputOrder order;
  if (config.rotary_pairs == RotaryPairs::kAdjacent) {
    order = {.group = config.head_width, .stride = config.head_width, .paired_width = config.rotary_width};
  }
  const Biases& biases = config.biases;
  for (int64_t block = 0; block < config.blocks; ++block) {
    for (const PartNames& names : kNorms) list.norm(block, names, false);
    for (const PartNames& names : kTurned) list.map(block, names, biases.query_key_value, true, order);
    list.map(block, kValue, biases.query_key_value, true);
    list.map(block, kOutput, biases.attention_output, true);
    for (const PartNames& names : kFeedForward) list.map(block, names, biases.feed_forward, true);
    if (!config.query_key_norm) continue;
    for (const PartNames& names : kHeadNorms) list.norm(block, names, false);
  }
  return list.take();
}

std::string to_hugging_face(const ModelConfig& c, nlohmann::ordered_json& json) {
  const Biases& b = c.biases;
  const bool has_windows = c.window > 0, some_windows = !c.windowed_blocks.empty();
  // which of them has these
  const std::string type = c.query_key_norm                           ? "qwen3"
                           : b.query_key_value && !b.attention_output ? "qwen2"
                           : has_windows                              ? "mistral"
                                                                      : "llama";
  const bool is_qwen = type[0] == 'q';
  const std::string misfit =
      first_of({rotary_misfit(c), decoder_misfit(c),
                first_misfit({
                    {c.norm == NormKind::kRmsNorm, "norm " + to_string(c.norm)},
                    {c.norm_placement == NormPlacement::kPre, "norm_placement post"},
                    {c.feed_forward == FeedForward::kSiluGated, "feed_forward " + to_string(c.feed_forward)},
                    {c.rotary_width == c.head_width, fmt::format("rotary_width {}", c.rotary_width)},
                    {!c.parallel, "parallel"},
                    {c.value_width == c.head_width, fmt::format("value_width {}", c.value_width)},
                    {!b.unembedding, "a bias of the unembedding"},
                    {b.attention_output ? b.query_key_value && type != "mistral" : !b.query_key_value || is_qwen,
                     "biases of these maps"},
                    {!b.feed_forward || type == "llama", "biases of feed-forward layers in " + type},
                    {!some_windows || is_qwen, "windows in some blocks"},
                })});
  if (!misfit.empty()) return misfit;
  json["model_type"] = type;
  const std::string name = type == "qwen2"     ? "Qwen2"
                           : type == "qwen3"   ? "Qwen3"
                           : type == "mistral" ? "Mistral"
                                               : "Llama";
  json["architectures"] = {name + (c.unembedding ? "ForCausalLM" : "Model")};
  write_sizes(c, json);
  json["num_key_value_heads"] = c.key_value_heads;
  json["head_dim"] = c.head_width;
  json["rms_norm_eps"] = c.norm_epsilon;
  json["tie_word_embeddings"] = c.tied;
  if (type == "llama" || type == "qwen3") json["attention_bias"] = b.attention_output;
  if (type == "llama") json["mlp_bias"] = b.feed_forward;
  write_rotary(c, json);
  if (type == "mistral" || is_qwen) json["sliding_window"] = c.window > 0 ? nlohmann::ordered_json(c.window) : nullptr;
  if (is_qwen) {
    json["use_sliding_window"] = has_windows;
    write_layer_types(c, json);
  }
  return "";
}

}  // namespace

Family llama_family() {
  return {.name = "llama",
          .model_types = {"llama", "mistral", "qwen2", "qwen3"},
          .architectures = {"llama", "qwen2", "qwen3"},
          .prefix = "model.",
          .skipped = {"*.rotary_emb.inv_freq", "rope_freqs.weight", "score.weight"},
          .from_hugging_face = from_hugging_face,
          .from_gguf = from_gguf,
          .parts = parts,
          .to_hugging_face = to_hugging_face};
}

}  // namespace headlight
