#pragma once
// Continuing a text: a token at a time, drawn from what the model predicts.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/model/model.h"

namespace headlight {

struct SampleOptions {
  double temperature = 1;  // logits are divided by it; 0: always the most likely token
  int64_t top_k = 0;       // only the k most likely tokens; 0: all
  double top_p = 1;  // of these only the most likely ones that together reach this probability (Holtzman et al. 2020)
};

// A token drawn from softmax(logits / temperature) over the top k, of these over the top p, with one number of
// `random`. Of equal logits the lower id counts as more likely. Throws LogicError when there is no logit, one is NaN
// or an option is out of range.
int32_t sample(View<const float, 1> logits, const SampleOptions& options, RandomStream& random);

struct GenerateOptions {
  int64_t tokens = 100;  // how many to add
  SampleOptions sample{};
  uint64_t seed = 0;
  std::optional<int32_t> end{};  // the text ends before this token
  // Called with each token as it is drawn; false ends the text.
  std::function<bool(int32_t token)> on_token{};
};

// The tokens that follow `prompt`: it runs once, then each token alone on a cache of the keys and values before it,
// with the bits of the whole text run anew. Beyond the model's context the oldest are left out of what it sees, and
// positions are counted from the first that it does. The same tokens for the same seed, for any number of threads.
// Throws Error: usage when the prompt is empty or the model is not causal; bad data when a token is not in the
// vocabulary.
std::vector<int32_t> generate(const Model& model, const std::vector<int32_t>& prompt, const GenerateOptions& options);

}  // namespace headlight
