#pragma once
// When heads formed: curves logged during training, and the interval in which they crossed.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/explain/head.h"
#include "headlight/explain/head_scores.h"

namespace headlight {

// One curve. Values are NaN where nothing was measured.
struct TrainingSeries {
  std::string name{};  // "second copy", "1.2 induction"
  std::string unit{};  // "nats"
  std::string definition{};
  std::optional<HeadScore> score{};  // absent: a loss
  HeadId head{};                     // of a score
  std::vector<double> values{};      // one per step
};

struct TrainingLog {
  std::vector<int64_t> steps{};  // strictly rising
  std::vector<TrainingSeries> series{};
};

// Mean scores by name, "1.2 induction", as they go into a training log; and such a name read back (absent: another).
std::vector<std::pair<std::string, double>> named_scores(const HeadScores& scores);
struct ScoreName {
  HeadId head{};
  HeadScore score = HeadScore::kPrevious;
};
std::optional<ScoreName> parse_score_name(const std::string& name);

// (from, to]: the curve was on the near side at step `from` and on the far side at step `to`.
struct StepInterval {
  int64_t from = 0;
  int64_t to = 0;
  bool operator==(const StepInterval&) const = default;
};

// The logged interval after which a curve stays beyond the middle between its first and its last value. Empty when the
// last value does not exceed the first by `rise` (falls below it by -rise, when that is negative), or fewer than two
// values were measured.
std::optional<StepInterval> crossing(const std::vector<int64_t>& steps, const std::vector<double>& values, double rise);

struct FormationOptions {
  std::string loss = "second copy";  // name of the loss series
  double rise = 0.2;                 // of the best induction score, at least
  double drop = 0.5;                 // of the loss, in nats, at least
};

struct Formation {
  StepInterval heads{};                // in which the best induction score crossed
  std::vector<HeadId> induction{};     // heads whose last induction score is at least half of the best
  std::vector<HeadId> previous{};      // the same for the previous-token score (of `rise` at least), in earlier blocks
  std::optional<StepInterval> drop{};  // in which the loss crossed
  bool together = false;               // the two intervals overlap
  std::string text{};  // "heads formed between steps 400 and 450: previous token in block 0, induction in block 1; ..."
};

// How formation is defined, in words.
std::string formation_definition(const FormationOptions& options = {});

// Empty when no induction head formed. Throws LogicError when series and steps do not fit together.
std::optional<Formation> find_formation(const TrainingLog& log, const FormationOptions& options = {});

}  // namespace headlight
