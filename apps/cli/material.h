#pragma once
// What `heads`, `ablate` and `report` run a model on: random tokens and their repetition, or a text.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/explain/repeats.h"
#include "headlight/explain/sweep.h"
#include "options.h"
#include "subject.h"

namespace headlight::cli {

struct MaterialChoice {
  std::string data;  // a file
  std::string text;  // one text; without both: random tokens and their repetition
  std::optional<int64_t> sequences{};
  std::optional<int64_t> length{};   // N of [start] R R
  std::optional<int64_t> context{};  // tokens of a window of `data`
  uint64_t seed = 7;
  std::string start = kStartOfModel;
};
// `with_text`: --text too.
void add_material_options(Options& options, MaterialChoice& choice, bool with_text);

// The sequences that heads are looked at on, and which of their losses count.
struct Material {
  Batch batch;
  std::optional<RepeatedBatch> repeated{};  // `batch` is empty then
  std::string condition;
  LossMetric metric;
  std::optional<int32_t> start{};  // the token put before each sequence

  const Batch& sequences() const { return repeated ? repeated->batch : batch; }
  // (B) the ids of each sequence, without padding.
  std::vector<std::vector<int32_t>> ids() const;
};
// Without --sequences, --length and --context it is sized so that taking every head away alone stays affordable: 32
// sequences of the usual length for small models, fewer and shorter ones for large models, at least 200 tokens of
// repeats where the context has room. Errors: usage, and those of the file.
Material make_material(const Subject& subject, const MaterialChoice& choice);

// Multiply-adds of a forward of one token, about: the weights that meet it.
double weights_per_token(const ModelConfig& config);

}  // namespace headlight::cli
