#pragma once
// log.jsonl of a run: one object per line, each the state of training after a step.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/train/evaluate.h"

namespace headlight {

// Numbers with their names, in the order in which they are to be shown. NaN: there was nothing to measure.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

struct LogEntry {
  int64_t step = 0;    // optimiser steps done; 0: the untrained model
  int64_t tokens = 0;  // trained on so far
  double seconds = 0;  // spent training, pauses between resumed parts left out
  // Of training, in nats per target: means over the steps since the entry before. Absent at step 0.
  std::optional<double> loss{};
  NamedNumbers losses{};     // by class
  double rate = 0;           // of this step
  double gradient_norm = 0;  // of this step, before clipping
  std::optional<Evaluation> validation{};
  NamedNumbers observed{};  // what an observer measured, such as head scores
};

// {"step": 50, "tokens": 153600, ...}, no newline. NaN and infinity are written as null.
std::string to_json_line(const LogEntry& entry);
// Throws Error (bad data) naming `where`, the key, what was found and expected. null is read as NaN.
LogEntry log_entry_from_json(const std::string& line, const std::string& where);

// All entries of `folder`/log.jsonl, in order; a last line that was cut off is left out. Errors: missing input, bad
// data naming the line.
std::vector<LogEntry> read_log(const std::filesystem::path& folder);

}  // namespace headlight
