#include "headlight/explain/formation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

void check_log(const TrainingLog& log) {
  for (std::size_t i = 1; i < log.steps.size(); ++i) {
    if (log.steps[i] <= log.steps[i - 1]) throw LogicError("training log", "steps do not rise");
  }
  for (const TrainingSeries& series : log.series) {
    if (series.values.size() == log.steps.size()) continue;
    throw LogicError("training log", series.name + " has " + std::to_string(series.values.size()) + " values for " +
                                         std::to_string(log.steps.size()) + " steps");
  }
}

// the largest of a score over heads, step by step
std::vector<double> best_of(const TrainingLog& log, HeadScore score) {
  std::vector<double> best(log.steps.size(), kNothing);
  for (const TrainingSeries& series : log.series) {
    if (series.score != score) continue;
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (!(series.values[i] <= best[i]) && !std::isnan(series.values[i])) best[i] = series.values[i];
    }
  }
  return best;
}

double last_of(const std::vector<double>& values) {
  const auto last = std::find_if(values.rbegin(), values.rend(), [](double value) { return !std::isnan(value); });
  return last == values.rend() ? kNothing : *last;
}

// Heads of blocks before `before` whose last score is at least half of the best of these, and at least `least`.
std::vector<HeadId> formed(const TrainingLog& log, HeadScore score, int64_t before, double least) {
  double best = 0;
  std::vector<std::pair<HeadId, double>> last;
  for (const TrainingSeries& series : log.series) {
    if (series.score != score || series.head.block >= before) continue;
    last.emplace_back(series.head, last_of(series.values));
    if (last.back().second > best) best = last.back().second;
  }
  std::vector<HeadId> heads;
  for (const auto& [head, value] : last) {
    if (value >= std::max(least, best / 2)) heads.push_back(head);
  }
  std::sort(heads.begin(), heads.end());
  return heads;
}

std::string blocks_text(const std::vector<HeadId>& heads) {
  std::set<int64_t> blocks;
  for (const HeadId& head : heads) blocks.insert(head.block);
  std::string text = blocks.size() == 1 ? "block " : "blocks ";
  std::size_t i = 0;
  for (int64_t block : blocks) {
    text += (i == 0 ? "" : i + 1 == blocks.size() ? " and " : ", ") + std::to_string(block);
    ++i;
  }
  return text;
}

std::string formation_text(const Formation& formation, const std::string& loss) {
  std::string text = fmt::format("heads formed between steps {} and {}: ", formation.heads.from, formation.heads.to);
  if (!formation.previous.empty()) text += "previous token in " + blocks_text(formation.previous) + ", ";
  text += "induction in " + blocks_text(formation.induction);
  if (!formation.drop) return text;
  if (*formation.drop == formation.heads) return text + "; the loss (" + loss + ") dropped in the same interval";
  return text +
         fmt::format("; the loss ({}) dropped between steps {} and {}", loss, formation.drop->from, formation.drop->to);
}

}  // namespace

std::vector<std::pair<std::string, double>> named_scores(const HeadScores& scores) {
  std::vector<std::pair<std::string, double>> named;
  for (int64_t block = 0; block < scores.blocks; ++block) {
    for (int64_t head = 0; head < scores.heads; ++head) {
      for (HeadScore score : scores.columns) {
        const HeadId id{block, head};
        named.emplace_back(to_string(id) + " " + definition_of(score).id, scores.at(id, score).mean);
      }
    }
  }
  return named;
}

std::optional<ScoreName> parse_score_name(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const std::optional<HeadId> head = read_head(name.substr(0, space));
  if (!head) return std::nullopt;
  for (const ScoreDefinition& definition : score_definitions()) {
    if (definition.id == name.substr(space + 1)) return ScoreName{*head, definition.score};
  }
  return std::nullopt;
}

std::optional<StepInterval> crossing(const std::vector<int64_t>& steps, const std::vector<double>& values,
                                     double rise) {
  if (steps.size() != values.size()) throw LogicError("crossing", "steps and values differ in number");
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) known.push_back(i);
  }
  if (known.size() < 2) return std::nullopt;
  const double sign = rise < 0 ? -1 : 1;
  const double first = sign * values[known.front()];
  const double last = sign * values[known.back()];
  if (!(last - first >= std::abs(rise)) || last == first) return std::nullopt;
  // the last point that is not yet beyond the middle
  std::size_t near = known.size() - 1;
  while (near > 0 && sign * values[known[near]] >= (first + last) / 2) --near;
  return StepInterval{steps[known[near]], steps[known[near + 1]]};
}

std::string formation_definition(const FormationOptions& options) {
  return fmt::format(
      "the logged interval after which the best induction score stays above the middle between its first and its last "
      "value, "
      "when it rises by at least {:g}; the loss ({}) likewise, when it falls by at least {:g} nats; heads named are "
      "those "
      "whose last score is at least half of the best",
      options.rise, options.loss, options.drop);
}

std::optional<Formation> find_formation(const TrainingLog& log, const FormationOptions& options) {
  check_log(log);
  const std::optional<StepInterval> heads =
      crossing(log.steps, best_of(log, HeadScore::kInduction), std::abs(options.rise));
  if (!heads) return std::nullopt;
  Formation formation{.heads = *heads};
  formation.induction = formed(log, HeadScore::kInduction, std::numeric_limits<int64_t>::max(), options.rise / 2);
  formation.previous = formed(log, HeadScore::kPrevious, formation.induction.front().block, options.rise);
  for (const TrainingSeries& series : log.series) {
    if (series.score || series.name != options.loss) continue;
    formation.drop = crossing(log.steps, series.values, -std::abs(options.drop));
  }
  formation.together =
      formation.drop && formation.drop->from < formation.heads.to && formation.heads.from < formation.drop->to;
  formation.text = formation_text(formation, options.loss);
  return formation;
}

}  // namespace headlight
