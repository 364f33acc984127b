#pragma once
// Random tokens and their repetition, `[start] R R`: what heads are scored on. Nothing but the context can tell what
// comes next, and only in the second copy.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/model/batch.h"
#include "headlight/model/config.h"

namespace headlight {

struct RepeatOptions {
  // N, the length of R. Several: sequences take them in turn. None: the longest for which context and pool have room,
  // at most 50.
  std::vector<int64_t> lengths{};
  std::optional<int32_t> start{};  // put before the first copy
  std::vector<int32_t> pool{};     // tokens that R is drawn from, without replacement; none: all but `start`
  int64_t sequences = 32;
  uint64_t seed = 7;
};

struct RepeatedBatch {
  Batch batch{};                   // targets are the next tokens; padded on the right when lengths differ
  std::vector<int64_t> lengths{};  // (B) N of each sequence
  int64_t start_tokens = 0;        // 1 when each sequence begins with one
  std::string condition{};         // "32 sequences [start] R R of 2 x 41 tokens, seed 7"

  // First row of the second copy, counted from the sequence's first token.
  int64_t second_copy(int64_t b) const { return start_tokens + lengths[static_cast<std::size_t>(b)]; }
};

// N when `lengths` is empty.
int64_t usual_repeat_length(const ModelConfig& config, const RepeatOptions& options);

// The same tokens for the same options. Throws Error (usage) when N is below 2, when the pool holds fewer tokens than
// N, a token that is not in the vocabulary or one twice, or when the sequence exceeds the model's context.
RepeatedBatch repeat_random_tokens(const ModelConfig& config, const RepeatOptions& options = {});

}  // namespace headlight
