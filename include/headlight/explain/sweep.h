#pragma once
// What interventions do to the loss: many of them in one sweep that computes once what they share.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headlight/explain/check.h"
#include "headlight/model/batch.h"
#include "headlight/model/intervention.h"
#include "headlight/model/model.h"

namespace headlight {

class SweepRecord;

// Mean cross-entropy, in nats, over chosen targets of a batch.
struct LossMetric {
  std::string name = "loss";      // "loss on the second copy"
  std::vector<uint8_t> chosen{};  // (B, T) rows of the batch whose targets count; empty: all that have one
};

// Loss with interventions acting together, against the loss without.
struct Effect {
  std::vector<Intervention> interventions{};
  double loss = 0;    // mean over the chosen targets
  double change = 0;  // loss - clean loss
  double spread = 0;  // standard deviation over sequences of the mean change in each
};

// How a sweep will run.
struct SweepPlan {
  int64_t runs = 0;       // parts of the batch times effects, the clean run and the whole runs to compare with
  int64_t sequences = 0;  // of the batch at once
  int64_t abreast = 0;    // effects at once, at most: those that begin at the same block, side by side in one batch
  int64_t bytes = 0;      // of all that it allocates, beside the model
};

struct SweepProgress {
  int64_t done = 0;   // runs
  int64_t total = 0;  // runs
  double share = 0;   // of the arithmetic that is done: later blocks cost less
};

struct SweepResult {
  std::string metric{};  // its name
  double clean_loss = 0;
  double clean_spread = 0;  // standard deviation over sequences
  int64_t targets = 0;      // chosen targets
  int64_t sequences = 0;    // sequences that have one
  std::vector<Effect> effects{};
  Check same_as_naive{};  // that the sweep's token losses are those of whole runs, on the effects compared
  SweepPlan plan{};

  // From the largest rise of the loss to the largest fall.
  std::vector<Effect> by_size() const;
};

struct SweepOptions {
  // Effects, spread over the list, that are computed once more by a whole run of their own and compared bit for bit.
  int64_t compare = 2;
  int64_t memory = 0;  // bytes that it may allocate; 0: half of what the machine has free
  std::function<void(const SweepProgress&)> progress{};  // before each run
  const std::atomic<bool>* stop = nullptr;               // looked at before each run
  SweepRecord* record = nullptr;                         // keeps what is finished, and saves computing it again
};

// The effect of each intervention alone. Runs the model once as it is and keeps the streams between blocks; each
// intervention continues from the block that it touches, beside others of the same block where the batch is small, and
// only rows whose loss counts are unembedded. Large batches are run in parts. Gives the bits of one whole run per
// intervention, whatever the plan and the threads. Throws LogicError when an intervention or the metric does not fit,
// or no target is chosen; Error: usage when the memory does not suffice, interrupted when stopped.
SweepResult sweep(const Model& model, const Batch& batch, const std::vector<Intervention>& each,
                  const LossMetric& metric = {}, const SweepOptions& options = {});
// The same with interventions that act together, in their order: one effect per group.
SweepResult sweep_groups(const Model& model, const Batch& batch, const std::vector<std::vector<Intervention>>& groups,
                         const LossMetric& metric = {}, const SweepOptions& options = {});

// What sweep_groups() will do with the same arguments. Throws as it does; nothing runs.
SweepPlan plan_sweep(const Model& model, const Batch& batch, const std::vector<std::vector<Intervention>>& groups,
                     const LossMetric& metric = {}, const SweepOptions& options = {});

}  // namespace headlight
