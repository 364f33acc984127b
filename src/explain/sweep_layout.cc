#include "explain/sweep_layout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "explain/parts.h"
#include "headlight/base/error.h"
#include "headlight/base/memory.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

// Matrix products of fewer rows wait for the weights; more rows bring nothing.
constexpr int64_t kRowsAbreast = 256;
// Numbers of logits at once: large enough for the product, small enough to stay in the cache until they are read.
constexpr int64_t kLogits = int64_t{1} << 24;
constexpr int64_t kMemoryUnknown = int64_t{1} << 30;  // bytes, where the system does not tell

// The first block that a group touches: the streams before it are those of the clean run.
int64_t first_block(const InterventionGroup& group, int64_t blocks) {
  int64_t first = std::max<int64_t>(0, blocks - 1);
  for (const Intervention& x : group) {
    if (x.site.rfind("ln_final.", 0) == 0) continue;
    first = std::min(first, x.site.rfind("blocks.", 0) == 0 ? int64_t{std::stol(x.site.substr(7))} : 0);
  }
  return first;
}

std::vector<std::string> list(const std::set<std::string>& names) { return {names.begin(), names.end()}; }

int64_t run_bytes(const Model& model, int64_t size, int64_t time, std::vector<std::string> capture) {
  return planned_bytes<float>(model.config(), size, time, {.logits = false, .capture = std::move(capture)});
}

// Values of entry `b` alone.
Intervention of_entry(Intervention x, int64_t b) {
  x.entry = b;
  return x;
}

}  // namespace

std::vector<SweepKind> sweep_kinds(const Model& model, const std::vector<InterventionGroup>& groups) {
  std::map<std::pair<int64_t, std::set<std::string>>, std::vector<std::size_t>> by_kind;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::set<std::string> asked;
    for (const Intervention& x : groups[g]) {
      if (model.sites()[model.sites().find(x.site)].use == SlotUse::kOnRequest) asked.insert(x.site);
    }
    by_kind[{first_block(groups[g], model.config().blocks), std::move(asked)}].push_back(g);
  }
  std::vector<SweepKind> kinds;
  for (auto& [key, members] : by_kind) kinds.push_back({key.first, key.second, std::move(members)});
  return kinds;
}

std::vector<std::string> prefix_sites(const std::vector<SweepKind>& kinds) {
  std::set<std::string> names;
  for (const SweepKind& kind : kinds) {
    if (kind.first > 0) names.insert("blocks." + std::to_string(kind.first) + ".hook_resid_pre");
  }
  return list(names);
}

int64_t logit_rows(const ModelConfig& config, int64_t chosen) {
  return std::min(chosen, std::max<int64_t>(1, kLogits / config.vocabulary));
}

SweepPlan lay_out(const Model& model, const Batch& batch, const std::vector<InterventionGroup>& groups,
                  const std::vector<SweepKind>& kinds, int64_t chosen, int64_t memory) {
  const ModelConfig& c = model.config();
  if (memory == 0) memory = available_memory() / 2;
  if (memory == 0) memory = kMemoryUnknown;
  // everything that is ever asked for: the runs are planned again where kinds differ, and none needs more
  std::set<std::string> asked;
  std::size_t most = 1;
  for (const SweepKind& kind : kinds) {
    asked.insert(kind.asked.begin(), kind.asked.end());
    most = std::max(most, kind.groups.size());
  }
  const auto bytes = [&](int64_t sequences, int64_t abreast) {
    const int64_t rows = logit_rows(c, sequences * abreast * chosen);
    return run_bytes(model, sequences, batch.time, prefix_sites(kinds)) +
           run_bytes(model, sequences * abreast, batch.time, list(asked)) +
           static_cast<int64_t>(sizeof(float)) * rows * (c.vocabulary + c.width);
  };
  SweepPlan plan;
  plan.sequences = std::min(batch.size, sequences_per_part(batch.time * (c.blocks + 8) * c.width));
  const auto abreast = [&] {
    const int64_t rows = std::max<int64_t>(1, plan.sequences * batch.time);
    return std::clamp<int64_t>(kRowsAbreast / rows, 1, static_cast<int64_t>(most));
  };
  plan.abreast = abreast();
  plan.bytes = bytes(plan.sequences, plan.abreast);
  while (plan.bytes > memory && (plan.sequences > 1 || plan.abreast > 1)) {
    if (plan.abreast > 1) {
      plan.abreast = (plan.abreast + 1) / 2;
    } else {
      plan.sequences = (plan.sequences + 1) / 2;
    }
    plan.bytes = bytes(plan.sequences, plan.abreast);
  }
  if (plan.bytes > memory) {
    throw Error(ErrorKind::kUsage, "memory for the sweep", std::to_string(memory) + " bytes",
                "one sequence of " + std::to_string(batch.time) + " tokens needs " + std::to_string(plan.bytes));
  }
  const int64_t parts = (batch.size + plan.sequences - 1) / plan.sequences;
  plan.runs = parts * static_cast<int64_t>(groups.size() + 1);
  return plan;
}

InterventionGroup part_of(const InterventionGroup& group, int64_t begin, int64_t end) {
  InterventionGroup part;
  for (Intervention x : group) {
    if (x.entry && (*x.entry < begin || *x.entry >= end)) continue;
    if (x.entry) *x.entry -= begin;
    if (x.values && x.values_batch > 1 && static_cast<int64_t>(x.values->size()) % x.values_batch == 0) {
      if (x.values_batch < end) {
        throw LogicError("sweep", to_string(x) + " has values for " + std::to_string(x.values_batch) +
                                      " sequences, the batch has more");
      }
      const int64_t each = static_cast<int64_t>(x.values->size()) / x.values_batch;
      x.values =
          std::make_shared<const std::vector<float>>(x.values->begin() + begin * each, x.values->begin() + end * each);
      x.values_batch = end - begin;
    }
    part.push_back(std::move(x));
  }
  return part;
}

InterventionGroup beside_others(const InterventionGroup& part, int64_t size, int64_t index) {
  InterventionGroup moved;
  for (const Intervention& x : part) {
    for (int64_t b = 0; b < size; ++b) {
      if (x.entry && *x.entry != b) continue;
      // its own values, if it has some for each sequence
      InterventionGroup one = x.values_batch > 1 ? part_of({of_entry(x, b)}, b, b + 1) : InterventionGroup{x};
      one.front().entry = index * size + b;
      moved.push_back(std::move(one.front()));
    }
  }
  return moved;
}

}  // namespace headlight
