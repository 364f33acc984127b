#pragma once
// How the learning rate changes over a run: a rise, then half a cosine down to a floor.

#include <cstdint>

namespace headlight {

struct Schedule {
  double rate = 1e-3;        // the highest
  int64_t warmup = 100;      // steps of the linear rise; 0: none
  int64_t steps = 1500;      // of the whole run
  double final_rate = 1e-4;  // at the last step
};

// The rate of step t = 1, 2, ... steps:
//   t <= warmup:  rate t / warmup
//   after:        final_rate + (rate - final_rate) (1 + cos(pi (t - warmup) / (steps - warmup))) / 2
// Throws LogicError when t is not in [1, steps].
double learning_rate(const Schedule& schedule, int64_t t);

}  // namespace headlight
