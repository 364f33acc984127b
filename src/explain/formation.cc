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

bool holds(const std::vector<HeadId>& heads, const HeadId& head) {
  return std::find(heads.begin(), heads.end(), head) != heads.end();
}

// the mean induction score of these heads, step by step; NaN where one was not measured
std::vector<double> mean_induction(const TrainingLog& log, const std::vector<HeadId>& heads) {
  std::vector<double> mean(log.steps.size(), 0);
  for (const TrainingSeries& series : log.series) {
    if (series.score != HeadScore::kInduction || !holds(heads, series.head)) continue;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += series.values[i] / static_cast<double>(heads.size());
  }
  return mean;
}

// a loss as it was last logged, at the steps where the scores were measured; NaN elsewhere
std::vector<double> loss_beside(const std::vector<double>& loss, const std::vector<double>& scores) {
  std::vector<double> beside(loss.size(), kNothing);
  double last = kNothing;
  for (std::size_t i = 0; i < loss.size(); ++i) {
    if (!std::isnan(loss[i])) last = loss[i];
    if (!std::isnan(scores[i])) beside[i] = last;
  }
  return beside;
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
  if (formation.together) return text + "; the loss (" + loss + ") fell most in the same interval";
  return text + fmt::format("; the loss ({}) fell most between steps {} and {}", loss, formation.drop->from,
                            formation.drop->to);
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

std::optional<StepInterval> steepest(const std::vector<int64_t>& steps, const std::vector<double>& values,
                                     double rise) {
  if (steps.size() != values.size()) throw LogicError("steepest", "steps and values differ in number");
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) known.push_back(i);
  }
  if (known.size() < 2) return std::nullopt;
  const double sign = rise < 0 ? -1 : 1;
  if (!(sign * (values[known.back()] - values[known.front()]) >= std::abs(rise))) return std::nullopt;
  StepInterval interval;
  double most = 0;
  for (std::size_t i = 1; i < known.size(); ++i) {
    const double change = sign * (values[known[i]] - values[known[i - 1]]);
    if (!(change > most)) continue;
    most = change;
    interval = {steps[known[i - 1]], steps[known[i]]};
  }
  if (most == 0) return std::nullopt;
  return interval;
}

std::string formation_definition(const FormationOptions& options) {
  return fmt::format(
      "the logged interval in which the mean induction score of the heads that end as induction heads (last score at "
      "least half of the best) rose most, when it rose by at least {:g} in all; the loss ({}) likewise on the same "
      "steps, "
      "when it fell by at least {:g} nats",
      options.rise, options.loss, options.drop);
}

std::optional<Formation> find_formation(const TrainingLog& log, const FormationOptions& options) {
  check_log(log);
  Formation formation;
  formation.induction = formed(log, HeadScore::kInduction, std::numeric_limits<int64_t>::max(), std::abs(options.rise));
  if (formation.induction.empty()) return std::nullopt;
  const std::vector<double> induction = mean_induction(log, formation.induction);
  const std::optional<StepInterval> heads = steepest(log.steps, induction, std::abs(options.rise));
  if (!heads) return std::nullopt;
  formation.heads = *heads;
  formation.previous = formed(log, HeadScore::kPrevious, formation.induction.front().block, options.rise);
  for (const TrainingSeries& series : log.series) {
    if (series.score || series.name != options.loss) continue;
    formation.drop = steepest(log.steps, loss_beside(series.values, induction), -std::abs(options.drop));
  }
  formation.together = formation.drop == formation.heads;
  formation.text = formation_text(formation, options.loss);
  return formation;
}

}  // namespace headlight
