#include "analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "headlight/base/error.h"
#include "headlight/explain/identities.h"

namespace headlight::cli {
namespace {

constexpr uint64_t kUntrainedSeed = 0;  // of the weights that the random baseline has

void score(const Subject& subject, Analysis& a) {
  if (a.material.repeated) {
    a.scores = head_scores(subject.model, *a.material.repeated);
    a.untrained = untrained_scores(subject.model.config(), *a.material.repeated, kUntrainedSeed);
    return;
  }
  Model untrained(subject.model.config());
  initialise(untrained, kUntrainedSeed);
  a.scores = text_scores(subject.model, a.material.batch, a.material.condition);
  a.untrained = text_scores(untrained, a.material.batch, a.material.condition);
}

void ablate_each(const Subject& subject, Analysis& a, Sweeps& sweeps) {
  const Batch& batch = a.material.sequences();
  for (Ablation& ablation : std::vector<Ablation>{zero_ablation(), mean_ablation(subject.model, batch)}) {
    SweepResult effects;
    sweeps.run(ablation.id + " ablation of each head", [&](const SweepOptions& options) {
      effects = sweep(subject.model, batch, each_head(subject.model.config(), ablation), a.material.metric, options);
    });
    a.checks.push_back(effects.same_as_naive);
    a.ablations.push_back({std::move(ablation), std::move(effects)});
  }
}

// most inductive first; on a text, whose heads have no such score, most harmful first
void ablate_together(const Subject& subject, const AnalysisChoice& choice, Analysis& a, Sweeps& sweeps) {
  const Batch& batch = a.material.sequences();
  KnockoutOptions knockout;
  knockout.orders = choice.orders;
  knockout.seed = choice.material.seed;
  std::vector<HeadId> order;
  if (a.scores.has(HeadScore::kInduction)) {
    order = ranked(a.scores, HeadScore::kInduction);
  } else {
    knockout.order = "most harmful alone first";
    order = heads_by_effect(a.ablations.front().effects, subject.model.config());
  }
  sweeps.run("heads taken away together", [&](const SweepOptions& options) {
    knockout.sweep = options;
    a.knockout = knock_out(subject.model, batch, order, a.material.metric, knockout);
  });
  a.checks.push_back(a.knockout.same_as_naive);
  if (!a.scores.has(HeadScore::kInduction)) return;
  HeadSetOptions sets;
  sets.uniform_previous = pooled(a.untrained, HeadScore::kPrevious).mean;
  sweeps.run("heads of one kind taken away together", [&](const SweepOptions& options) {
    a.sets = ablate_sets(subject.model, batch, head_sets(a.scores, sets), a.material.metric, zero_ablation(), options);
  });
}

std::vector<std::vector<Intervention>> one_by_one(const std::vector<Intervention>& interventions) {
  std::vector<std::vector<Intervention>> groups;
  for (const Intervention& x : interventions) groups.push_back({x});
  return groups;
}

}  // namespace

void add_analysis_options(Options& options, AnalysisChoice& choice, bool with_text) {
  add_material_options(options, choice.material, with_text);
  add_sweep_options(options, choice.sweep);
  options.integer("--orders", choice.orders, {2, 1000}, "random orders that the knock-out is compared with");
}

std::vector<HeadId> heads_by_effect(const SweepResult& effects, const ModelConfig& config) {
  const std::vector<HeadId> heads = all_heads(config);
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return effects.effects[i].change > effects.effects[j].change; });
  std::vector<HeadId> sorted;
  for (std::size_t i : order) sorted.push_back(heads[i]);
  return sorted;
}

Analysis analyse(const Subject& subject, const AnalysisChoice& choice, const std::filesystem::path& folder,
                 Console& console) {
  Analysis a;
  a.config = subject.model.config();
  a.material = make_material(subject, choice.material);
  console.redraw("scores of each head");
  score(subject, a);
  console.redraw("identities");
  a.checks = check_identities(subject.model, a.material.sequences());
  a.checks.push_back(check_row_sums(a.scores));
  Sweeps sweeps(subject, a.material, choice.sweep, folder, console);
  sweeps.announce("each head alone, set to 0 (and again to its mean)", one_by_one(each_head(subject.model.config())));
  ablate_each(subject, a, sweeps);
  a.readings = read_heads(a.scores, &a.untrained, &a.ablations.front().effects);
  ablate_together(subject, choice, a, sweeps);
  sweeps.finish();
  a.bytes = sweeps.bytes();
  console.clear_line();
  return a;
}

}  // namespace headlight::cli
