#include "headlight/explain/in_context.h"

#include <gtest/gtest.h>

#include <numeric>

#include "headlight/base/error.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

Model small_model(int64_t context) {
  ModelConfig config;
  config.vocabulary = 13;
  config.context = context;
  config.width = 16;
  config.heads = 2;
  Model model(config);
  initialise(model, 5);
  return model;
}

std::vector<int32_t> tokens(int64_t count, int32_t step) {
  std::vector<int32_t> sequence;
  for (int32_t i = 0; i < count; ++i) sequence.push_back(i * step % 13);
  return sequence;
}

// (B, T) of one forward
Buffer<float> losses_of(const Model& model, const Batch& batch) {
  headlight::Run run = plan(model, batch);
  forward(model, batch, run);
  Buffer<float> losses(batch.size * batch.time);
  token_losses(batch, run, losses.view<2>({batch.size, batch.time}));
  return losses;
}

InContextScore score_of(const Model& model, const Batch& batch) {
  const Buffer<float> losses = losses_of(model, batch);
  return in_context_score(batch, losses.view<2>({batch.size, batch.time}));
}

// mean over the sequences of the loss of predicting token `number`, counted from 1
double mean_loss(const Model& model, const Batch& batch, int64_t number) {
  const Buffer<float> losses = losses_of(model, batch);
  double sum = 0;
  for (int64_t b = 0; b < batch.size; ++b) sum += double{losses[batch.row(b, number - 2)]};
  return sum / static_cast<double>(batch.size);
}

TEST(InContextScore, IsTheLossOfALateTokenLessThatOfAnEarlyOne) {
  const Model model = small_model(40);
  const Batch batch = make_batch({tokens(40, 3), tokens(40, 5), tokens(40, 7)}, PadSide::kLeft);
  const InContextScore score = score_of(model, batch);
  EXPECT_EQ(score.late, 40);
  EXPECT_EQ(score.early, 4);
  EXPECT_DOUBLE_EQ(score.loss_late.mean, mean_loss(model, batch, 40));
  EXPECT_DOUBLE_EQ(score.loss_early.mean, mean_loss(model, batch, 4));
  EXPECT_NEAR(score.score.mean, score.loss_late.mean - score.loss_early.mean, 1e-12);
  EXPECT_EQ(score.score.count, 3);
}

TEST(InContextScore, TakesTheUsualPairWhereTheContextHasRoom) {
  const Model model = small_model(520);
  const InContextScore score = score_of(model, make_batch({tokens(520, 3), tokens(510, 2)}));
  EXPECT_EQ(score.late, 500);
  EXPECT_EQ(score.early, 50);
  EXPECT_EQ(score.score.count, 2);
}

TEST(InContextScore, LeavesOutSequencesWithoutBothTargets) {
  const Model model = small_model(40);
  const InContextScore score = score_of(model, make_batch({tokens(40, 3), tokens(12, 5)}));
  EXPECT_EQ(score.late, 40);
  EXPECT_EQ(score.score.count, 1);
}

TEST(InContextScore, RefusesSequencesWithNothingToCompare) {
  const Model model = small_model(40);
  EXPECT_THROW(score_of(model, make_batch({{1, 2}, {3}})), LogicError);
  const Batch batch = make_batch({tokens(40, 3)});
  const Buffer<float> losses(39);
  EXPECT_THROW(in_context_score(batch, losses.view<2>({1, 39})), LogicError);
}

}  // namespace
}  // namespace headlight
