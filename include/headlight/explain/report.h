#pragma once
// The report: everything that is known about a model in one HTML file that opens offline. apps/web/SCHEMA.md
// describes its data.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headlight/explain/ablation.h"
#include "headlight/explain/attention_map.h"
#include "headlight/explain/check.h"
#include "headlight/explain/formation.h"
#include "headlight/explain/head_scores.h"
#include "headlight/explain/knockout.h"
#include "headlight/explain/reading.h"
#include "headlight/model/config.h"

namespace headlight {

// Texts may hold any bytes: what is not UTF-8 is shown as \xHH.
struct ReportRun {
  std::string model{};
  std::string data{};
  uint64_t seed = 0;
  std::string isa{};
  int threads = 1;
  std::string command{};  // the command line that makes this report again
  std::string normalisation = "final norm with its scale frozen at its actual value";
};

// Effects of one kind of ablation, of each head alone.
struct ReportAblation {
  Ablation ablation{};    // its id and definition are shown
  SweepResult effects{};  // one per head, block by block
};

struct ReportText {
  std::string name{};
  std::vector<int32_t> ids{};
  bool start_token = false;  // the first token was prepended
  std::vector<AttentionMap> maps{};
};

struct ReportCost {
  int64_t time = 0;  // length of the sequence that is counted
  std::optional<int64_t> training_tokens{};
  std::string training_note{};
};

struct Report {
  std::string title{};
  std::string created{};  // ISO 8601
  std::string version{};  // Headlight's
  ReportRun run{};
  std::vector<Check> checks{};
  ModelConfig config{};
  std::optional<TrainingLog> training{};
  std::optional<Formation> formation{};
  HeadScores scores{};
  std::optional<HeadScores> untrained{};
  std::vector<ReportAblation> ablations{};
  std::vector<HeadReading> readings{};                 // one per head, block by block
  std::vector<std::vector<TokenWeight>> top_writes{};  // the same, or none
  std::optional<Knockout> knockout{};
  std::vector<ReportText> texts{};
  ReportCost cost{};
  std::function<std::string(int32_t)> token_text{};  // the bytes of a token
};

// One JSON object in UTF-8, with `<` as \u003c. Throws LogicError when the parts do not fit together.
std::string report_json(const Report& report);

// The page with the report's data, written whole or not at all. Errors: cannot create, cannot write.
void write_report(const std::filesystem::path& path, const Report& report);

}  // namespace headlight
