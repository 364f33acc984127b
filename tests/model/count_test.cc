#include "headlight/model/count.h"

#include <gtest/gtest.h>

#include "headlight/model/model.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

TEST(CountCost, CountsEveryParameterOfEveryArrangement) {
  for (const Arrangement& arrangement : all_arrangements()) {
    const ModelCost cost = count_cost(arrangement.config, 5);
    int64_t parts = 0;
    for (const PartCost& part : cost.parts) parts += part.parameters;
    EXPECT_EQ(parts, cost.parameters) << arrangement.name;
    EXPECT_EQ(cost.parameters, Model(arrangement.config).parameters().count()) << arrangement.name;
  }
}

// a layer of attention: 4 d^2 parameters whatever the heads, 8 d^2 operations of projections per token, and
// 4 t d for a token that attends to t positions
TEST(CountCost, GivesTheTextbooksFigures) {
  const int64_t d = 4096;
  for (int64_t heads : {1, 32}) {
    const ModelConfig config{.vocabulary = 1,
                             .context = 100,
                             .width = d,
                             .blocks = 1,
                             .heads = heads,
                             .feed_forward = FeedForward::kNone,
                             .causal = false,
                             .biases = kNoBiases};
    const int64_t t = 100;
    for (const PartCost& part : count_cost(config, t).parts) {
      if (part.part != "blocks.0.attn") continue;
      EXPECT_EQ(part.parameters, 4 * d * d);
      EXPECT_DOUBLE_EQ(part.flops / static_cast<double>(t), static_cast<double>(8 * d * d + 4 * t * d));
    }
  }
}

TEST(VisiblePairs, LeavesOutWhatACausalMaskHides) {
  for (int64_t t : {0, 1, 2, 50, 4096}) {
    EXPECT_DOUBLE_EQ(visible_pairs(t, false) - visible_pairs(t, true), static_cast<double>(t * (t - 1) / 2)) << t;
  }
}

}  // namespace
}  // namespace headlight
