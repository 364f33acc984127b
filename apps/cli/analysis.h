#pragma once
// What `heads` and `report` find out about a model's heads.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "console.h"
#include "headlight/explain/knockout.h"
#include "headlight/explain/reading.h"
#include "headlight/explain/report.h"
#include "material.h"
#include "options.h"
#include "subject.h"
#include "sweeps.h"

namespace headlight::cli {

struct AnalysisChoice {
  MaterialChoice material{};
  SweepChoice sweep{};
  int64_t orders = 20;  // random orders of the knock-out
};
void add_analysis_options(Options& options, AnalysisChoice& choice, bool with_text);

struct Analysis {
  ModelConfig config;
  Material material;
  HeadScores scores;
  HeadScores untrained;                     // of an untrained model of the same shapes
  std::vector<ReportAblation> ablations{};  // zero, then mean over the same sequences
  std::vector<HeadReading> readings;
  Knockout knockout;
  std::vector<HeadSetEffect> sets;
  std::vector<Check> checks;
  int64_t bytes = 0;  // that the sweeps took
};
// All heads, from the largest rise of the loss when each is taken away alone to the largest fall.
std::vector<HeadId> heads_by_effect(const SweepResult& effects, const ModelConfig& config);
// Shows its progress in the console's line. Ctrl-C saves in `folder`, as Sweeps.
Analysis analyse(const Subject& subject, const AnalysisChoice& choice, const std::filesystem::path& folder,
                 Console& console);

}  // namespace headlight::cli
