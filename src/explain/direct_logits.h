#pragma once
// The linear map from a component of the stream to its share of the logits, with the final norm's scale frozen.

#include <cstdint>
#include <vector>

#include "headlight/explain/attribution.h"
#include "headlight/model/model.h"
#include "headlight/model/run.h"

namespace headlight {

// The final norm as a linear map of components, given its scale: w (c - mean(c)) / scale.
struct FrozenNorm {
  bool centres = false;           // LayerNorm subtracts the mean
  const float* weight = nullptr;  // (D), or absent
  const float* bias = nullptr;    // (D), or absent
};
FrozenNorm frozen_norm(const Model& model);

// What the final norm divides each row by, (B, T), from a run that captured kFinalScale; 1 without a norm.
inline constexpr const char* kFinalScale = "ln_final.hook_scale";
std::vector<double> final_scales(const Model& model, const Batch& batch, const Run& run);

// For each row x of `z` (n, M), already divided by the final norm's scale: the `top` tokens whose logits
// norm(x W_O(head)) W_U raises most, with their values less the mean over the vocabulary. Ties go to the lower token;
// what is not finite is left out.
std::vector<std::vector<TokenWeight>> raised_tokens(const Model& model, const HeadId& head, View<const float, 2> z,
                                                    int64_t top);

}  // namespace headlight
