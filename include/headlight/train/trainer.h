#pragma once
// Training, one optimiser step at a time.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headlight/model/model.h"
#include "headlight/train/evaluate.h"
#include "headlight/train/log.h"
#include "headlight/train/options.h"

namespace headlight {

// What a step did. Losses are means over its batch, in nats per target.
struct StepReport {
  int64_t step = 0;          // steps done, this one included
  double loss = 0;           // all classes together
  NamedNumbers losses{};     // by class; NaN where the batch has no target of it
  double rate = 0;           // learning rate
  double gradient_norm = 0;  // before clipping
  double seconds = 0;        // that it took
};

// The model, its optimiser and its data. A step is: forward and backward of each part of the batch, the gradient's
// norm, clipping, AdamW. The same bits for any number of threads, and after a resume.
class Trainer {
 public:
  // Draws the first weights and plans all memory. Throws as resolve(TrainerOptions).
  explicit Trainer(const TrainerOptions& options);

  // Goes on from the last whole checkpoint of a run's folder, or from its start when it was interrupted before the
  // first. Keeps the folder locked. `messages`, when given, gains a line for each checkpoint that was passed over and
  // why. Errors: missing input when there is no run; runtime when another trainer uses it; bad data of its files.
  static Trainer resume(const std::filesystem::path& folder, std::vector<std::string>* messages = nullptr);

  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  const TrainerOptions& options() const noexcept;  // resolved
  const Model& model() const noexcept;
  int64_t step_number() const noexcept;  // steps done
  int64_t tokens_seen() const noexcept;  // trained on so far
  bool done() const noexcept;
  int64_t bytes() const noexcept;  // of weights, optimiser, gradients and the run

  // One optimiser step; false, and nothing happens, when all are done. Throws Error (runtime), with the weights as they
  // were, when the loss or the gradient is not finite.
  bool step();
  const StepReport& last_step() const noexcept;

  // On the validation part of the data.
  Evaluation evaluate();

  // Makes `folder` the place of this run, if it is not yet, and keeps it locked: a new folder gets all that a
  // resume needs. Errors: cannot create when it holds a run or a model already; runtime when it is in use; cannot
  // write.
  void open(const std::filesystem::path& folder);

  // open(), then a checkpoint, and the weights where load_model(folder) finds them. On failure the last good ones stay.
  void save(const std::filesystem::path& folder);

  // The entry for the log after this step, with the losses since the last one that was taken.
  LogEntry take_log_entry();

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headlight
