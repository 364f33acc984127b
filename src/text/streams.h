#pragma once
// The random streams of the data sources, and how sequences are numbered in them.

#include <cstdint>

#include "headlight/base/random.h"

namespace headlight {

// The stream of one sequence of a training batch. Throws LogicError when step is not in [0, 2^43) or row not in
// [0, 2^20).
RandomStream training_stream(uint64_t seed, int64_t step, int64_t row);
// The stream of one sequence of a validation set, which is the same for all seeds of training.
RandomStream validation_stream(int64_t row);
// The stream of one sequence made on request.
RandomStream request_stream(uint64_t seed, int64_t row);

// Throws LogicError unless [first, first + size) lies in [0, count).
void check_rows(const char* operation, int64_t first, int64_t size, int64_t count);

constexpr int64_t kMostRows = int64_t{1} << 20;  // of one step

}  // namespace headlight
