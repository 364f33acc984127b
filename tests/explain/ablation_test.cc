#include "headlight/explain/ablation.h"

#include <gtest/gtest.h>

#include "explain/models.h"
#include "headlight/model/run.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

TEST(MeanAblation, IsTheMeanOverAllPositions) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  for (PadSide side : {PadSide::kRight, PadSide::kLeft}) {
    const Batch batch = make_batch(uneven_sequences(11), side);
    auto run = plan(model, batch, {.capture = {"blocks.*.attn.hook_z"}});
    forward(model, batch, run);
    const Ablation all = mean_ablation(model, batch);
    const Ablation each = mean_ablation(model, batch, true);
    EXPECT_EQ(all.means_time, 1);
    EXPECT_EQ(each.means_time, 7);
    for (HeadId head : all_heads(model.config())) {
      const View<const float, 4> z = run.site("blocks." + std::to_string(head.block) + ".attn.hook_z");
      for (int64_t c = 0; c < 4; ++c) {
        double sum = 0;
        std::vector<double> by_position(7, 0);
        std::vector<double> count(7, 0);
        for (int64_t b = 0; b < 4; ++b) {
          for (int64_t i = 0; i < batch.lengths[b]; ++i) {
            const double value = static_cast<double>(z(b, batch.begins[b] + i, head.head, c));
            sum += value;
            by_position[static_cast<std::size_t>(i)] += value;
            count[static_cast<std::size_t>(i)] += 1;
          }
        }
        EXPECT_FLOAT_EQ((*all.means.at(head))[static_cast<std::size_t>(c)], static_cast<float>(sum / 12));
        for (std::size_t i = 0; i < 7; ++i) {
          EXPECT_FLOAT_EQ((*each.means.at(head))[i * 4 + static_cast<std::size_t>(c)],
                          static_cast<float>(by_position[i] / count[i]));
        }
      }
    }
  }
}

TEST(MeanAblation, OfOneSequencePerPositionChangesNothing) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  const Batch batch = make_batch({random_tokens(8, 11, 1)});
  const Ablation own = mean_ablation(model, batch, true);
  for (const Effect& effect : sweep(model, batch, each_head(model.config(), own)).effects) EXPECT_EQ(effect.change, 0);
}

TEST(MeanAblation, RefusesAnEmptyReferenceAndAnUnknownHead) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  EXPECT_THROW(mean_ablation(model, make_batch(std::vector<std::vector<int32_t>>{{}})), LogicError);
  EXPECT_THROW(mean_ablation(model, make_batch(std::vector<std::vector<int32_t>>{{}, {}}), true), LogicError);
  EXPECT_THROW(ablate({0, 3}, mean_ablation(model, make_batch(uneven_sequences(11)))), LogicError);
}

}  // namespace
}  // namespace headlight
