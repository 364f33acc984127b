#include "headlight/model/generate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

Model small_model() {
  ModelConfig config;
  config.vocabulary = 11;
  config.context = 8;
  config.width = 16;
  config.heads = 2;
  Model model(config);
  initialise(model, 3);
  return model;
}

template <std::size_t N>
View<const float, 1> view(const std::array<float, N>& logits) {
  return {logits.data(), {static_cast<int64_t>(N)}};
}

TEST(Sample, TakesTheMostLikelyAtTemperatureZeroAndTheLowerIdOfEquals) {
  RandomStream random(1, 0, 0);
  const std::array<float, 4> logits{0.5F, 2.0F, 2.0F, -1.0F};
  SampleOptions options;
  options.temperature = 0;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sample(view(logits), options, random), 1);
}

TEST(Sample, DrawsInProportionToTheSoftmaxOfScaledLogits) {
  const std::array<float, 4> logits{0.0F, 1.0F, -0.5F, 2.0F};
  SampleOptions options;
  options.temperature = 0.7;
  std::array<double, 4> wanted{};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) sum += wanted[i] = std::exp(double{logits[i]} / 0.7);
  std::array<int, 4> counts{};
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    RandomStream random(5, 0, static_cast<uint64_t>(i));
    ++counts[static_cast<std::size_t>(sample(view(logits), options, random))];
  }
  // five standard deviations of a binomial share
  for (std::size_t i = 0; i < 4; ++i) {
    const double p = wanted[i] / sum;
    EXPECT_NEAR(counts[i] / double{kDraws}, p, 5 * std::sqrt(p * (1 - p) / kDraws)) << "token " << i;
  }
}

TEST(Sample, KeepsToTheTopK) {
  const std::array<float, 5> logits{0.1F, 0.3F, 0.2F, 0.4F, 0.0F};
  SampleOptions options;
  options.top_k = 2;
  bool seen[5] = {};
  for (uint64_t i = 0; i < 200; ++i) {
    RandomStream random(5, 0, i);
    seen[sample(view(logits), options, random)] = true;
  }
  EXPECT_TRUE(seen[1] && seen[3]);
  EXPECT_FALSE(seen[0] || seen[2] || seen[4]);
}

TEST(Sample, KeepsToTheMostLikelyThatReachTopP) {
  // probabilities 0.5, 0.25, 0.15 and 0.1
  const std::array<float, 4> logits{std::log(0.15F), std::log(0.5F), std::log(0.1F), std::log(0.25F)};
  const auto seen = [&](double top_p, int64_t top_k) {
    SampleOptions options;
    options.top_p = top_p;
    options.top_k = top_k;
    std::array<bool, 4> out{};
    for (uint64_t i = 0; i < 400; ++i) {
      RandomStream random(5, 0, i);
      out[static_cast<std::size_t>(sample(view(logits), options, random))] = true;
    }
    return out;
  };
  using Seen = std::array<bool, 4>;
  EXPECT_EQ(seen(1, 0), (Seen{true, true, true, true}));
  EXPECT_EQ(seen(0.8, 0), (Seen{true, true, false, true}));
  EXPECT_EQ(seen(0.7, 0), (Seen{false, true, false, true}));
  EXPECT_EQ(seen(0.3, 0), (Seen{false, true, false, false}));
  // the share is that of what the top k left: 0.5 of 0.75
  EXPECT_EQ(seen(0.6, 2), (Seen{false, true, false, false}));
}

TEST(Sample, RefusesWhatIsNoDistribution) {
  RandomStream random(1, 0, 0);
  const std::array<float, 2> broken{0.0F, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(sample(view(broken), {}, random), LogicError);
  EXPECT_THROW(sample({nullptr, {0}}, {}, random), LogicError);
  const std::array<float, 2> fine{0.0F, 1.0F};
  SampleOptions negative;
  negative.temperature = -1;
  EXPECT_THROW(sample(view(fine), negative, random), LogicError);
  for (const double top_p : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    SampleOptions options;
    options.top_p = top_p;
    EXPECT_THROW(sample(view(fine), options, random), LogicError) << top_p;
  }
}

TEST(Generate, PicksWhatTheForwardPredictsAlsoBeyondTheContext) {
  const Model model = small_model();
  std::vector<int32_t> text{1, 2, 3};
  GenerateOptions options;
  options.tokens = 15;
  options.sample.temperature = 0;
  const std::vector<int32_t> tokens = generate(model, text, options);
  ASSERT_EQ(tokens.size(), 15U);
  for (int32_t token : tokens) {
    const std::size_t seen = std::min<std::size_t>(text.size(), 8);
    const Batch batch = make_batch({std::vector<int32_t>(text.end() - static_cast<std::ptrdiff_t>(seen), text.end())});
    headlight::Run run = plan(model, batch);
    forward(model, batch, run);
    const View<const float, 1> last = run.logits()[0][batch.time - 1];
    int32_t best = 0;
    for (int32_t v = 1; v < 11; ++v) best = last(v) > last(best) ? v : best;
    EXPECT_EQ(token, best) << "at position " << text.size();
    text.push_back(token);
  }
}

TEST(Generate, GivesTheSameTokensForTheSameSeedAndAnyThreads) {
  const Model model = small_model();
  GenerateOptions options;
  options.tokens = 40;
  options.seed = 9;
  set_threads(1);
  const std::vector<int32_t> alone = generate(model, {4}, options);
  set_threads(3);
  EXPECT_EQ(generate(model, {4}, options), alone);
  options.seed = 10;
  EXPECT_NE(generate(model, {4}, options), alone);
}

TEST(Generate, StopsWhenTheCallerHasEnough) {
  const Model model = small_model();
  GenerateOptions options;
  std::vector<int32_t> heard;
  options.on_token = [&](int32_t token) {
    heard.push_back(token);
    return heard.size() < 3;
  };
  EXPECT_EQ(generate(model, {4}, options), heard);
  EXPECT_EQ(heard.size(), 3U);
}

TEST(Generate, EndsBeforeTheEndToken) {
  const Model model = small_model();
  GenerateOptions options;
  options.tokens = 40;
  const std::vector<int32_t> all = generate(model, {4}, options);
  options.end = all[5];
  const auto first = std::find(all.begin(), all.end(), all[5]);
  EXPECT_EQ(generate(model, {4}, options), std::vector<int32_t>(all.begin(), first));
}

TEST(Generate, RefusesAnEmptyPromptAndABidirectionalModel) {
  const auto kind_of = [](const Model& model, const std::vector<int32_t>& prompt) {
    try {
      generate(model, prompt, {});
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kRuntime;
  };
  EXPECT_EQ(kind_of(small_model(), {}), ErrorKind::kUsage);
  EXPECT_EQ(kind_of(small_model(), {11}), ErrorKind::kBadData);
  ModelConfig config = small_model().config();
  config.causal = false;
  EXPECT_EQ(kind_of(Model(config), {1}), ErrorKind::kUsage);
}

TEST(PlannedBytes, AreThoseOfTheRunForEveryKindOfModel) {
  for (Positions positions :
       {Positions::kNone, Positions::kLearned, Positions::kSinusoidal, Positions::kRotary, Positions::kAlibi}) {
    for (bool gradients : {false, true}) {
      ModelConfig config = small_model().config();
      config.positions = positions;
      config.rotary_width = 0;
      RunOptions options;
      options.gradients = gradients;
      if (!gradients) options.capture = {"blocks.*.attn.hook_z"};
      const Model model(config);
      EXPECT_EQ(planned_bytes<float>(config, 3, 7, options), headlight::Run(model, 3, 7, options).bytes())
          << to_string(positions) << (gradients ? " with gradients" : "");
    }
  }
}

}  // namespace
}  // namespace headlight
