#include "headlight/train/loop.h"

#include <chrono>
#include <optional>

#include "train/log_file.h"

namespace headlight {
namespace {

using Clock = std::chrono::steady_clock;

bool is_due(int64_t step, int64_t interval) { return interval > 0 && step % interval == 0; }

// Speed and time left. Steps that were just taken weigh most in the speed: other programs come and go.
class Pace {
 public:
  void add(const Trainer& trainer) {
    constexpr double kOld = 0.95;
    const double seconds = trainer.last_step().seconds;
    seconds_per_step_ = steps_ == 0 ? seconds : kOld * seconds_per_step_ + (1 - kOld) * seconds;
    ++steps_;
  }

  Progress progress(const Trainer& trainer) const {
    const TrainerOptions& options = trainer.options();
    const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
    const double tokens = static_cast<double>(options.batch * options.data->context());
    return {.step = trainer.step_number(),
            .steps = options.steps,
            .last = &trainer.last_step(),
            .tokens_per_second = tokens / seconds_per_step_,
            .seconds_left = elapsed / steps_ * static_cast<double>(options.steps - trainer.step_number())};
  }

 private:
  Clock::time_point begin_ = Clock::now();
  double steps_ = 0;
  double seconds_per_step_ = 0;
};

// The entry of the step that was just taken, if one is due.
std::optional<LogEntry> entry_of_step(Trainer& trainer, const TrainHooks& hooks) {
  const TrainerOptions& options = trainer.options();
  const int64_t step = trainer.step_number();
  const bool ends = trainer.done();
  const bool validates = options.data->validation_count() > 0 && (ends || is_due(step, options.validation_interval));
  const bool observes = hooks.observe && (ends || is_due(step, options.observe_interval));
  if (!validates && !observes && !ends && !is_due(step, options.log_interval)) return std::nullopt;
  LogEntry entry = trainer.take_log_entry();
  if (validates) entry.validation = trainer.evaluate();
  if (observes) entry.observed = hooks.observe(trainer);
  return entry;
}

}  // namespace

TrainEnd train(Trainer& trainer, const std::filesystem::path& folder, const TrainHooks& hooks) {
  trainer.open(folder);
  LogFile log(folder);
  const auto save = [&] {
    log.sync();  // a checkpoint's log must not be behind it
    trainer.save(folder);
  };
  if (trainer.step_number() == 0) {
    if (const std::optional<LogEntry> entry = entry_of_step(trainer, hooks)) log.append(*entry);
  }
  Pace pace;
  while (!trainer.done()) {
    if (hooks.stop != nullptr && hooks.stop->load()) {
      save();
      return TrainEnd::kStopped;
    }
    trainer.step();
    pace.add(trainer);
    const std::optional<LogEntry> entry = entry_of_step(trainer, hooks);
    if (entry) log.append(*entry);
    if (is_due(trainer.step_number(), trainer.options().checkpoint_interval) && !trainer.done()) save();
    if (!hooks.progress) continue;
    Progress progress = pace.progress(trainer);
    if (entry) progress.entry = &*entry;
    hooks.progress(progress);
  }
  save();
  return TrainEnd::kDone;
}

}  // namespace headlight
