#pragma once
// Where each head's attention goes, as scores with one definition each. Weights are recomputed by rows and summed as
// they come: no pattern is stored.

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/explain/head.h"
#include "headlight/explain/repeats.h"
#include "headlight/model/model.h"

namespace headlight {

enum class HeadScore { kPrevious, kDuplicate, kInduction, kStart, kCurrent, kEntropy, kDistance };

// What a score is, said once for the command line, the report and the documentation.
struct ScoreDefinition {
  HeadScore score;
  std::string id{};     // "induction"
  std::string label{};  // "induction"
  std::string
      definition{};  // "mean over the second copy of P(i, i-N+1): attention to the token after the earlier copy"
  std::string denominator{};  // "the N rows of the second copy"
};
const std::vector<ScoreDefinition>& score_definitions();
const ScoreDefinition& definition_of(HeadScore score);

// One estimate per head and score: mean and standard deviation over sequences of each sequence's own mean.
struct HeadScores {
  std::string condition{};           // what it ran on
  std::vector<HeadScore> columns{};  // which scores, in the order to show them
  int64_t blocks = 0;                // L
  int64_t heads = 0;                 // H
  int64_t sequences = 0;
  std::vector<Estimate> values{};  // (L, H, columns)
  int64_t rows = 0;                // rows of weights that were summed, over all heads
  int64_t time = 0;                // T of the batch
  double row_sum_error = 0;        // largest |sum of a row's weights - 1|

  bool has(HeadScore score) const;
  // Throws LogicError when the head or the score is not there.
  const Estimate& at(const HeadId& head, HeadScore score) const;
};

// previous, duplicate, induction, start, current.
HeadScores head_scores(const Model& model, const RepeatedBatch& repeated);
HeadScores head_scores(const Model& model, const RepeatOptions& options = {});

// On any text, padded on either side: previous, start, current, entropy, distance. Sequences without a row that a
// score needs are left out of it.
HeadScores text_scores(const Model& model, const Batch& batch, const std::string& condition);

// The same scores of an untrained model of the same shapes: what a head scores by chance.
HeadScores untrained_scores(const ModelConfig& config, const RepeatedBatch& repeated, uint64_t seed = 0);

// Over all heads: mean of the means, and root mean square of the spreads.
Estimate pooled(const HeadScores& scores, HeadScore score);

// Heads in falling order of a score; equal ones, and NaN at the end, in the order of the model.
std::vector<HeadId> ranked(const HeadScores& scores, HeadScore score);

}  // namespace headlight
