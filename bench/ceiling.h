#pragma once
// What the machine can do at most, measured beside the kernels: the rate of multiply-adds on registers, and
// of reading memory.

#include "headlight/tensor/view.h"
#include "timing.h"

namespace headlight::bench {

// Independent float multiply-adds on the instruction set in use, in as many tasks as `threads`; their amount in
// operations, two each.
Work multiply_add_ceiling(int threads);

// Sums all of `memory`, the threads of the pool side by side; its amount in bytes.
Work read_ceiling(View<const float, 1> memory);

}  // namespace headlight::bench
