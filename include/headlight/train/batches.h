#pragma once
// From the sequences of a data source to batches of the model.

#include <cstdint>

#include "headlight/model/batch.h"
#include "headlight/text/data_source.h"

namespace headlight {

// `batch` = sequences [first, first + size) of `samples` with their targets. Keeps its memory while the sizes
// stay. Throws LogicError beyond samples.size.
void fill_batch(const Samples& samples, int64_t first, int64_t size, Batch& batch);

}  // namespace headlight
