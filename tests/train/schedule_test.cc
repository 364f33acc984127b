#include "headlight/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headlight/base/error.h"

namespace headlight {
namespace {

TEST(LearningRate, RisesInALineThenFallsAlongHalfACosine) {
  const Schedule schedule{.rate = 0.8, .warmup = 4, .steps = 12, .final_rate = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 6), 0.5 + 0.3 * std::sqrt(0.5));  // a quarter of the way down
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 8), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 12), 0.2);
}

TEST(LearningRate, StartsHighWithoutWarmup) {
  const Schedule schedule{.rate = 1, .warmup = 0, .steps = 2, .final_rate = 0};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2), 0);
}

TEST(LearningRate, StaysOnTheRiseWhenTheRunIsShorter) {
  const Schedule schedule{.rate = 1, .warmup = 100, .steps = 10, .final_rate = 0};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 0.1);
}

TEST(LearningRate, RefusesStepsOutsideTheRun) {
  const Schedule schedule;
  EXPECT_THROW(learning_rate(schedule, 0), LogicError);
  EXPECT_THROW(learning_rate(schedule, schedule.steps + 1), LogicError);
}

}  // namespace
}  // namespace headlight
