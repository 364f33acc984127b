#pragma once
// Taking heads away at `hook_z`, before W_O, and the losses that this is measured by.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headlight/explain/head.h"
#include "headlight/explain/repeats.h"
#include "headlight/explain/sweep.h"
#include "headlight/model/intervention.h"
#include "headlight/model/model.h"

namespace headlight {

// What a head's z becomes.
struct Ablation {
  std::string id = "zero";  // or "mean"
  std::string definition = "the head's output z, before W_O, is set to 0";
  // mean: (means_time, M) numbers for each head; none: zero.
  std::map<HeadId, std::shared_ptr<const std::vector<float>>> means{};
  int64_t means_time = 1;
};

Ablation zero_ablation();
// z becomes its mean over the reference: over all positions of all sequences, or with `per_position` over the
// sequences that have this position, counted from the first token. Throws LogicError when the reference is empty.
Ablation mean_ablation(const Model& model, const Batch& reference, bool per_position = false);

// Throws LogicError when a mean ablation has no mean for this head.
Intervention ablate(const HeadId& head, const Ablation& ablation = zero_ablation());
std::vector<Intervention> ablate(const std::vector<HeadId>& heads, const Ablation& ablation = zero_ablation());
// One for each head of the model, block by block.
std::vector<Intervention> each_head(const ModelConfig& config, const Ablation& ablation = zero_ablation());

// Positions whose own token lies in the second copy: their next token can be known from the first.
LossMetric second_copy_loss(const RepeatedBatch& repeated);
// All other positions: their next token is random.
LossMetric first_copy_loss(const RepeatedBatch& repeated);

}  // namespace headlight
