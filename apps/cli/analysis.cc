#include "analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "curves.h"
#include "headlight/base/error.h"
#include "headlight/explain/identities.h"
#include "progress.h"

namespace headlight::cli {
namespace {

constexpr uint64_t kUntrainedSeed = 0;  // of the weights that the random baseline has

Material repeated_material(const Subject& subject, const AnalysisChoice& choice) {
  RepeatOptions options = subject.training ? scoring_repeats(subject.model.config(), *subject.training->data)
                                           : scoring_repeats(subject.model.config(), *subject.tokenizer);
  options.sequences = choice.sequences;
  options.seed = choice.seed;
  if (choice.length) options.lengths = {*choice.length};
  Material material;
  material.repeated = repeat_random_tokens(subject.model.config(), options);
  material.condition = material.repeated->condition;
  material.metric = second_copy_loss(*material.repeated);
  return material;
}

Material text_material(const Subject& subject, const AnalysisChoice& choice) {
  Material material;
  material.batch = text_windows(subject, choice.data, choice.sequences);
  material.condition =
      fmt::format("{} windows of {} bytes of {}, spread evenly", material.batch.size, material.batch.time, choice.data);
  material.metric.name = "loss on all bytes";
  return material;
}

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

SweepOptions sweep_options(ProgressLine& line) {
  SweepOptions options;
  options.progress = [&line](const SweepProgress& p) { line.show(p.done, p.total); };
  return options;
}

void ablate_each(const Subject& subject, Analysis& a, Console& console) {
  const Batch& batch = a.material.sequences();
  for (Ablation& ablation : std::vector<Ablation>{zero_ablation(), mean_ablation(subject.model, batch)}) {
    ProgressLine line(console, ablation.id + " ablation of each head");
    SweepResult effects = sweep(subject.model, batch, each_head(subject.model.config(), ablation), a.material.metric,
                                sweep_options(line));
    a.checks.push_back(effects.same_as_naive);
    a.ablations.push_back({std::move(ablation), std::move(effects)});
  }
}

// most inductive first; on a text, whose heads have no such score, most harmful first
void ablate_together(const Subject& subject, const AnalysisChoice& choice, Analysis& a, Console& console) {
  const Batch& batch = a.material.sequences();
  ProgressLine line(console, "heads taken away together");
  KnockoutOptions options;
  options.orders = choice.orders;
  options.seed = choice.seed;
  options.sweep = sweep_options(line);
  std::vector<HeadId> order;
  if (a.scores.has(HeadScore::kInduction)) {
    order = ranked(a.scores, HeadScore::kInduction);
  } else {
    options.order = "most harmful alone first";
    order = heads_by_effect(a.ablations.front().effects, subject.model.config());
  }
  a.knockout = knock_out(subject.model, batch, order, a.material.metric, options);
  a.checks.push_back(a.knockout.same_as_naive);
  if (!a.scores.has(HeadScore::kInduction)) return;
  HeadSetOptions sets;
  sets.uniform_previous = pooled(a.untrained, HeadScore::kPrevious).mean;
  a.sets = ablate_sets(subject.model, batch, head_sets(a.scores, sets), a.material.metric);
}

}  // namespace

void add_material_options(Options& options, AnalysisChoice& choice) {
  options.group("what it runs on");
  options.text("--data", "FILE", choice.data, "a text, for models of bytes [random tokens and their repetition]");
  options.integer("--sequences", choice.sequences, {2, 1 << 16}, "how many sequences");
  options.optional_integer("--length", choice.length, {2, 1 << 24},
                           "N of the repetition [start] R R [lengths never trained, or as the context allows]");
  options.seed("--seed", choice.seed, "of all that is drawn");
}

void add_analysis_options(Options& options, AnalysisChoice& choice) {
  add_material_options(options, choice);
  options.integer("--orders", choice.orders, {2, 1000}, "random orders that the knock-out is compared with");
}

Material make_material(const Subject& subject, const AnalysisChoice& choice) {
  if (choice.data.empty()) return repeated_material(subject, choice);
  if (choice.length) throw Error(ErrorKind::kUsage, "", "--length does not go with --data");
  return text_material(subject, choice);
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

Analysis analyse(const Subject& subject, const AnalysisChoice& choice, Console& console) {
  Analysis a;
  a.material = make_material(subject, choice);
  console.redraw("scores of each head");
  score(subject, a);
  console.redraw("identities");
  a.checks = check_identities(subject.model, a.material.sequences());
  a.checks.push_back(check_row_sums(a.scores));
  ablate_each(subject, a, console);
  a.readings = read_heads(a.scores, &a.untrained, &a.ablations.front().effects);
  ablate_together(subject, choice, a, console);
  console.clear_line();
  return a;
}

}  // namespace headlight::cli
