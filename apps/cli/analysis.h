#pragma once
// What `heads` and `report` find out about a model's heads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "console.h"
#include "headlight/explain/knockout.h"
#include "headlight/explain/reading.h"
#include "headlight/explain/report.h"
#include "options.h"
#include "subject.h"

namespace headlight::cli {

struct AnalysisChoice {
  std::string data;  // a text; empty: random tokens and their repetition
  int64_t sequences = 32;
  std::optional<int64_t> length{};  // N of [start] R R
  uint64_t seed = 7;
  int64_t orders = 20;  // random orders of the knock-out
};
// What it runs on; and for analyse() the random orders too.
void add_material_options(Options& options, AnalysisChoice& choice);
void add_analysis_options(Options& options, AnalysisChoice& choice);

// The sequences that heads are looked at on, and which of their losses count.
struct Material {
  Batch batch;
  std::optional<RepeatedBatch> repeated{};  // `batch` is empty then
  std::string condition;
  LossMetric metric;

  const Batch& sequences() const { return repeated ? repeated->batch : batch; }
};
// Errors: usage and bad data of the options and the text.
Material make_material(const Subject& subject, const AnalysisChoice& choice);

struct Analysis {
  Material material;
  HeadScores scores;
  HeadScores untrained;                     // of an untrained model of the same shapes
  std::vector<ReportAblation> ablations{};  // zero, then mean over the same sequences
  std::vector<HeadReading> readings;
  Knockout knockout;
  std::vector<HeadSetEffect> sets;
  std::vector<Check> checks;
};
// All heads, from the largest rise of the loss when each is taken away alone to the largest fall.
std::vector<HeadId> heads_by_effect(const SweepResult& effects, const ModelConfig& config);
// Shows its progress in the console's line.
Analysis analyse(const Subject& subject, const AnalysisChoice& choice, Console& console);

}  // namespace headlight::cli
