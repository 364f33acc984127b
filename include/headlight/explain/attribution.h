#pragma once
// Which component raised a logit: direct logit attribution, and the tokens that each head writes.

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/explain/head.h"
#include "headlight/model/model.h"
#include "headlight/model/run.h"

namespace headlight {

// A logit: of a token, at a position counted from the sequence's first token.
struct LogitPlace {
  int64_t entry = 0;
  int64_t position = 0;
  int32_t token = 0;
};

// logit = sum of the components' shares. A component c of the stream x has the share of token v
//   LayerNorm: ((c - mean(c)) / scale * w) . W_U[:, v]     RMSNorm: (c / scale * w) . W_U[:, v]     none: c . W_U[:, v]
// with the final norm's scale frozen at the value it has on x; the last component, "bias", is the norm's bias times
// W_U.
struct Attribution {
  std::vector<std::string> components{};  // "embed", "positions", "blocks.0.attn", "blocks.0.mlp", ..., "bias"
  std::vector<LogitPlace> places{};
  std::vector<double> shares{};      // (places, components)
  std::vector<double> logits{};      // (places) as the run has them
  std::vector<double> magnitudes{};  // (places) the sum of the absolute values of all terms, for judging rounding
};

struct AttributionOptions {
  bool heads = false;  // "blocks.0.attn" in parts: "blocks.0.head.0", ..., "blocks.0.attn.b_O"
};

// What a run must capture for direct_attribution.
std::vector<std::string> captures_for_attribution(const Model& model, const AttributionOptions& options = {});

// Whether the components reach the logits by one linear map: not so in a post-norm model, whose stream is normalised
// after every write.
bool has_direct_logits(const ModelConfig& config);

// Throws LogicError when the run did not capture what it needs, a place is outside, or has_direct_logits() is false.
Attribution direct_attribution(const Model& model, const Batch& batch, const Run& run,
                               const std::vector<LogitPlace>& places, const AttributionOptions& options = {});

struct TokenWeight {
  int32_t token = 0;
  float value = 0;
};

// How writes are defined, for the command line and the report.
std::string writes_definition(const ModelConfig& config);

// For each head, block by block, the `top` tokens whose logits its write raises most, on average over the positions of
// the batch: z W_O through the final norm, scale frozen, times W_U, less the mean over the vocabulary (which no
// probability depends on). Empty lists when has_direct_logits() is false.
std::vector<std::vector<TokenWeight>> top_writes(const Model& model, const Batch& batch, int64_t top = 5);

}  // namespace headlight
