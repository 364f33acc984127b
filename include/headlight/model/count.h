#pragma once
// Parameters, operations and memory of a model, part by part, by counting. A multiply and an add are two operations.

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/model/config.h"

namespace headlight {

struct PartCost {
  std::string part;        // "blocks.0.attn"
  int64_t parameters = 0;  // elements
  double flops = 0;        // of one forward of one sequence of the stated length
  std::string note;        // what the figure counts
};

struct ModelCost {
  int64_t time = 0;  // T of the sequence counted
  std::vector<PartCost> parts;
  int64_t parameters = 0;
  double forward_flops = 0;    // one sequence of T tokens
  double backward_flops = 0;   // 2 x the products, 2.5 x the attention
  double attention_flops = 0;  // forward, the scores and values: useful work over visible pairs only
  double flops_per_token() const { return time > 0 ? forward_flops / static_cast<double>(time) : 0; }
};

// Matrix products and attention are counted; norms, activations and the softmax are not (a percent or less).
ModelCost count_cost(const ModelConfig& config, int64_t time);

// Visible (query, key) pairs of one head on T positions: T (T + 1) / 2 causal, less what a window of W keys hides (0:
// none), T^2 otherwise.
double visible_pairs(int64_t time, bool causal, int64_t window = 0);

}  // namespace headlight
