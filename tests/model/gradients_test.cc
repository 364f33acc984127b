#include <gtest/gtest.h>

#include <cmath>

#include "headlight/base/thread_pool.h"
#include "headlight/model/run.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

double loss_of(const BasicModel<double>& model, const Batch& batch, double scale) {
  BasicRun<double> run = plan(model, batch);
  forward<double>(model, batch, run);
  Buffer<double> loss(batch.size * batch.time);
  return scale * token_losses<double>(batch, run, loss.view<2>({batch.size, batch.time}));
}

Buffer<double> gradients_of(const BasicModel<double>& model, const Batch& batch, double scale, double* loss) {
  BasicRun<double> run = plan(model, batch, {.gradients = true});
  forward<double>(model, batch, run);
  Buffer<double> gradients(model.weights().count());
  *loss = scale * backward<double>(model, batch, run, scale, gradients.view<1>({gradients.count()}));
  return gradients;
}

class Gradients : public testing::TestWithParam<Arrangement> {};

TEST_P(Gradients, OfEveryParameterMatchFiniteDifferences) {
  const ModelConfig& config = GetParam().config;
  BasicModel<double> model(config);
  initialise(model, 5);
  // biases and norms away from their special values
  for (int64_t i = 0; i < model.weights().count(); ++i) model.weights()(i) += 0.01 * std::sin(static_cast<double>(i));
  const PadSide side = config.blocks % 2 == 0 ? PadSide::kLeft : PadSide::kRight;
  const Batch batch = make_batch(uneven_sequences(config.vocabulary), side);
  const double scale = 1.0 / static_cast<double>(batch.target_count());
  double loss = 0;
  const Buffer<double> gradients = gradients_of(model, batch, scale, &loss);
  EXPECT_NEAR(loss, loss_of(model, batch, scale), 1e-14 * std::abs(loss));
  for (const Parameter& p : model.parameters().all()) {
    // a few elements of each parameter, spread over it
    for (int64_t i = 0; i < p.count; i += std::max<int64_t>(1, p.count / 7)) {
      double& w = model.weights()(p.offset + i);
      const double kept = w;
      const double step = 1e-5;
      w = kept + step;
      const double above = loss_of(model, batch, scale);
      w = kept - step;
      const double below = loss_of(model, batch, scale);
      w = kept;
      const double expected = (above - below) / (2 * step);
      // the central difference is good to about step^2 and to rounding 1e-16 / step
      EXPECT_NEAR(gradients[p.offset + i], expected, 1e-6 * std::abs(expected) + 2e-9)
          << p.name << " element " << i << " of " << p.count;
    }
  }
}

TEST_P(Gradients, AreTheSameBitsForAnyNumberOfThreads) {
  const ModelConfig& config = GetParam().config;
  Model model(config);
  initialise(model, 6);
  const Batch batch = make_batch(uneven_sequences(config.vocabulary));
  Buffer<float> first;
  for (int threads : {1, 2, 3}) {
    set_threads(threads);
    auto run = plan(model, batch, {.gradients = true});
    forward<float>(model, batch, run);
    Buffer<float> gradients(model.weights().count());
    backward<float>(model, batch, run, 0.25f, gradients.view<1>({gradients.count()}));
    if (threads == 1) first = gradients.clone();
    for (int64_t i = 0; i < first.count(); ++i) ASSERT_EQ(gradients[i], first[i]) << "element " << i;
  }
  set_threads(2);
}

INSTANTIATE_TEST_SUITE_P(Model, Gradients, testing::ValuesIn(all_arrangements()),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace headlight
