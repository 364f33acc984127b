#pragma once
// config.json as the Hugging Face library writes it, old spellings and new.

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "headlight/model/config.h"

namespace headlight {

class HuggingFaceConfig {
 public:
  // Borrows `json`. Throws Error (bad data) when it is not an object.
  HuggingFaceConfig(const nlohmann::json& json, const std::string& where) : read_(json, where) {}

  // A key's value; `otherwise` when it is absent or null.
  int64_t size(const char* key);
  int64_t blocks(const char* key);  // what is listed block by block must not grow with a number that is none
  int64_t size_or(const char* key, int64_t otherwise);
  double number_or(const char* key, double otherwise, double min, double max);
  bool boolean_or(const char* key, bool otherwise);
  std::string text_or(const char* key, const std::string& otherwise);
  std::vector<std::string> texts(const char* key);  // empty when absent
  bool has(const char* key) { return read_.has(key); }

  // The sizes under the names that most families have: vocab_size, max_position_embeddings (or `context`), hidden_size,
  // num_hidden_layers, num_attention_heads, intermediate_size.
  void sizes(ModelConfig& config, int64_t context);

  // Refuses another value than `only`, which is also what an absent key means.
  void demand(const char* key, bool only);

  // `key` as one of the activations without a gate: relu, gelu, gelu_new, ...
  FeedForward activation(const char* key, const std::string& otherwise);
  // Base, width and scaling of rotary positions from rope_theta and rope_scaling or from rope_parameters.
  // `part` is the part of a head that is turned unless a key says otherwise; absent: a family that always turns all of
  // it, where such a key is refused.
  void rotary(ModelConfig& config, std::optional<double> part = std::nullopt);
  // Windows of the blocks from layer_types, or from what the older keys say of block i.
  void windows(ModelConfig& config, int64_t window, int64_t first_block);
  // Whether the checkpoint holds the unembedding: what `architectures` says, and true when it says nothing.
  bool predicts();

  // Refuses every key that nothing asked for and that is not known to say nothing about the mathematics.
  void finish();
  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const {
    read_.fail(key, found, expected);
  }

 private:
  void scaling(JsonReader& read, ModelConfig& config);

  JsonReader read_;
};

// What families write alike: the sizes as HuggingFaceConfig::sizes() reads them with hidden_act, rope_parameters,
// layer_types, and the name of an activation.
void write_sizes(const ModelConfig& config, nlohmann::ordered_json& json);
void write_rotary(const ModelConfig& config, nlohmann::ordered_json& json);
void write_layer_types(const ModelConfig& config, nlohmann::ordered_json& json);
std::string activation_name(FeedForward kind);

// What the first demand that does not hold is about; "" when all hold.
std::string first_misfit(std::initializer_list<std::pair<bool, std::string>> demands);
// What several families demand alike: LayerNorm before and a feed-forward layer without a gate; rotary positions that
// rope_parameters can say; a decoder without BERT's ends.
std::string layer_norm_misfit(const ModelConfig& config);
std::string rotary_misfit(const ModelConfig& config);
std::string decoder_misfit(const ModelConfig& config);
// The first of these that is not "".
std::string first_of(std::initializer_list<std::string> misfits);

}  // namespace headlight
