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

// Two steps that follow each other among those at which something was measured.
struct StepInterval {
  int64_t from = 0;
  int64_t to = 0;
  bool operator==(const StepInterval&) const = default;
};

// The interval in which a curve rises most (falls most, when `rise` is negative); the first of equal ones. NaN is
// passed over. Empty when the last value does not exceed the first by `rise` (fall below it by -rise), or fewer than
// two values were measured.
std::optional<StepInterval> steepest(const std::vector<int64_t>& steps, const std::vector<double>& values, double rise);

struct FormationOptions {
  std::string loss = "second copy";  // name of the loss series
  double rise = 0.2;                 // of the induction score, at least
  double drop = 0.5;                 // of the loss, in nats, at least
};

struct Formation {
  StepInterval heads{};              // in which the induction score rose most
  std::vector<HeadId> induction{};   // heads whose last induction score is at least half of the best
  std::vector<HeadId> previous{};    // the same for the previous-token score (of `rise` at least), in earlier blocks
  std::optional<StepInterval> drop;  // in which the loss fell most
  bool together = false;             // the two intervals are the same
  std::string text{};  // "heads formed between steps 400 and 450: previous token in block 0, induction in block 1; ..."
};

// How formation is defined, in words.
std::string formation_definition(const FormationOptions& options = {});

// Scores are measured less often than losses: intervals are those of the steps with an induction score, with the loss
// as it was last logged there. The curve of the induction score is the mean over the heads that end as induction heads.
// Empty when there is none. Throws LogicError when series and steps do not fit together.
std::optional<Formation> find_formation(const TrainingLog& log, const FormationOptions& options = {});

}  // namespace headlight
