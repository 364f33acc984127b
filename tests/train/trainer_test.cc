#include "headlight/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "headlight/base/error.h"
#include "headlight/model/run.h"
#include "headlight/train/batches.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"
#include "train/small.h"

namespace headlight {
namespace {

std::vector<float> weights_of(const Trainer& trainer) {
  const View<const float, 1> w = trainer.model().weights();
  return {w.data, w.data + w.count()};
}

std::vector<float> trained(const TrainerOptions& options) {
  Trainer trainer(options);
  while (trainer.step()) {
  }
  return weights_of(trainer);
}

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]) << "weight " << i;
}

TEST(TrainerStep, LearnsASmallText) {
  TempFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the cat sat on the mat. ";
  write_file_atomically(folder / "text.txt", text);
  TrainerOptions options = small_run(60);
  options.data = text_file({.path = folder / "text.txt", .context = 24});
  Trainer trainer(options);
  const double before = trainer.evaluate().loss;
  EXPECT_NEAR(before, std::log(256.0), 1.0);  // untrained logits have a deviation below 1
  while (trainer.step()) {
  }
  const double after = trainer.evaluate().loss;
  EXPECT_LT(after, 1.0);
  EXPECT_EQ(trainer.step_number(), 60);
  EXPECT_EQ(trainer.tokens_seen(), 60 * 6 * 24);
  EXPECT_FALSE(trainer.step());
  EXPECT_EQ(trainer.step_number(), 60);
}

TEST(TrainerStep, GivesTheSameBitsForAnyNumberOfThreads) {
  TrainerOptions options = small_run(4);
  options.model.width = 64;
  options.data = repeats({.context = 96});
  options.batch = 8;
  std::vector<float> expected;
  for (const int threads : {1, 2, 3, 7}) {
    const Threads set(threads);
    const std::vector<float> got = trained(options);
    if (expected.empty()) expected = got;
    SCOPED_TRACE(std::to_string(threads) + " threads");
    expect_same_bits(got, expected);
  }
}

TEST(TrainerStep, ReportsWhatItDid) {
  Trainer trainer(small_run());
  trainer.step();
  const StepReport& report = trainer.last_step();
  EXPECT_EQ(report.step, 1);
  EXPECT_DOUBLE_EQ(report.rate, 3e-3 / 4);
  ASSERT_EQ(report.losses.size(), 2u);
  EXPECT_EQ(report.losses[0].first, "first copy");
  EXPECT_NEAR(report.losses[0].second, std::log(13.0), 1.0);
  EXPECT_GT(report.loss, std::min(report.losses[0].second, report.losses[1].second));
  EXPECT_LT(report.loss, std::max(report.losses[0].second, report.losses[1].second));
  EXPECT_GT(report.gradient_norm, 0);
}

// One step of the plain formula beside the trainer's: accumulation, clipping, decay groups and rate together.
TEST(TrainerStep, IsAdamWOnTheMeanGradientOfTheWholeBatch) {
  for (const double clip : {0.0, 0.05}) {
    TrainerOptions options = small_run(10);
    options.clip = clip;
    options.decay = 0.5;
    Trainer trainer(options);
    const TrainerOptions& o = trainer.options();
    Samples samples;
    o.data->training(static_cast<uint64_t>(o.seed), 0, 0, o.batch, samples);
    Batch batch;
    fill_batch(samples, 0, o.batch, batch);
    Model model = trainer.model().clone();
    headlight::Run run(model, o.batch, batch.time, {.gradients = true});
    Buffer<float> gradients(model.weights().count());
    forward(model, batch, run);
    backward(model, batch, run, 1.0f / static_cast<float>(batch.target_count()),
             gradients.view<1>({gradients.count()}));
    double norm = 0;
    for (float g : gradients) norm += static_cast<double>(g) * static_cast<double>(g);
    norm = std::sqrt(norm);
    const double scale = clip > 0 ? clip / norm : 1;
    ASSERT_TRUE(clip == 0 || norm > clip);

    trainer.step();
    EXPECT_NEAR(trainer.last_step().gradient_norm, norm, 1e-5 * norm);  // parts are summed in another order
    const double rate = o.rate / static_cast<double>(o.warmup);
    for (const Parameter& p : model.parameters().all()) {
      for (int64_t i = p.offset; i < p.offset + p.count; ++i) {
        const double g = scale * static_cast<double>(gradients[i]);
        const double w = static_cast<double>(model.weights()(i));
        // the first step's moments are (1 - beta) g and (1 - beta) g^2, so the bias corrections cancel
        const double expected = w - rate * (g / (std::abs(g) + o.epsilon) + (p.decays ? o.decay * w : 0.0));
        // g / |g| turns where the gradient is rounding noise, so such weights may move either way by `rate`
        const double tolerance = std::abs(g) < 1e-6 * scale ? 2 * rate : 1e-6;
        ASSERT_NEAR(static_cast<double>(trainer.model().weights()(i)), expected, tolerance)
            << p.name << " element " << i - p.offset << ", gradient " << g << ", clip " << clip;
      }
    }
  }
}

TEST(TrainerStep, AccumulatesToTheGradientOfTheLargeBatch) {
  for (const int64_t parts : {2, 3, 6}) {
    TrainerOptions whole = small_run(1);
    whole.microbatches = 1;
    TrainerOptions cut = whole;
    cut.microbatches = parts;
    Trainer a(whole);
    Trainer b(cut);
    a.step();
    b.step();
    // the same sums of about 100 terms in another order, each with a relative error of 6e-8
    EXPECT_NEAR(b.last_step().gradient_norm, a.last_step().gradient_norm, 1e-5 * a.last_step().gradient_norm);
    EXPECT_NEAR(b.last_step().loss, a.last_step().loss, 1e-6);
    EXPECT_EQ(b.last_step().losses[1].second, a.last_step().losses[1].second) << parts << " parts: other data";
  }
}

TEST(TrainerStep, KeepsTheWeightsWhenTheLossIsNotFinite) {
  TrainerOptions options = small_run(50);
  options.rate = 1e30;
  options.warmup = 0;
  options.clip = 0;
  Trainer trainer(options);
  std::vector<float> before;
  expect_error(ErrorKind::kRuntime, {"step", "smaller learning rate"}, [&] {
    for (;;) {
      before = weights_of(trainer);
      ASSERT_TRUE(trainer.step());
    }
  });
  expect_same_bits(weights_of(trainer), before);
}

TEST(Trainer, StartsFromTheSeed) {
  TrainerOptions options = small_run();
  const std::vector<float> first = weights_of(Trainer(options));
  expect_same_bits(weights_of(Trainer(options)), first);
  options.seed = 6;
  EXPECT_NE(weights_of(Trainer(options)), first);
}

}  // namespace
}  // namespace headlight
