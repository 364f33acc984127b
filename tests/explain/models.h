#pragma once
// Models for the tests of explaining: random ones in which every parameter matters, and one whose heads were set by
// hand to do exactly what they are named for.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/explain/repeats.h"
#include "headlight/model/model.h"
#include "headlight/model/run.h"

namespace headlight {

// Weights as at the start of training, but norms, biases and all else moved away from 1 and 0.
inline Model random_model(const ModelConfig& config, uint64_t seed = 3) {
  Model model(config);
  initialise(model, seed);
  RandomStream random(seed, 2, 0);
  for (const Parameter& p : model.parameters().all()) {
    for (int64_t i = 0; i < p.count; ++i) model.weights()(p.offset + i) += static_cast<float>(0.1 * random.normal());
  }
  return model;
}

// Writes `value` on the diagonal of a block of a matrix: rows from `row`, columns from `column`.
inline void set_diagonal(Model& model, const std::string& name, int64_t row, int64_t column, int64_t count,
                         float value) {
  const View<float, 2> w = model.matrix(name);
  for (int64_t i = 0; i < count; ++i) w(row + i, column + i) = value;
}

// Two blocks of two heads, attention only, without norms, made by hand.
//   0.0 attends to the token before, and writes which it was
//   0.1 attends to all tokens alike, and writes nothing
//   1.0 and 1.1 are induction heads: they look for a token whose predecessor is the current one, and write it to the
//   logits, each with a strength that is enough
// The stream: token | position | token before | prediction.
struct CircuitModel {
  static constexpr int64_t kVocabulary = 16;
  static constexpr int64_t kContext = 40;
  static constexpr int32_t kStart = 15;
  static constexpr float kSharp = 60;     // a score that leaves the others exp(-60)
  static constexpr float kStrength = 10;  // of a predicted token's logit

  static ModelConfig config() {
    return {.vocabulary = kVocabulary,
            .context = kContext,
            .width = 3 * kVocabulary + kContext,
            .blocks = 2,
            .heads = 2,
            .head_width = kContext,
            .value_width = kVocabulary,
            .feed_forward = FeedForward::kNone,
            .norm = NormKind::kNone,
            .positions = Positions::kLearned,
            .biases = kNoBiases};
  }

  static Model make() {
    constexpr int64_t kPosition = kVocabulary;
    constexpr int64_t kBefore = kVocabulary + kContext;
    constexpr int64_t kPrediction = kBefore + kVocabulary;
    Model model(config());
    set_diagonal(model, "embed.W_E", 0, 0, kVocabulary, 1);
    set_diagonal(model, "pos_embed.W_pos", 0, kPosition, kContext, 1);
    set_diagonal(model, "unembed.W_U", kPrediction, 0, kVocabulary, 1);
    const float sharp = kSharp * std::sqrt(static_cast<float>(kContext));
    // 0.0: the query of position i is the key of position i - 1
    set_diagonal(model, "blocks.0.attn.W_Q", kPosition + 1, 0, kContext - 1, sharp);
    set_diagonal(model, "blocks.0.attn.W_K", kPosition, 0, kContext, 1);
    set_diagonal(model, "blocks.0.attn.W_V", 0, 0, kVocabulary, 1);
    set_diagonal(model, "blocks.0.attn.W_O", 0, kBefore, kVocabulary, 1);
    for (int64_t head = 0; head < 2; ++head) {
      const int64_t k = head * kContext;
      const int64_t m = head * kVocabulary;
      set_diagonal(model, "blocks.1.attn.W_Q", 0, k, kVocabulary, sharp);
      set_diagonal(model, "blocks.1.attn.W_K", kBefore, k, kVocabulary, 1);
      set_diagonal(model, "blocks.1.attn.W_V", 0, m, kVocabulary, 1);
      set_diagonal(model, "blocks.1.attn.W_O", m, kPrediction, kVocabulary, kStrength);
    }
    return model;
  }

  static RepeatedBatch repeated(int64_t sequences = 6) {
    return repeat_random_tokens(config(), {.lengths = {15}, .start = kStart, .sequences = sequences, .seed = 5});
  }
};

// All queries 0: every visible key has the same weight.
inline Model uniform_model(ModelConfig config) {
  Model model = random_model(config);
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block) + ".attn.";
    const View<float, 2> w = model.matrix(name + "W_Q");
    std::fill(w.data, w.data + w.count(), 0.0f);
    if (!model.parameters().contains(name + "b_Q")) continue;
    const View<float, 1> b = model.vector(name + "b_Q");
    std::fill(b.data, b.data + b.count(), 0.0f);
  }
  return model;
}

}  // namespace headlight
