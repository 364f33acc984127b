#include "headlight/model/run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headlight/base/thread_pool.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

std::vector<float> logits_of(const Model& model, const Batch& batch, const RunOptions& options, int64_t entry) {
  auto run = plan(model, batch, options);
  forward<float>(model, batch, run);
  std::vector<float> out;
  for (int64_t i = 0; i < batch.lengths[entry]; ++i) {
    for (int64_t v = 0; v < model.config().vocabulary; ++v) {
      out.push_back(run.logits()(entry, batch.begins[entry] + i, v));
    }
  }
  return out;
}

Model random_model(const ModelConfig& config, uint64_t seed = 3) {
  Model model(config);
  initialise(model, seed);
  return model;
}

class EveryArrangement : public testing::TestWithParam<Arrangement> {
 protected:
  Model model = random_model(GetParam().config);
  std::vector<std::vector<int32_t>> sequences = uneven_sequences(GetParam().config.vocabulary);
};

TEST_P(EveryArrangement, GivesASequenceTheSameBitsAloneAndPaddedOnEitherSideForAnyThreads) {
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    set_threads(1);
    const std::vector<float> alone = logits_of(model, make_batch({sequences[s]}), {}, 0);
    for (int threads : {1, 2, 3}) {
      set_threads(threads);
      for (PadSide side : {PadSide::kRight, PadSide::kLeft}) {
        EXPECT_EQ(logits_of(model, make_batch(sequences, side), {}, static_cast<int64_t>(s)), alone)
            << "sequence " << s << ", " << threads << " threads";
      }
    }
  }
  set_threads(2);
}

TEST_P(EveryArrangement, GivesTheSameBitsWhateverIsCaptured) {
  const Batch batch = make_batch(sequences);
  const std::vector<float> plain = logits_of(model, batch, {}, 0);
  EXPECT_EQ(logits_of(model, batch, {.capture = {"*"}}, 0), plain);
  EXPECT_EQ(logits_of(model, batch, {.gradients = true}, 0), plain);
  for (const std::string& name : model.sites().names()) {
    EXPECT_EQ(logits_of(model, batch, {.capture = {name}}, 0), plain) << name;
  }
}

TEST_P(EveryArrangement, KeepsInACaptureWhatAnEmptyInterventionSees) {
  const Batch batch = make_batch(sequences);
  const std::vector<float> plain = logits_of(model, batch, {}, 3);
  for (const std::string& name : model.sites().names()) {
    const Slot& slot = model.sites()[model.sites().find(name)];
    if (!slot.changeable) continue;
    // scaling by 1 changes no bit; zeroing a value that reaches the logits does
    const Intervention same{.site = name, .kind = InterventionKind::kScale, .factor = 1};
    EXPECT_EQ(logits_of(model, batch, {.interventions = {same}}, 3), plain) << name;
    const Intervention zero{.site = name};
    EXPECT_NE(logits_of(model, batch, {.interventions = {zero}}, 3), plain) << name;
  }
}

TEST_P(EveryArrangement, ContinuesFromAPrefixWithTheBitsOfTheWholeForward) {
  const Batch batch = make_batch(sequences, PadSide::kLeft);
  auto clean = plan(model, batch, {.capture = {"*hook_resid_p*"}});
  forward<float>(model, batch, clean);
  for (int64_t block = 1; block < model.config().blocks; ++block) {
    const std::string site = "blocks." + std::to_string(block) + ".attn.hook_z";
    const RunOptions options{.interventions = {{.site = site, .head = 1}}};
    auto whole = plan(model, batch, options);
    forward<float>(model, batch, whole);
    auto part = plan(model, batch, options);
    forward<float>(model, batch, part, {.first_block = block, .prefix = &clean});
    for (int64_t i = 0; i < whole.logits().count(); ++i) {
      ASSERT_EQ(part.logits().data[i], whole.logits().data[i]) << "block " << block << " logit " << i;
    }
  }
}

TEST_P(EveryArrangement, ContinuesFromAPrefixSeveralTimesSideBySide) {
  const Batch batch = make_batch(sequences);
  std::vector<std::vector<int32_t>> twice = sequences;
  twice.insert(twice.end(), sequences.begin(), sequences.end());
  const Batch both = make_batch(twice);
  auto clean = plan(model, batch, {.capture = {"*"}});
  forward<float>(model, batch, clean);
  for (int64_t block = 1; block < model.config().blocks; ++block) {
    auto run = plan(model, both);
    forward<float>(model, both, run, {.first_block = block, .prefix = &clean});
    const int64_t count = clean.logits().count();
    for (int64_t i = 0; i < 2 * count; ++i) {
      ASSERT_EQ(run.logits().data[i], clean.logits().data[i % count]) << "block " << block << " logit " << i;
    }
    auto one_more = make_batch({sequences[0], sequences[0], sequences[0], sequences[0], sequences[0]});
    auto unlike = plan(model, one_more);
    EXPECT_THROW((forward<float>(model, one_more, unlike, {.first_block = block, .prefix = &clean})), LogicError);
  }
}

TEST_P(EveryArrangement, GivesTheLogitsOfChosenRowsWithTheirBits) {
  const Batch batch = make_batch(sequences, PadSide::kLeft);
  auto whole = plan(model, batch);
  forward<float>(model, batch, whole);
  auto run = plan(model, batch, {.logits = false});
  const int64_t vocabulary = model.config().vocabulary;
  Buffer<float> logits(3 * vocabulary);
  const View<float, 2> view = logits.view<2>({3, vocabulary});
  EXPECT_THROW(logits_of_rows<float>(model, run, {0, 1, 2}, view), LogicError) << "nothing has run";
  forward<float>(model, batch, run);
  const std::vector<int64_t> rows{6, 2, 27};
  logits_of_rows<float>(model, run, rows, view);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (int64_t v = 0; v < vocabulary; ++v) {
      const int64_t row = static_cast<int64_t>(i);
      ASSERT_EQ(view(row, v), whole.logits().data[rows[i] * vocabulary + v]) << "row " << rows[i] << " token " << v;
    }
  }
  EXPECT_THROW(logits_of_rows<float>(model, run, {0, 1, 28}, view), LogicError);
  EXPECT_THROW(logits_of_rows<float>(model, run, {0, 1}, view), LogicError);
}

TEST_P(EveryArrangement, RecomputesPatternRowsThatSumToOne) {
  const Batch batch = make_batch(sequences, PadSide::kLeft);
  auto run = plan(model, batch, {.capture = {"blocks.*"}});
  if (model.config().blocks == 0) return;
  forward<float>(model, batch, run);
  const int64_t heads = model.config().heads;
  Buffer<float> weights(batch.size * heads * batch.time * batch.time);
  const View<float, 4> view = weights.view<4>({batch.size, heads, batch.time, batch.time});
  pattern_rows<float>(model, batch, run, 1, 0, 0, view);
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < batch.time; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < batch.time; ++j) sum += static_cast<double>(view(b, h, i, j));
        const bool is_token = i >= batch.begins[b] && i < batch.begins[b] + batch.lengths[b];
        EXPECT_NEAR(sum, is_token ? 1 : 0, 1e-6) << b << ' ' << h << ' ' << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Model, EveryArrangement, testing::ValuesIn([] {
                           // a model without blocks has no sites in a block
                           std::vector<Arrangement> list = all_arrangements();
                           list.pop_back();
                           return list;
                         }()),
                         [](const auto& param_info) { return param_info.param.name; });

const ModelConfig kSmall{.vocabulary = 11, .context = 8, .width = 12, .blocks = 2, .heads = 3};

TEST(Interventions, ZeroOneHeadAndNothingElse) {
  const Model model = random_model(kSmall);
  const Batch batch = make_batch({random_tokens(7, 11, 1), random_tokens(5, 11, 2)}, PadSide::kLeft);
  auto clean = plan(model, batch, {.capture = {"blocks.0.attn.hook_z"}});
  forward<float>(model, batch, clean);
  auto changed = plan(model, batch,
                      {.capture = {"blocks.0.attn.hook_z"},
                       .interventions = {{.site = "blocks.0.attn.hook_z", .head = 1, .position = 2, .entry = 1}}});
  forward<float>(model, batch, changed);
  const View<const float, 4> before = clean.site("blocks.0.attn.hook_z");
  const View<const float, 4> after = changed.site("blocks.0.attn.hook_z");
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = batch.begins[b]; t < 7; ++t) {
      for (int64_t h = 0; h < 3; ++h) {
        for (int64_t c = 0; c < 4; ++c) {
          const bool zeroed = b == 1 && t == batch.begins[1] + 2 && h == 1;
          EXPECT_EQ(after(b, t, h, c), zeroed ? 0.0f : before(b, t, h, c)) << b << ' ' << t << ' ' << h << ' ' << c;
        }
      }
    }
  }
}

TEST(Interventions, ReplaceByValuesOfEachPosition) {
  const Model model = random_model(kSmall);
  const Batch batch = make_batch({random_tokens(3, 11, 1), random_tokens(2, 11, 2)}, PadSide::kLeft);
  auto values = std::make_shared<std::vector<float>>();
  for (int i = 0; i < 3 * 4; ++i) values->push_back(static_cast<float>(i));
  auto run = plan(model, batch,
                  {.capture = {"blocks.1.attn.hook_z"},
                   .interventions = {{.site = "blocks.1.attn.hook_z",
                                      .kind = InterventionKind::kReplace,
                                      .head = 2,
                                      .values = values,
                                      .values_time = 3}}});
  forward<float>(model, batch, run);
  const View<const float, 4> z = run.site("blocks.1.attn.hook_z");
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(z(b, batch.begins[b] + i, 2, c), static_cast<float>(i * 4 + c));
    }
  }
}

TEST(Interventions, AreRefusedWhenTheyDoNotFit) {
  const Model model = random_model(kSmall);
  const Batch batch = make_batch({random_tokens(3, 11, 1)});
  const auto values = std::make_shared<std::vector<float>>(5);
  const std::vector<Intervention> wrong = {
      {.site = "blocks.2.attn.hook_z"},
      {.site = "blocks.0.attn.hook_y"},
      {.site = "blocks.0.attn.hook_z", .head = 3},
      {.site = "blocks.0.hook_resid_pre", .head = 0},
      {.site = "blocks.0.attn.hook_pattern"},
      {.site = "blocks.0.attn.hook_result"},
      {.site = "ln_final.hook_scale"},
      {.site = "blocks.0.attn.hook_z", .kind = InterventionKind::kReplace},
      {.site = "blocks.0.attn.hook_z", .kind = InterventionKind::kReplace, .head = 0, .values = values},
  };
  for (const Intervention& x : wrong) {
    EXPECT_THROW(plan(model, batch, {.interventions = {x}}), LogicError) << to_string(x);
  }
}

TEST(Capture, NamesTheClosestSiteWhenThereIsNoSuchSite) {
  const Model model = random_model(kSmall);
  const Batch batch = make_batch({random_tokens(3, 11, 1)});
  try {
    plan(model, batch, {.capture = {"blocks.0.attn.hok_z"}});
    FAIL() << "expected an error";
  } catch (const LogicError& error) {
    EXPECT_NE(std::string(error.what()).find("blocks.0.attn.hook_z"), std::string::npos) << error.what();
  }
  EXPECT_THROW(plan(model, batch, {.capture = {"blocks.*.hook_nothing"}}), LogicError);
}

TEST(Capture, RefusesToReadWhatWasNotKept) {
  const Model model = random_model(kSmall);
  const Batch batch = make_batch({random_tokens(3, 11, 1)});
  auto run = plan(model, batch, {.capture = {"blocks.0.attn.hook_z"}});
  EXPECT_THROW(run.site("blocks.0.attn.hook_z"), LogicError) << "before the forward";
  forward<float>(model, batch, run);
  EXPECT_NO_THROW(run.site("blocks.0.attn.hook_z"));
  EXPECT_THROW(run.site("blocks.1.attn.hook_z"), LogicError);
  EXPECT_THROW((View<const float, 3>(run.site("blocks.0.attn.hook_z"))), LogicError) << "of another rank";
}

TEST(Forward, RefusesTokensOutsideTheVocabularyAndSequencesBeyondTheContext) {
  const Model model = random_model(kSmall);
  const Batch batch = make_batch({{0, 11, 1}});
  auto run = plan(model, batch);
  try {
    forward<float>(model, batch, run);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadData);
    EXPECT_NE(std::string(error.what()).find("11"), std::string::npos) << error.what();
  }
  EXPECT_THROW(plan(model, make_batch({random_tokens(9, 11, 1)})), Error);
}

TEST(Forward, AcceptsASmallerBatchThanPlanned) {
  const Model model = random_model(kSmall);
  const Batch small = make_batch({random_tokens(5, 11, 4)});
  const std::vector<float> expected = logits_of(model, small, {}, 0);
  BasicRun<float> run(model, 3, 8);
  forward<float>(model, make_batch({random_tokens(8, 11, 1), random_tokens(8, 11, 2), random_tokens(8, 11, 3)}), run);
  forward<float>(model, small, run);
  for (int64_t i = 0; i < run.logits().count(); ++i)
    EXPECT_EQ(run.logits().data[i], expected[static_cast<std::size_t>(i)]);
}

TEST(Backward, RefusesARunWithoutGradientsOrWithoutAForward) {
  const Model model = random_model(kSmall);
  const Batch batch = make_batch({random_tokens(3, 11, 1)});
  Buffer<float> gradients(model.weights().count());
  auto plain = plan(model, batch);
  EXPECT_THROW(backward<float>(model, batch, plain, 1, gradients.view<1>({gradients.count()})), LogicError);
  auto run = plan(model, batch, {.gradients = true});
  EXPECT_THROW(backward<float>(model, batch, run, 1, gradients.view<1>({gradients.count()})), LogicError);
  EXPECT_THROW(run.set_interventions({{.site = "blocks.0.attn.hook_z"}}), LogicError);
}

}  // namespace
}  // namespace headlight
