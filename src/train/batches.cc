#include "headlight/train/batches.h"

#include <algorithm>
#include <string>

#include "headlight/base/error.h"

namespace headlight {

static_assert(kNoTarget == kIgnoredTarget, "targets of the sources are targets of the kernels");

void fill_batch(const Samples& samples, int64_t first, int64_t size, Batch& batch) {
  if (first < 0 || size < 1 || first > samples.size - size) {
    throw LogicError("fill_batch", "sequences " + std::to_string(first) + " to " + std::to_string(first + size) +
                                       " of " + std::to_string(samples.size));
  }
  const int64_t rows = size * samples.time;
  if (batch.size != size || batch.time != samples.time) {
    batch.size = size;
    batch.time = samples.time;
    batch.tokens = Buffer<int32_t>(rows);
    batch.positions = Buffer<int32_t>(rows);
    batch.types = Buffer<int32_t>(rows);
    batch.targets = Buffer<int32_t>(rows);
    batch.begins = Buffer<int64_t>(size);
    batch.lengths = Buffer<int64_t>(size);
    std::fill(batch.lengths.begin(), batch.lengths.end(), batch.time);
    for (int64_t i = 0; i < rows; ++i) batch.positions[i] = static_cast<int32_t>(i % batch.time);
  }
  std::copy_n(samples.tokens.begin() + first * samples.time, rows, batch.tokens.begin());
  std::copy_n(samples.targets.begin() + first * samples.time, rows, batch.targets.begin());
}

}  // namespace headlight
