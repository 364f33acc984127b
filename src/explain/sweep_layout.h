#pragma once
// What a sweep computes together, and how much memory that takes.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "headlight/explain/sweep.h"
#include "headlight/model/model.h"

namespace headlight {

using InterventionGroup = std::vector<Intervention>;

// Groups that may run side by side as entries of one batch: the same streams come before them, and the same values are
// computed apart.
struct SweepKind {
  int64_t first = 0;                  // the first block that they touch
  std::set<std::string> asked{};      // sites that are computed on request only
  std::vector<std::size_t> groups{};  // in rising order
};

// In rising order of the first block.
std::vector<SweepKind> sweep_kinds(const Model& model, const std::vector<InterventionGroup>& groups);

// The streams that the clean run keeps: "blocks.B.hook_resid_pre" for each first block.
std::vector<std::string> prefix_sites(const std::vector<SweepKind>& kinds);

// Rows whose logits are computed at once.
int64_t logit_rows(const ModelConfig& config, int64_t chosen);

// Chooses how much runs at once, within `memory` bytes. `chosen` counts rows of a sequence whose logits are wanted, at
// most. Throws Error (usage) when one sequence alone needs more.
SweepPlan lay_out(const Model& model, const Batch& batch, const std::vector<InterventionGroup>& groups,
                  const std::vector<SweepKind>& kinds, int64_t chosen, int64_t memory);

// What of a group acts on sequences [begin, end) of the batch, counted from `begin`. Throws LogicError when it has
// values for fewer sequences.
InterventionGroup part_of(const InterventionGroup& group, int64_t begin, int64_t end);

// The same for a batch that repeats those `size` sequences several times: it acts on the time numbered `index` alone.
InterventionGroup beside_others(const InterventionGroup& part, int64_t size, int64_t index);

}  // namespace headlight
