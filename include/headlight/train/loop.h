#pragma once
// A whole run: steps with log, validation, observers, checkpoints and progress at their intervals.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "headlight/train/trainer.h"

namespace headlight {

// After each step, for a display.
struct Progress {
  int64_t step = 0;  // of steps
  int64_t steps = 0;
  const StepReport* last = nullptr;
  double tokens_per_second = 0;     // of the steps since train() was called, the latest weighing most
  double seconds_left = 0;          // at the pace since train() was called, all that is not a step included
  const LogEntry* entry = nullptr;  // when one was written after this step
};

struct TrainHooks {
  std::function<void(const Progress&)> progress{};
  // Numbers for the log, asked for every observe_interval steps, at the beginning and at the end.
  std::function<NamedNumbers(const Trainer&)> observe{};
  // Set by anyone, a signal handler too: train() then stops after the current step and saves.
  const std::atomic<bool>* stop = nullptr;
};

enum class TrainEnd { kDone, kStopped };

// Trains until all steps are done or a stop was asked for, and saves in `folder`, which is opened first (errors as
// Trainer::open). A run that was stopped, killed or failed at any moment ends, when resumed, with the same bits and the
// same log (but for `seconds`) as one that was not. When something throws, the last checkpoint is kept.
TrainEnd train(Trainer& trainer, const std::filesystem::path& folder, const TrainHooks& hooks = {});

}  // namespace headlight
