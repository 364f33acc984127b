#pragma once
// Training inside an experiment: no folder, but the same log.

#include <functional>
#include <string>
#include <vector>

#include "console.h"
#include "headlight/train/trainer.h"

namespace headlight::cli {

// Trains to the end, with an entry every log_interval of the trainer's options, at the start and at the end; `observe`
// fills in what it measures every observe_interval, at the start and at the end. Ctrl-C ends it: throws Error
// (interrupted).
std::vector<LogEntry> train_for_lab(Trainer& trainer, const std::string& what, Console& console,
                                    const std::function<void(Trainer&, LogEntry&)>& observe);

}  // namespace headlight::cli
