#pragma once
// What the computations on batches share: a batch in parts, so that memory stays bounded, and maxima that keep NaN.

#include <cmath>
#include <cstdint>

#include "headlight/model/batch.h"
#include "headlight/model/model.h"

namespace headlight {

// Sequences [begin, end) with the padding that they have in the batch.
Batch slice_sequences(const Batch& batch, int64_t begin, int64_t end);

// A parameter of the model, or nullptr when it has none of this name.
const float* optional_vector(const Model& model, const std::string& name);

// The same sequences `times` times, one after the other.
Batch repeat_sequences(const Batch& batch, int64_t times);

// How many sequences to run at once when each needs this many numbers: at least one, and about 64 MB.
int64_t sequences_per_part(int64_t numbers_per_sequence);

// The largest of the values taken, from 0 on; NaN once one of them was.
class Largest {
 public:
  void take(double value) {
    if (!(value <= value_) && !std::isnan(value_)) value_ = value;
  }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

}  // namespace headlight
