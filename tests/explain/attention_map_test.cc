#include "headlight/explain/attention_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "explain/models.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

Buffer<float> whole_pattern(const Model& model, const std::vector<int32_t>& tokens, HeadId head) {
  const Batch batch = make_batch({tokens});
  auto run = plan(model, batch, {.logits = false, .capture = {"blocks.*.attn.hook_pattern"}});
  forward(model, batch, run);
  Buffer<float> weights(batch.time * batch.time);
  pattern_rows<float>(model, batch, run, head.block, head.head, 0, weights.view<4>({1, 1, batch.time, batch.time}));
  return weights;
}

TEST(AttentionMaps, KeepEveryWeightWithinTheErrorOfTheirEncoding) {
  for (bool causal : {true, false}) {
    // longer than the rows that are recomputed at once; large weights, so that rows are far from uniform
    Model model = random_model({.vocabulary = 50, .context = 150, .width = 24, .heads = 3, .causal = causal});
    for (int64_t i = 0; i < model.weights().count(); ++i) model.weights()(i) *= 3;
    const std::vector<int32_t> tokens = random_tokens(150, 50, 1);
    const std::vector<AttentionMap> maps = attention_maps(model, tokens);
    ASSERT_EQ(maps.size(), 6u);
    for (const AttentionMap& map : maps) {
      const Buffer<float> weights = whole_pattern(model, tokens, map.head);
      ASSERT_EQ(map.time, 150);
      ASSERT_EQ(map.causal, causal);
      ASSERT_EQ(map.bytes.size(), causal ? 150u * 151 / 2 : 150u * 150);
      for (int64_t i = 0; i < 150; ++i) {
        const float largest = map.row_max[static_cast<std::size_t>(i)];
        EXPECT_EQ(largest, *std::max_element(&weights[i * 150], &weights[i * 150] + 150));
        for (int64_t j = 0; j < 150; ++j) {
          // a byte is off by half, its square by at most 255 / 255^2; then one rounding of fp32
          EXPECT_NEAR(map.weight(i, j), weights[i * 150 + j], largest * (1.0f / 255 + 1e-6f))
              << to_string(map.head) << " row " << i << " key " << j;
        }
      }
    }
  }
}

TEST(AttentionMaps, StoreTheLargestWeightOfARowExactlyAndSmallOnesWell) {
  const Model model = CircuitModel::make();
  const std::vector<AttentionMap> maps = attention_maps(model, {15, 3, 1, 4, 9, 3, 1, 4, 9}, {.heads = {{1, 1}}});
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].head, (HeadId{1, 1}));
  EXPECT_EQ(maps[0].bytes.size(), 9u * 10 / 2);
  EXPECT_EQ(maps[0].row_max[6], 1.0f);
  EXPECT_EQ(maps[0].weight(6, 3), 1.0f) << "from 1 to 4, which followed it";
  EXPECT_EQ(maps[0].weight(6, 2), 0.0f);
  EXPECT_EQ(maps[0].weight(3, 6), 0.0f) << "a later key is not visible";
}

TEST(AttentionMaps, MarkRowsThatAreNotNumbers) {
  Model model = random_model({.vocabulary = 50, .context = 20, .width = 12, .heads = 3});
  model.matrix("embed.W_E")(7, 0) = std::numeric_limits<float>::quiet_NaN();
  const AttentionMap map = attention_maps(model, {1, 2, 7, 3}, {.heads = {{0, 0}}, .top = 2}).front();
  EXPECT_FALSE(std::isnan(map.row_max[1]));
  EXPECT_TRUE(std::isnan(map.row_max[2]));
  EXPECT_EQ(map.bytes.size(), 10u);
  EXPECT_EQ(map.top, 0) << "tokens whose logits are not numbers cannot be ranked";
}

TEST(AttentionMaps, ListWhatEachPositionWrites) {
  const Model model = CircuitModel::make();
  const std::vector<int32_t> tokens{15, 3, 1, 4, 9, 3, 1, 4, 9};
  const AttentionMap map = attention_maps(model, tokens, {.heads = {{1, 0}}, .top = 2}).front();
  ASSERT_EQ(map.top, 2);
  ASSERT_EQ(map.writes.size(), 18u);
  for (std::size_t i = 5; i < 8; ++i) {
    EXPECT_EQ(map.writes[2 * i].token, tokens[i + 1]) << "position " << i;
    EXPECT_NEAR(map.writes[2 * i].value, CircuitModel::kStrength * 15 / 16, 1e-4) << "less the mean over 16 tokens";
  }
}

TEST(AttentionMaps, ListNothingWhereLogitsAreNotDirect) {
  for (const Arrangement& arrangement : all_arrangements()) {
    const Model model = random_model(arrangement.config);
    for (const AttentionMap& map : attention_maps(model, random_tokens(5, 11, 1), {.top = 3})) {
      EXPECT_EQ(map.top, has_direct_logits(arrangement.config) ? 3 : 0) << arrangement.name;
      EXPECT_EQ(map.writes.size(), static_cast<std::size_t>(5 * map.top)) << arrangement.name;
    }
  }
}

TEST(AttentionMaps, RefuseWhatIsNotThere) {
  const Model model = CircuitModel::make();
  EXPECT_THROW(attention_maps(model, {}), LogicError);
  EXPECT_THROW(attention_maps(model, {1}, {.heads = {{2, 0}}}), LogicError);
  EXPECT_THROW(attention_maps(model, {1}, {.heads = {{0, -1}}}), LogicError);
}

}  // namespace
}  // namespace headlight
