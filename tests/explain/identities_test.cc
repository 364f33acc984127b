#include "headlight/explain/identities.h"

#include <gtest/gtest.h>

#include <limits>

#include "explain/models.h"
#include "headlight/base/error.h"
#include "model/arrangements.h"
#include "model/run_state.h"
#include "support/expect_error.h"

namespace headlight {
namespace {

class EveryArrangementsIdentities : public testing::TestWithParam<Arrangement> {
 protected:
  Model model = random_model(GetParam().config);
  Batch batch = make_batch(uneven_sequences(GetParam().config.vocabulary), PadSide::kLeft);
  const bool has_blocks = GetParam().config.blocks > 0;

  headlight::Run run_with(const std::vector<Intervention>& interventions = {}) {
    auto run = plan(model, batch, {.capture = captures_for_checks(model), .interventions = interventions});
    forward(model, batch, run);
    return run;
  }

  // The first value of a slot in the first row of the batch that belongs to a sequence, to be changed.
  float& value_in(headlight::Run& run, const std::string& name, int64_t width) {
    const auto& slots = model.sites().slots();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].name == name) return run.state().at(static_cast<int>(i))[batch.row(0, 0) * width];
    }
    throw LogicError("test", "no slot " + name);
  }
};

TEST_P(EveryArrangementsIdentities, Hold) {
  const auto run = run_with();
  for (const Check& check :
       {check_row_sums(model, batch, run), check_head_writes(model, batch, run), check_residual(model, batch, run),
        check_logits(model, batch, run), check_attention(model, batch, run), check_batch(model, batch, run)}) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.error << ", bound " << check.bound;
    EXPECT_FALSE(check.definition.empty()) << check.name;
  }
  const std::vector<Check> all = check_identities(model, batch);
  EXPECT_EQ(all.size(), 6u);
  EXPECT_NO_THROW(demand(all));
}

TEST_P(EveryArrangementsIdentities, FailWhenARowOfWeightsDoesNotSumToOne) {
  if (!has_blocks) return;
  auto run = run_with();
  // (max, sum) of the first row of the last sequence
  const auto& slots = model.sites().slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name != "blocks.1.attn.statistics") continue;
    float* const statistics = run.state().at(static_cast<int>(i));
    const int64_t row = 3 * model.config().heads * batch.time + batch.begins[3];
    statistics[2 * row + 1] *= 1.0001f;
  }
  EXPECT_FALSE(check_row_sums(model, batch, run).passed);
}

TEST_P(EveryArrangementsIdentities, FailWhenAttnOutIsNotTheSumOfTheWrites) {
  if (!has_blocks) return;
  auto run = run_with();
  value_in(run, "blocks.1.hook_attn_out", model.config().width) += 1e-3f;
  EXPECT_FALSE(check_head_writes(model, batch, run).passed);
  auto other = run_with();
  value_in(other, "blocks.0.attn.hook_result", model.config().width * model.config().heads) += 1e-3f;
  EXPECT_FALSE(check_head_writes(model, batch, other).passed);
}

TEST_P(EveryArrangementsIdentities, FailWhenTheStreamIsNotTheSumOfItsParts) {
  if (!has_blocks) return;
  const auto run = run_with({{.site = "blocks.1.hook_resid_post",
                              .kind = InterventionKind::kAdd,
                              .position = 0,
                              .factor = 1e-3,
                              .values = std::make_shared<const std::vector<float>>(model.config().width, 1.0f)}});
  EXPECT_FALSE(check_residual(model, batch, run).passed);
}

TEST_P(EveryArrangementsIdentities, FailWhenALogitIsNotTheSumOfItsShares) {
  auto run = run_with();
  value_in(run, "logits", model.config().vocabulary) += 10;  // so that it is the most likely one
  EXPECT_FALSE(check_logits(model, batch, run).passed);
}

TEST_P(EveryArrangementsIdentities, FailWhenTheKernelIsOff) {
  if (!has_blocks) return;
  const auto z = run_with(
      {{.site = "blocks.0.attn.hook_z", .kind = InterventionKind::kScale, .head = 1, .position = 0, .factor = 1.001}});
  EXPECT_FALSE(check_attention(model, batch, z).passed);
}

TEST_P(EveryArrangementsIdentities, FailWhenASequenceDependsOnItsBatch) {
  if (!has_blocks) return;
  const auto run =
      run_with({{.site = "blocks.0.attn.hook_v", .kind = InterventionKind::kScale, .entry = 3, .factor = 1.00001}});
  const Check check = check_batch(model, batch, run);
  EXPECT_FALSE(check.passed);
  EXPECT_TRUE(check.same_bits);
  EXPECT_GT(check.error, 0);
}

TEST_P(EveryArrangementsIdentities, FailOnWeightsThatAreNotNumbers) {
  model.matrix("embed.W_E")(batch.tokens[batch.row(0, 0)], 0) = std::numeric_limits<float>::quiet_NaN();
  const auto run = run_with();
  EXPECT_FALSE(check_logits(model, batch, run).passed);
  EXPECT_FALSE(check_residual(model, batch, run).passed && has_blocks);
  if (!has_blocks) return;
  EXPECT_FALSE(check_row_sums(model, batch, run).passed);
  EXPECT_FALSE(check_head_writes(model, batch, run).passed);
  EXPECT_FALSE(check_attention(model, batch, run).passed);
}

INSTANTIATE_TEST_SUITE_P(All, EveryArrangementsIdentities, testing::ValuesIn(all_arrangements()),
                         [](const auto& chosen) { return chosen.param.name; });

TEST(CheckIdentities, HoldOnALongerModelWithLargeWeights) {
  for (uint64_t seed : {1, 2, 3}) {
    Model model = random_model({.vocabulary = 97, .context = 200, .width = 64, .blocks = 3, .heads = 4}, seed);
    const View<float, 1> weights = model.weights();
    for (int64_t i = 0; i < weights.count(); ++i) weights(i) *= 3;
    for (const Check& check :
         check_identities(model, make_batch({random_tokens(200, 97, seed), random_tokens(150, 97, 9)}))) {
      EXPECT_TRUE(check.passed) << check.name << ": " << check.error << ", bound " << check.bound << ", seed " << seed;
    }
  }
}

TEST(CheckIdentities, RefuseAnEmptyBatch) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  EXPECT_THROW(check_identities(model, make_batch(std::vector<std::vector<int32_t>>{{}})), LogicError);
}

TEST(CheckRowSums, ReadsWhatTheScoresMeasured) {
  HeadScores scores;
  scores.time = 100;
  scores.row_sum_error = 1e-7;
  EXPECT_TRUE(check_row_sums(scores).passed);
  scores.row_sum_error = 1e-4;
  EXPECT_FALSE(check_row_sums(scores).passed);
  scores.row_sum_error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check_row_sums(scores).passed);
}

TEST(Demand, NamesTheFirstCheckThatFailed) {
  const Check good{.name = "good", .passed = true};
  const Check bad{.name = "parts", .error = 3e-4, .bound = 2e-7};
  EXPECT_NO_THROW(demand({good}));
  expect_error(ErrorKind::kRuntime, {"parts", "3e-4", "2e-7"}, [&] { demand({good, bad}); });
  expect_error(ErrorKind::kRuntime, {"sweep", "same bits", "2e-1"},
               [] { demand({{.name = "sweep", .error = 0.2, .same_bits = true}}); });
}

TEST(Measured, SaysTheErrorOrTheSameBits) {
  EXPECT_EQ(measured({.error = 2.4e-7}), "2e-7");
  EXPECT_EQ(measured({.error = 0}), "0");
  EXPECT_EQ(measured({.error = 3e-12}), "3e-12");
  EXPECT_EQ(measured({.error = 20}), "2e+1");
  EXPECT_EQ(measured({.error = std::numeric_limits<double>::quiet_NaN()}), "nan");
  EXPECT_EQ(measured({.same_bits = true, .passed = true}), "same bits");
}

}  // namespace
}  // namespace headlight
