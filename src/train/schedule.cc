#include "headlight/train/schedule.h"

#include <cmath>
#include <numbers>
#include <string>

#include "headlight/base/error.h"

namespace headlight {

double learning_rate(const Schedule& schedule, int64_t t) {
  if (t < 1 || t > schedule.steps) {
    throw LogicError("learning_rate", "step " + std::to_string(t) + " of " + std::to_string(schedule.steps));
  }
  if (t <= schedule.warmup) return schedule.rate * static_cast<double>(t) / static_cast<double>(schedule.warmup);
  const double progress =
      static_cast<double>(t - schedule.warmup) / static_cast<double>(schedule.steps - schedule.warmup);
  return schedule.final_rate + (schedule.rate - schedule.final_rate) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace headlight
