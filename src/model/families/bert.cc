// BERT: a bidirectional encoder, post-norm, with learned positions, token types and a norm of the embeddings; with the
// head that predicts masked tokens, or without.

#include "model/families/family.h"

namespace headlight {
namespace {

ModelConfig from_hugging_face(HuggingFaceConfig& json) {
  ModelConfig config;
  config.norm = NormKind::kLayerNorm;
  config.norm_placement = NormPlacement::kPost;
  config.positions = Positions::kLearned;
  config.causal = false;
  config.embedding_norm = true;
  json.sizes(config, 512);
  config.norm_epsilon = json.number_or("layer_norm_eps", 1e-12, 1e-30, 0.5);
  config.feed_forward = json.activation("hidden_act", "gelu");
  config.token_types = json.size_or("type_vocab_size", 2);
  config.unembedding = json.predicts();
  config.tied = json.boolean_or("tie_word_embeddings", true) && config.unembedding;
  config.prediction_head = config.biases.unembedding = config.unembedding;
  json.demand("is_decoder", false);
  if (const std::string kind = json.text_or("position_embedding_type", "absolute"); kind != "absolute") {
    json.fail("position_embedding_type", in_quotes(kind), "expected absolute");
  }
  for (const char* key : {"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                          "pooler_size_per_head", "pooler_type", "directionality"}) {
    json.has(key);  // of the pooler, which is no part of the stream
  }
  return config;
}

constexpr PartNames kMaps[] = {{"attn.?_Q", "attention.self.query"}, {"attn.?_K", "attention.self.key"},
                               {"attn.?_V", "attention.self.value"}, {"attn.?_O", "attention.output.dense"},
                               {"mlp.?_in", "intermediate.dense"},   {"mlp.?_out", "output.dense"}};
constexpr PartNames kNorms[] = {{"ln1", "attention.output.LayerNorm"}, {"ln2", "output.LayerNorm"}};

std::vector<TensorPart> parts(const ModelConfig& config, Naming naming) {
  PartList list(naming, "bert.encoder.layer.{}.");
  list.whole({"embed.W_E", "bert.embeddings.word_embeddings.weight"});
  list.whole({"pos_embed.W_pos", "bert.embeddings.position_embeddings.weight"});
  list.whole({"type_embed.W_type", "bert.embeddings.token_type_embeddings.weight"});
  list.whole({"embed.ln.w", "bert.embeddings.LayerNorm.weight"});
  list.whole({"embed.ln.b", "bert.embeddings.LayerNorm.bias"});
  for (int64_t block = 0; block < config.blocks; ++block) {
    for (const PartNames& names : kMaps) list.map(block, names, true, true);
    for (const PartNames& names : kNorms) list.norm(block, names, true);
  }
  if (!config.unembedding) return list.take();
  list.whole({"prediction.W", "cls.predictions.transform.dense.weight"}, true);
  list.whole({"prediction.b", "cls.predictions.transform.dense.bias"});
  list.whole({"prediction.ln.w", "cls.predictions.transform.LayerNorm.weight"});
  list.whole({"prediction.ln.b", "cls.predictions.transform.LayerNorm.bias"});
  list.whole({"unembed.b_U", "cls.predictions.bias"});
  if (!config.tied) list.whole({"unembed.W_U", "cls.predictions.decoder.weight"}, true);
  return list.take();
}

std::string to_hugging_face(const ModelConfig& c, nlohmann::ordered_json& json) {
  const Biases& b = c.biases;
  const std::string misfit = first_misfit({
      {c.norm == NormKind::kLayerNorm, "norm " + to_string(c.norm)},
      {c.norm_placement == NormPlacement::kPost, "norm_placement pre"},
      {c.feed_forward != FeedForward::kNone && c.feed_forward != FeedForward::kSiluGated,
       "feed_forward " + to_string(c.feed_forward)},
      {c.positions == Positions::kLearned, "positions " + to_string(c.positions)},
      {!c.causal, "a causal model"},
      {c.key_value_heads == c.heads, "grouped heads"},
      {c.heads * c.head_width == c.width && c.value_width == c.head_width, "heads that are not width / heads wide"},
      {c.token_types > 0 && c.embedding_norm, "embeddings without token types and a norm"},
      {c.prediction_head == c.unembedding && b.unembedding == c.unembedding, "an unembedding without BERT's head"},
      {!c.query_key_norm, "norms of queries and keys"},
      {b.query_key_value && b.attention_output && b.feed_forward && b.norms, "maps without biases"},
  });
  if (!misfit.empty()) return misfit;
  json["model_type"] = "bert";
  json["architectures"] = {c.unembedding ? "BertForMaskedLM" : "BertModel"};
  write_sizes(c, json);
  json["layer_norm_eps"] = c.norm_epsilon;
  json["type_vocab_size"] = c.token_types;
  json["tie_word_embeddings"] = c.tied || !c.unembedding;
  return "";
}

}  // namespace

Family bert_family() {
  return {.name = "bert",
          .model_types = {"bert"},
          .architectures = {},
          .prefix = "bert.",
          .skipped = {"bert.embeddings.position_ids", "bert.pooler.*", "cls.seq_relationship.*", "classifier.*",
                      "cls.predictions.decoder.*", "cls.*", "qa_outputs.*"},
          .from_hugging_face = from_hugging_face,
          .from_gguf = nullptr,
          .parts = parts,
          .to_hugging_face = to_hugging_face};
}

}  // namespace headlight
