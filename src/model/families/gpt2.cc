// GPT-2: learned positions, LayerNorm before, biases everywhere, weights as Conv1D holds them, (in, out).

#include "model/families/family.h"

namespace headlight {
namespace {

ModelConfig arrangement() {
  ModelConfig config;
  config.positions = Positions::kLearned;
  config.norm = NormKind::kLayerNorm;
  config.feed_forward = FeedForward::kGeluTanh;
  return config;
}

ModelConfig from_hugging_face(HuggingFaceConfig& json) {
  ModelConfig config = arrangement();
  config.vocabulary = json.size("vocab_size");
  config.context = json.size_or("n_positions", json.size_or("n_ctx", 1024));
  json.has("n_ctx");  // an old name of n_positions
  config.width = json.size("n_embd");
  config.blocks = json.blocks("n_layer");
  config.heads = json.size("n_head");
  config.feed_forward_width = json.size_or("n_inner", 4 * config.width);
  config.norm_epsilon = json.number_or("layer_norm_epsilon", 1e-5, 1e-30, 0.5);
  config.feed_forward = json.activation("activation_function", "gelu_new");
  config.tied = json.boolean_or("tie_word_embeddings", true);
  config.unembedding = config.tied || json.predicts();
  json.demand("scale_attn_weights", true);
  json.demand("scale_attn_by_inverse_layer_idx", false);
  json.has("reorder_and_upcast_attn");  // the same mathematics in another order
  return config;
}

ModelConfig from_gguf(GgufKeys& keys) {
  ModelConfig config = arrangement();
  keys.sizes(config);
  config.norm_epsilon = keys.number("attention.layer_norm_epsilon", 1e-30, 0.5);
  return config;
}

constexpr PartNames kNorms[] = {{"ln1", "ln_1", "attn_norm"}, {"ln2", "ln_2", "ffn_norm"}};
constexpr PartNames kMaps[] = {{"attn.?_O", "attn.c_proj", "attn_output"},
                               {"mlp.?_in", "mlp.c_fc", "ffn_up"},
                               {"mlp.?_out", "mlp.c_proj", "ffn_down"}};

std::vector<TensorPart> parts(const ModelConfig& config, Naming naming) {
  PartList list(naming, "transformer.h.{}.");
  // GGUF holds the maps as (out, in), as all others there
  const bool transposed = naming == Naming::kGguf;
  list.whole({"embed.W_E", "transformer.wte.weight", "token_embd.weight"});
  list.whole({"pos_embed.W_pos", "transformer.wpe.weight", "position_embd.weight"});
  list.whole({"ln_final.w", "transformer.ln_f.weight", "output_norm.weight"});
  list.whole({"ln_final.b", "transformer.ln_f.bias", "output_norm.bias"});
  if (config.unembedding && !config.tied) list.whole({"unembed.W_U", "lm_head.weight", "output.weight"}, true);
  const int64_t width = config.heads * config.head_width;
  for (int64_t block = 0; block < config.blocks; ++block) {
    for (const PartNames& names : kNorms) list.norm(block, names, true);
    // queries, keys and values of all heads side by side in one
    int64_t offset = 0;
    for (const char* parameter : {"attn.?_Q", "attn.?_K", "attn.?_V"}) {
      list.map(block, {parameter, "attn.c_attn", "attn_qkv"}, true, transposed, {.group = width, .offset = offset});
      offset += width;
    }
    for (const PartNames& names : kMaps) list.map(block, names, true, transposed);
  }
  return list.take();
}

std::string to_hugging_face(const ModelConfig& c, nlohmann::ordered_json& json) {
  const Biases& b = c.biases;
  const std::string misfit =
      first_of({layer_norm_misfit(c), decoder_misfit(c),
                first_misfit({
                    {c.positions == Positions::kLearned, "positions " + to_string(c.positions)},
                    {!c.parallel, "parallel"},
                    {c.key_value_heads == c.heads, "grouped heads"},
                    {c.heads * c.head_width == c.width && c.value_width == c.head_width,
                     "heads that are not width / heads wide"},
                    {!c.query_key_norm && c.window == 0, "norms of queries and keys, and windows"},
                    {b.query_key_value && b.attention_output && b.feed_forward && b.norms && !b.unembedding,
                     "maps without biases"},
                })});
  if (!misfit.empty()) return misfit;
  json["model_type"] = "gpt2";
  json["architectures"] = {c.unembedding ? "GPT2LMHeadModel" : "GPT2Model"};
  json["vocab_size"] = c.vocabulary;
  json["n_positions"] = c.context;
  json["n_embd"] = c.width;
  json["n_layer"] = c.blocks;
  json["n_head"] = c.heads;
  json["n_inner"] = c.feed_forward_width;
  json["layer_norm_epsilon"] = c.norm_epsilon;
  json["activation_function"] = activation_name(c.feed_forward);
  json["tie_word_embeddings"] = c.tied;
  return "";
}

}  // namespace

Family gpt2_family() {
  return {.name = "gpt2",
          .model_types = {"gpt2"},
          .architectures = {"gpt2"},
          .prefix = "transformer.",
          .skipped = {"*.attn.bias", "*.attn.masked_bias", "score.weight"},
          .from_hugging_face = from_hugging_face,
          .from_gguf = from_gguf,
          .parts = parts,
          .to_hugging_face = to_hugging_face};
}

}  // namespace headlight
