#include "headlight/explain/knockout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "explain/models.h"

namespace headlight {
namespace {

struct KnockOut : testing::Test {
  Model model = CircuitModel::make();
  RepeatedBatch repeated = CircuitModel::repeated();
  LossMetric metric = second_copy_loss(repeated);
  HeadScores scores = head_scores(model, repeated);
  std::vector<HeadId> order = ranked(scores, HeadScore::kInduction);

  double change(const std::vector<HeadId>& heads) const {
    return sweep_groups(model, repeated.batch, {ablate(heads)}, metric).effects.front().change;
  }
};

TEST_F(KnockOut, AblatesInTheOrderOfTheScore) {
  const Knockout knockout = knock_out(model, repeated.batch, order, metric, {.orders = 20});
  ASSERT_EQ(knockout.ordered.size(), 4u);
  for (std::size_t n = 1; n <= 4; ++n) {
    const std::vector<HeadId> first(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(knockout.ordered[n - 1].heads, first);
    EXPECT_EQ(knockout.ordered[n - 1].change, change(first)) << n << " heads";
  }
  EXPECT_LT(knockout.ordered[0].change, 0.01) << "one induction head is covered by the other";
  EXPECT_NEAR(knockout.ordered[1].change, std::log(16), 1e-5) << "two are not";
  EXPECT_TRUE(knockout.same_as_naive.passed);
  EXPECT_EQ(knockout.orders, 20);
}

TEST_F(KnockOut, TakesAsManyHeadsAtRandom) {
  const Knockout knockout = knock_out(model, repeated.batch, order, metric, {.orders = 400});
  // all heads of one and of four; the means over the sets of two
  double one = 0;
  double two = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    one += change({order[i]}) / 4;
    for (std::size_t j = 0; j < i; ++j) two += change({order[i], order[j]}) / 6;
  }
  // 400 draws of values between 0 and about 7: a standard error of 0.2 at most
  EXPECT_NEAR(knockout.random[0].mean, one, 0.6);
  EXPECT_NEAR(knockout.random[1].mean, two, 0.6);
  EXPECT_GT(knockout.random[0].spread, 0);
  EXPECT_EQ(knockout.random[3].mean, knockout.ordered[3].change) << "there is one way to take all";
  EXPECT_EQ(knockout.random[3].spread, 0);
  EXPECT_EQ(knockout.random[0].count, 400);
}

TEST_F(KnockOut, DependsOnTheSeedAlone) {
  const auto random = [&](uint64_t seed) {
    return knock_out(model, repeated.batch, order, metric, {.orders = 20, .seed = seed}).random[1].mean;
  };
  EXPECT_EQ(random(1), random(1));
  EXPECT_NE(random(1), random(2));
}

TEST_F(KnockOut, TakesTheCountsAskedFor) {
  const Knockout knockout = knock_out(model, repeated.batch, order, metric, {.counts = {2, 4}, .orders = 3});
  EXPECT_EQ(knockout.ordered.size(), 2u);
  EXPECT_EQ(knockout.ordered[1].heads.size(), 4u);
  EXPECT_THROW(knock_out(model, repeated.batch, order, metric, {.counts = {0}}), LogicError);
  EXPECT_THROW(knock_out(model, repeated.batch, order, metric, {.counts = {5}}), LogicError);
  EXPECT_THROW(knock_out(model, repeated.batch, order, metric, {.orders = 0}), LogicError);
}

TEST_F(KnockOut, ThinsOutTheCountsOfManyHeads) {
  const Model large = random_model(
      {.vocabulary = 11, .context = 8, .width = 40, .blocks = 1, .heads = 40, .positions = Positions::kLearned});
  const RepeatedBatch few = repeat_random_tokens(large.config(), {.sequences = 1});
  const Knockout knockout = knock_out(large, few.batch, all_heads(large.config()), {}, {.orders = 2});
  std::vector<std::size_t> counts;
  for (const KnockoutPoint& point : knockout.ordered) counts.push_back(point.heads.size());
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 18, 22, 27, 33, 40}));
}

TEST_F(KnockOut, ChoosesContrastingSets) {
  const std::vector<HeadSet> sets = head_sets(scores, {.uniform_previous = 0.1});
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[0].heads, (std::vector<HeadId>{{1, 0}, {1, 1}}));
  EXPECT_EQ(sets[1].heads, (std::vector<HeadId>{{0, 0}}));
  EXPECT_EQ(sets[2].heads, (std::vector<HeadId>{{0, 1}})) << "of the same block, the lowest";
  const std::vector<HeadSetEffect> effects = ablate_sets(model, repeated.batch, sets, metric);
  EXPECT_NEAR(effects[0].change, std::log(16), 1e-5);
  EXPECT_GT(effects[1].change, 2);
  EXPECT_EQ(effects[2].change, 0);
}

TEST_F(KnockOut, LeavesSetsEmptyWhereNoHeadQualifies) {
  const std::vector<HeadSet> sets = head_sets(scores, {.induction = 1.1, .uniform_previous = 0.3});
  EXPECT_TRUE(sets[0].heads.empty());
  EXPECT_TRUE(sets[1].heads.empty()) << "1 is less than 4 x 0.3";
  EXPECT_TRUE(sets[2].heads.empty());
  EXPECT_TRUE(ablate_sets(model, repeated.batch, sets, metric).empty());
}

}  // namespace
}  // namespace headlight
