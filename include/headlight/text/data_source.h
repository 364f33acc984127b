#pragma once
// Where training and validation sequences come from: a text, or a synthetic task. Every sequence is named by
// numbers (seed, step, row), so that there is no position to save.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headlight/text/tokenizer.h"

namespace headlight {

// The target of a position that predicts nothing.
constexpr int32_t kNoTarget = -1;

// Sequences of equal length with the token that each position is to predict and what kind of prediction that is.
struct Samples {
  int64_t size = 0;              // sequences
  int64_t time = 0;              // T, positions of each
  std::vector<int32_t> tokens;   // (size, T)
  std::vector<int32_t> targets;  // (size, T), kNoTarget where nothing is predicted
  std::vector<uint8_t> classes;  // (size, T) index into the source's class names; 0 where there is no target

  // Keeps its memory: no allocation when it was this large before. Contents are unspecified afterwards.
  void resize(int64_t new_size, int64_t new_time);
};

// Constant once made; threads may share it.
class DataSource {
 public:
  virtual ~DataSource() = default;

  // "text", "repeats", "log-lines"
  virtual std::string kind() const = 0;
  virtual std::shared_ptr<const Tokenizer> tokenizer() const = 0;
  // T of all its sequences
  virtual int64_t context() const = 0;
  // What a target can be, so that losses are told apart: "first copy", "second copy". At most 256, at least one.
  virtual const std::vector<std::string>& classes() const = 0;

  // Sequences [first, first + size) of the step's batch, set: the same for the same (seed, step, row), however
  // the batch is cut. Throws LogicError when the source has no training part, when step is not in [0, 2^43),
  // or when first + size exceeds 2^20.
  virtual void training(uint64_t seed, int64_t step, int64_t first, int64_t size, Samples& out) const = 0;

  // Sequences never used for training.
  virtual int64_t validation_count() const = 0;
  // Sequences [first, first + size) of them, set. Throws LogicError beyond validation_count().
  virtual void validation(int64_t first, int64_t size, Samples& out) const = 0;

  // All that data_source_from_json needs to make it again.
  virtual std::string to_json() const = 0;
};

// Errors: bad data naming `where`, the key, what was found and expected; for a text also missing input, and bad
// data when its content is no longer what it was.
std::shared_ptr<const DataSource> data_source_from_json(const std::string& text, const std::string& where);

}  // namespace headlight
