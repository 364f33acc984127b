#pragma once
// What a model is made of. Every choice that changes the mathematics is here and in config.json.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

// What adds a bias.
struct Biases {
  bool query_key_value = true;
  bool attention_output = true;
  bool feed_forward = true;
  bool norms = true;  // LayerNorm; RMSNorm has none
  bool unembedding = false;

  bool operator==(const Biases&) const = default;
};
constexpr Biases kNoBiases{false, false, false, false, false};

// How the angles of rotary positions were changed so that a model reads further than it was trained to. Pair c turns
// by position * f_c, f_c = base^(-2c/R) in an unchanged model.
enum class RotaryScalingKind {
  kNone,
  kLinear,  // f_c / factor (position interpolation, Chen et al. 2023)
  kLlama3,  // f_c / factor where the wavelength is beyond original / low, f_c below original / high, between in between
  kYarn,    // Peng et al. 2023: f_c / factor for pairs that turn less than `slow` times over the original context, f_c
            // for those that turn more than `fast` times, a ramp between; cosine and sine times `magnitude`
  kListed,  // f_c / divisors[c]
};
struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::kNone;
  double factor = 1;               // linear, llama3, yarn
  double original_context = 0;     // llama3, yarn
  double low = 1, high = 4;        // llama3
  double fast = 32, slow = 1;      // yarn
  double magnitude = 1;            // of cosine and sine; 1 but for yarn
  bool whole_pairs = true;         // yarn: the ramp begins and ends at whole numbers of pairs
  std::vector<double> divisors{};  // listed: (R/2)

  bool operator==(const RotaryScaling&) const = default;
};

constexpr int64_t kMostBlocks = 10000;  // of a model

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
  RotaryScaling rotary_scaling{};
  bool query_key_norm = false;  // RMSNorm of each head's query and key, before positions (Qwen3)
  bool causal = true;
  int64_t window = 0;                      // W: a query sees the last W keys, its own among them; 0: all
  std::vector<int64_t> windowed_blocks{};  // the blocks that the window is for, rising; empty: all
  int64_t token_types = 0;       // rows of a table of kinds of token added to the embeddings (BERT's segments); 0: none
  bool embedding_norm = false;   // a norm of the embeddings before the first block (BERT)
  bool unembedding = true;       // false: an encoder that predicts no token
  bool tied = false;             // the unembedding is the embedding transposed
  bool prediction_head = false;  // norm(f(x W + b)) before the unembedding, f that of the feed-forward layers (BERT)
  Biases biases{};

  bool operator==(const ModelConfig&) const = default;
};

// `config` with every 0 replaced by its meaning. Throws Error (usage) naming the first field that does not
// fit, what it is and what it should be; `name_of_field` says how the person wrote a field, for example
// "--head-width" for head_width.
ModelConfig resolve(const ModelConfig& config, std::string (*name_of_field)(const std::string& field) = nullptr);

// The same for what a file says: Error (bad data) that names `where` in front.
ModelConfig resolve_in_file(const ModelConfig& config, const std::string& where);

// config.json, readable: one key per field, choices by name. Reading refuses unknown keys, wrong types and
// sizes that do not fit, with Error (bad data) naming `where`, the key, what was found and expected.
std::string to_json(const ModelConfig& config);
ModelConfig model_config_from_json(const std::string& text, const std::string& where);

// W of a block, 0 where it sees all keys.
int64_t window_of(const ModelConfig& config, int64_t block);

// "2 blocks x 4 heads, width 64, rotary, attention only"
std::string summary(const ModelConfig& config);

// The name of each choice, as in config.json and on the command line.
std::string to_string(Positions choice);
std::string to_string(FeedForward choice);
std::string to_string(NormKind choice);
std::string to_string(NormPlacement choice);
std::string to_string(RotaryScalingKind choice);

}  // namespace headlight
