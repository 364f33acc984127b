#include "lab_training.h"

#include <fmt/format.h>

#include "headlight/base/error.h"
#include "interrupt.h"
#include "progress.h"

namespace headlight::cli {

std::vector<LogEntry> train_for_lab(Trainer& trainer, const std::string& what, Console& console,
                                    const std::function<void(Trainer&, LogEntry&)>& observe) {
  const StopOnSignal signals;
  ProgressLine line(console, what + ": step");
  std::vector<LogEntry> entries;
  const auto is_due = [&](int64_t interval) { return trainer.step_number() % interval == 0 || trainer.done(); };
  const auto log = [&] {
    entries.push_back(trainer.take_log_entry());
    if (is_due(trainer.options().observe_interval)) observe(trainer, entries.back());
  };
  log();
  while (trainer.step()) {
    if (is_due(trainer.options().log_interval)) log();
    if (*StopOnSignal::requested()) {
      throw Error(ErrorKind::kInterrupted, "", fmt::format("stopped in the middle of {}", what));
    }
    line.show(trainer.step_number(), trainer.options().steps, fmt::format("loss {:.2f}", trainer.last_step().loss));
  }
  return entries;
}

}  // namespace headlight::cli
