#pragma once
// Small runs for tests: seconds of training, all parts of it.

#include <cmath>
#include <string>

#include "headlight/base/file.h"
#include "headlight/base/thread_pool.h"
#include "headlight/text/corpus.h"
#include "headlight/text/tasks.h"
#include "headlight/train/loop.h"

namespace headlight {

// Two blocks with feed-forward on sequences of two classes; checkpoints and log entries fall on different steps.
inline TrainerOptions small_run(int64_t steps = 24) {
  TrainerOptions options;
  options.model = {.width = 32, .blocks = 2, .heads = 2};
  options.data = repeats({.vocabulary = 12, .context = 24, .held_out_every = 4, .validation_sequences = 6});
  options.steps = steps;
  options.batch = 6;
  options.microbatches = 2;
  options.seed = 5;
  options.rate = 3e-3;
  options.warmup = 4;
  options.log_interval = 3;
  options.validation_interval = 8;
  options.observe_interval = 6;
  options.checkpoint_interval = 5;
  return options;
}

// The weights of the model in a run's folder, as bytes.
inline std::string weights_in(const std::filesystem::path& folder) { return read_file(folder / "model.safetensors"); }

// The log without what differs from run to run.
inline std::string log_without_seconds(const std::filesystem::path& folder) {
  std::string text;
  for (LogEntry entry : read_log(folder)) {
    entry.seconds = 0;
    text += to_json_line(entry) + "\n";
  }
  return text;
}

// Sets the number of threads, and sets it back.
class Threads {
 public:
  explicit Threads(int count) : before_(default_pool().threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

inline NamedNumbers observe_norm(const Trainer& trainer) {
  double sum = 0;
  for (float w : std::span(trainer.model().weights().data, 64)) sum += static_cast<double>(w) * static_cast<double>(w);
  return {{"norm", sum}, {"nothing", std::nan("")}};
}

}  // namespace headlight
