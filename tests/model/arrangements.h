#pragma once
// Small models of every arrangement, for tests that hold for all of them.

#include <string>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/model/batch.h"
#include "headlight/model/config.h"

namespace headlight {

struct Arrangement {
  std::string name;
  ModelConfig config;
};

inline std::vector<Arrangement> all_arrangements() {
  const ModelConfig base{.vocabulary = 11,
                         .context = 8,
                         .width = 12,
                         .blocks = 2,
                         .heads = 3,
                         .feed_forward_width = 20,
                         .positions = Positions::kLearned};
  std::vector<Arrangement> list;
  const auto add = [&](const std::string& name, auto change) {
    ModelConfig config = base;
    change(config);
    list.push_back({name, config});
  };
  for (NormKind norm : {NormKind::kLayerNorm, NormKind::kRmsNorm, NormKind::kNone}) {
    for (int place = 0; place < 3; ++place) {  // serial pre-norm, parallel pre-norm, post-norm
      const NormPlacement placement = place == 2 ? NormPlacement::kPost : NormPlacement::kPre;
      if (norm == NormKind::kNone && place == 2) continue;
      const std::string name = to_string(norm) + (place == 0 ? "_serial" : place == 1 ? "_parallel" : "_post");
      add(name, [&](ModelConfig& c) {
        c.norm = norm;
        c.norm_placement = placement;
        c.parallel = place == 1;
      });
    }
  }
  for (Positions positions : {Positions::kNone, Positions::kSinusoidal, Positions::kRotary, Positions::kAlibi}) {
    add(to_string(positions) + "_positions", [&](ModelConfig& c) { c.positions = positions; });
  }
  for (FeedForward kind : {FeedForward::kNone, FeedForward::kRelu, FeedForward::kGeluTanh, FeedForward::kSiluGated}) {
    add(to_string(kind) + "_feed_forward", [&](ModelConfig& c) { c.feed_forward = kind; });
  }
  add("grouped_heads", [](ModelConfig& c) {
    c.heads = 4;
    c.key_value_heads = 2;
    c.head_width = 6;
    c.value_width = 5;
    c.positions = Positions::kRotary;
    c.rotary_width = 4;
    c.rotary_pairs = RotaryPairs::kAdjacent;
  });
  add("tied_without_biases", [](ModelConfig& c) {
    c.tied = true;
    c.biases = kNoBiases;
  });
  add("bidirectional_post", [](ModelConfig& c) {
    c.causal = false;
    c.norm_placement = NormPlacement::kPost;
  });
  add("query_key_norm", [](ModelConfig& c) {
    c.query_key_norm = true;
    c.heads = 4;
    c.key_value_heads = 2;
    c.head_width = 6;
  });
  add("query_key_norm_rotary_scaled", [](ModelConfig& c) {
    c.query_key_norm = true;
    c.positions = Positions::kRotary;
    c.rotary_scaling = {.kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 4, .magnitude = 1.1};
  });
  add("window", [](ModelConfig& c) { c.window = 3; });
  add("window_of_one_block", [](ModelConfig& c) {
    c.window = 2;
    c.windowed_blocks = {1};
    c.biases = {.query_key_value = true, .attention_output = false, .feed_forward = false, .norms = false};
  });
  add("bert", [](ModelConfig& c) {
    c.causal = false;
    c.norm_placement = NormPlacement::kPost;
    c.token_types = 2;
    c.embedding_norm = c.prediction_head = c.tied = c.biases.unembedding = true;
  });
  add("pre_norm_with_both_ends", [](ModelConfig& c) {
    c.token_types = 3;
    c.norm = NormKind::kRmsNorm;
    c.embedding_norm = c.prediction_head = c.biases.unembedding = true;
  });
  add("no_blocks", [](ModelConfig& c) { c.blocks = 0; });
  return list;
}

inline std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary, uint64_t seed) {
  RandomStream random(seed, 1, 0);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary))));
  }
  return tokens;
}

// sequences of 7, 1, 0 and 4 tokens
inline std::vector<std::vector<int32_t>> uneven_sequences(int64_t vocabulary) {
  return {random_tokens(7, vocabulary, 1), random_tokens(1, vocabulary, 2), {}, random_tokens(4, vocabulary, 3)};
}

}  // namespace headlight
