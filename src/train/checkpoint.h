#pragma once
// checkpoints/step-N: everything that a resumed run needs to end with the same bits, and a manifest with the hashes of
// the files, written last. Seeds and data are in training.json; the data's position is the step.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headlight/model/model.h"

namespace headlight {

// Losses of training by class since the last log entry.
struct LossSums {
  std::vector<double> sums;
  std::vector<int64_t> targets;
};

// What changes while training. Between optimiser steps there is nothing else.
struct Progressing {
  Model model;
  Buffer<float> m;  // of AdamW, laid out like model.weights()
  Buffer<float> v;
  int64_t step = 0;    // optimiser steps done
  double seconds = 0;  // spent in them
  LossSums since_entry{};
};

// Writes the checkpoint of a run's folder, then removes all but the last two and those of later steps. Errors: cannot
// write, cannot create; then what the folder held before is still there, and a full disk's message names the bytes
// needed.
void write_checkpoint(const std::filesystem::path& folder, const Progressing& state);

// The last checkpoint that is whole, with `messages` about those that are not. Nothing when there is none, but throws
// Error (bad data) when one was finished and none is whole.
std::optional<Progressing> read_last_checkpoint(const std::filesystem::path& folder, const ModelConfig& config,
                                                std::vector<std::string>& messages);

}  // namespace headlight
