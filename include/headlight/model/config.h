#pragma once
// What a model is made of. Every choice that changes the mathematics is here and in config.json.

#include <cstdint>
#include <filesystem>
#include <string>

#include "headlight/kernels/norm.h"
#include "headlight/kernels/rotary.h"

namespace headlight {

enum class Positions {
  kNone,        // order is invisible except through the causal mask
  kLearned,     // a table added to the embeddings
  kSinusoidal,  // Vaswani et al. 2017, added to the embeddings
  kRotary,      // Su et al. 2021, queries and keys turned
  kAlibi,       // Press et al. 2022, a penalty on distance in the scores
};

enum class FeedForward {
  kNone,       // attention only
  kRelu,       // f(x W_in + b_in) W_out + b_out
  kGelu,       // with erf
  kGeluTanh,   // with tanh (GPT-2)
  kSiluGated,  // (silu(x W_gate) * (x W_in)) W_out (Llama)
};

enum class NormPlacement {
  kPre,   // x + F(norm(x)), and a final norm before the unembedding
  kPost,  // norm(x + F(x)) (Vaswani et al. 2017, BERT)
};

// Letters as in docs/design.md. Sizes left at 0 take the value that the comment names.
struct ModelConfig {
  int64_t vocabulary = 256;     // V
  int64_t context = 128;        // longest sequence; length of a learned position table
  int64_t width = 64;           // D
  int64_t blocks = 2;           // L
  int64_t heads = 4;            // H
  int64_t key_value_heads = 0;  // Hkv; 0: heads
  int64_t head_width = 0;       // K; 0: width / heads
  int64_t value_width = 0;      // M; 0: head_width
  FeedForward feed_forward = FeedForward::kGelu;
  int64_t feed_forward_width = 0;  // F; 0: 4 width, or 8/3 width rounded up to a multiple of 16 when gated
  NormKind norm = NormKind::kLayerNorm;
  NormPlacement norm_placement = NormPlacement::kPre;
  bool parallel = false;  // attention and feed-forward read the same stream (GPT-NeoX); pre-norm only
  double norm_epsilon = 1e-5;
  Positions positions = Positions::kRotary;
  double rotary_base = 10000;
  int64_t rotary_width = 0;  // R <= K, even; 0: K
  RotaryPairs rotary_pairs = RotaryPairs::kHalves;
  bool tied = false;   // the unembedding is the embedding transposed
  bool biases = true;  // of the linear maps and of LayerNorm
  bool causal = true;

  bool operator==(const ModelConfig&) const = default;
};

// `config` with every 0 replaced by its meaning. Throws Error (usage) naming the first field that does not
// fit, what it is and what it should be; `name_of_field` says how the person wrote a field, for example
// "--head-width" for head_width.
ModelConfig resolve(const ModelConfig& config, std::string (*name_of_field)(const std::string& field) = nullptr);

// config.json, readable: one key per field, choices by name. Reading refuses unknown keys, wrong types and
// sizes that do not fit, with Error (bad data) naming `where`, the key, what was found and expected.
std::string to_json(const ModelConfig& config);
ModelConfig model_config_from_json(const std::string& text, const std::string& where);

// "2 blocks x 4 heads, width 64, rotary, attention only"
std::string summary(const ModelConfig& config);

// The name of each choice, as in config.json and on the command line.
std::string to_string(Positions choice);
std::string to_string(FeedForward choice);
std::string to_string(NormKind choice);
std::string to_string(NormPlacement choice);

}  // namespace headlight
