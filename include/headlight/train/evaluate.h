#pragma once
// How well a model predicts sequences it was not trained on.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headlight/model/batch.h"
#include "headlight/model/model.h"
#include "headlight/model/run.h"
#include "headlight/text/data_source.h"

namespace headlight {

// Means are over the targets of one class, NaN where there is none. A span is an unbroken run of targets of one
// class in one sequence, such as a part name; it is right when each of its tokens is the model's first choice
// given the true tokens before it.
struct ClassResult {
  std::string name;  // "copied name"
  int64_t targets = 0;
  double loss = 0;      // nats per target
  double accuracy = 0;  // share of targets that are the model's first choice
  int64_t spans = 0;
  double span_accuracy = 0;  // share of spans that are right
};

struct Evaluation {
  int64_t sequences = 0;
  int64_t targets = 0;
  double loss = 0;  // nats per target, all classes together
  double accuracy = 0;
  std::vector<ClassResult> classes;  // in the order of the source's names
};

struct EvaluateOptions {
  // Unless it has no data: (validation_count, T), packed, set to the loss of each target in nats, 0 where there is
  // none.
  View<float, 2> losses{};
  // Called when `done` of `count` sequences have been run.
  std::function<void(int64_t done, int64_t count)> progress{};
};

// Evaluates models of one configuration on the validation part of a source. Plans its memory once.
class Evaluator {
 public:
  // `batch` sequences are run at a time; the result does not depend on it. Throws Error (usage) when the model's
  // vocabulary or context is smaller than the source's.
  Evaluator(const Model& model, std::shared_ptr<const DataSource> source, int64_t batch = 32);

  // Sums run over sequences in their order: the same bits for any number of threads. Throws LogicError when `losses`
  // has another shape or strides.
  Evaluation run(const Model& model, const EvaluateOptions& options = {});

 private:
  struct Tally;
  void add(const Model& model, int64_t first, int64_t size, std::vector<Tally>& tallies);

  std::shared_ptr<const DataSource> source_;
  int64_t batch_size_;
  Run run_;
  Samples samples_;
  Batch batch_;
  Buffer<float> losses_;
  std::vector<uint8_t> right_;  // (rows) whether the first choice is the target
};

}  // namespace headlight
