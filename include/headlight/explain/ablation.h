#pragma once
// Taking heads away at `hook_z`, before W_O, and what that does to the loss.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headlight/explain/check.h"
#include "headlight/explain/head.h"
#include "headlight/explain/repeats.h"
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

// Mean cross-entropy, in nats, over chosen targets of a batch.
struct LossMetric {
  std::string name = "loss";      // "loss on the second copy"
  std::vector<uint8_t> chosen{};  // (B, T) rows of the batch whose targets count; empty: all that have one
};
// Positions whose own token lies in the second copy: their next token can be known from the first.
LossMetric second_copy_loss(const RepeatedBatch& repeated);
// All other positions: their next token is random.
LossMetric first_copy_loss(const RepeatedBatch& repeated);

// Loss with interventions acting together, against the loss without.
struct Effect {
  std::vector<Intervention> interventions{};
  double loss = 0;    // mean over the chosen targets
  double change = 0;  // loss - clean loss
  double spread = 0;  // standard deviation over sequences of the mean change in each
};

struct SweepResult {
  std::string metric{};  // its name
  double clean_loss = 0;
  double clean_spread = 0;  // standard deviation over sequences
  int64_t targets = 0;      // chosen targets
  int64_t sequences = 0;    // sequences that have one
  std::vector<Effect> effects{};
  Check same_as_naive{};  // that the sweep's token losses are those of whole runs, on the effects compared

  // From the largest rise of the loss to the largest fall.
  std::vector<Effect> by_size() const;
};

struct SweepOptions {
  // Effects, spread over the list, that are computed once more by a whole run of their own and compared bit for bit.
  int64_t compare = 2;
  std::function<void(int64_t done, int64_t total)> progress{};  // runs
  const std::atomic<bool>* stop = nullptr;                      // checked before each run
};

// The effect of each intervention alone. Runs the model once as it is and keeps the streams between blocks; each
// intervention continues from the block that it touches. Large batches are run in parts. Gives the bits of one whole
// run per intervention. Throws LogicError when an intervention or the metric does not fit, or no target is chosen;
// Error (interrupted) when stopped.
SweepResult sweep(const Model& model, const Batch& batch, const std::vector<Intervention>& each,
                  const LossMetric& metric = {}, const SweepOptions& options = {});
// The same with interventions that act together, in their order: one effect per group.
SweepResult sweep_groups(const Model& model, const Batch& batch, const std::vector<std::vector<Intervention>>& groups,
                         const LossMetric& metric = {}, const SweepOptions& options = {});

}  // namespace headlight
