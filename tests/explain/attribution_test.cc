#include "headlight/explain/attribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "explain/models.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

// rounding of a share is far below this for values of order 1
constexpr double kClose = 1e-5;

std::vector<LogitPlace> places_of(const Batch& batch, int64_t vocabulary) {
  std::vector<LogitPlace> places;
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      places.push_back({b, i, static_cast<int32_t>((3 * b + 5 * i) % vocabulary)});
    }
  }
  return places;
}

std::vector<std::string> both_captures(const Model& model) {
  std::vector<std::string> captures = captures_for_attribution(model, {.heads = true});
  for (const std::string& name : captures_for_attribution(model)) captures.push_back(name);
  return captures;
}

TEST(DirectAttribution, SharesSumToTheLogitInWholeAndInHeads) {
  for (const Arrangement& arrangement : all_arrangements()) {
    if (!has_direct_logits(arrangement.config)) continue;
    const Model model = random_model(arrangement.config);
    const Batch batch = make_batch(uneven_sequences(11), PadSide::kLeft);
    auto run = plan(model, batch, {.capture = both_captures(model)});
    forward(model, batch, run);
    const std::vector<LogitPlace> places = places_of(batch, 11);
    const Attribution whole = direct_attribution(model, batch, run, places);
    const Attribution parts = direct_attribution(model, batch, run, places, {.heads = true});
    for (const Attribution* a : {&whole, &parts}) {
      const std::size_t n = a->components.size();
      ASSERT_EQ(a->shares.size(), places.size() * n);
      for (std::size_t p = 0; p < places.size(); ++p) {
        double sum = 0;
        for (std::size_t c = 0; c < n; ++c) sum += a->shares[p * n + c];
        EXPECT_NEAR(sum, a->logits[p], kClose) << arrangement.name << " place " << p;
      }
    }
    // the parts of an attention layer are the layer
    for (std::size_t p = 0; p < places.size() && arrangement.config.blocks > 0; ++p) {
      const auto share = [&](const Attribution& a, const std::string& prefix) {
        double sum = 0;
        for (std::size_t c = 0; c < a.components.size(); ++c) {
          if (a.components[c].rfind(prefix, 0) == 0) sum += a.shares[p * a.components.size() + c];
        }
        return sum;
      };
      EXPECT_NEAR(share(parts, "blocks.1.head") + share(parts, "blocks.1.attn.b_O"), share(whole, "blocks.1.attn"),
                  kClose)
          << arrangement.name;
    }
  }
}

TEST(DirectAttribution, SaysWhichHeadRaisedALogit) {
  const Model model = CircuitModel::make();
  const RepeatedBatch repeated = CircuitModel::repeated(1);
  auto run = plan(model, repeated.batch, {.capture = captures_for_attribution(model, {.heads = true})});
  forward(model, repeated.batch, run);
  const int64_t position = repeated.second_copy(0) + 3;
  const int32_t next = repeated.batch.tokens[repeated.batch.row(0, position + 1)];
  const Attribution a = direct_attribution(model, repeated.batch, run, {{0, position, next}}, {.heads = true});
  EXPECT_EQ(a.components, (std::vector<std::string>{"embed", "positions", "blocks.0.head.0", "blocks.0.head.1",
                                                    "blocks.1.head.0", "blocks.1.head.1", "bias"}));
  const std::vector<double> wanted{0, 0, 0, 0, CircuitModel::kStrength, CircuitModel::kStrength, 0};
  for (std::size_t c = 0; c < wanted.size(); ++c) EXPECT_NEAR(a.shares[c], wanted[c], kClose) << a.components[c];
}

TEST(DirectAttribution, RefusesWhatIsOutside) {
  const Model model = CircuitModel::make();
  const Batch batch = make_batch({{1, 2, 3}, {4}});
  auto run = plan(model, batch, {.capture = captures_for_attribution(model)});
  forward(model, batch, run);
  for (const LogitPlace& place : {LogitPlace{2, 0, 0}, {1, 1, 0}, {0, -1, 0}, {0, 0, 16}, {-1, 0, 0}}) {
    EXPECT_THROW(direct_attribution(model, batch, run, {place}), LogicError);
  }
  EXPECT_THROW(direct_attribution(model, batch, run, {{0, 0, 0}}, {.heads = true}), LogicError) << "not captured";
  const Model post =
      random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3, .norm_placement = NormPlacement::kPost});
  auto other = plan(post, batch);
  EXPECT_FALSE(has_direct_logits(post.config()));
  EXPECT_THROW(direct_attribution(post, batch, other, {}), LogicError);
}

// What each head raises, by definition: its write at each position through the final norm, times W_U, averaged.
std::vector<double> raised_on_average(const Model& model, const Batch& batch, HeadId head) {
  const ModelConfig& c = model.config();
  std::vector<std::string> capture{"blocks.*.attn.hook_result"};
  const bool has_norm = c.norm != NormKind::kNone;
  if (has_norm) capture.push_back("ln_final.hook_scale");
  auto run = plan(model, batch, {.capture = capture});
  forward(model, batch, run);
  const View<const float, 4> result = run.site("blocks." + std::to_string(head.block) + ".attn.hook_result");
  std::vector<double> raised(static_cast<std::size_t>(c.vocabulary), 0);
  double rows = 0;
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      const int64_t t = batch.begins[b] + i;
      double mean = 0;
      for (int64_t d = 0; d < c.width; ++d)
        mean += static_cast<double>(result(b, t, head.head, d)) / static_cast<double>(c.width);
      for (int64_t v = 0; v < c.vocabulary; ++v) {
        for (int64_t d = 0; d < c.width; ++d) {
          double x = static_cast<double>(result(b, t, head.head, d));
          if (c.norm == NormKind::kLayerNorm) x -= mean;
          if (has_norm) {
            x *= static_cast<double>(model.vector("ln_final.w")(d)) /
                 static_cast<double>(View<const float, 2>(run.site("ln_final.hook_scale"))(b, t));
          }
          raised[static_cast<std::size_t>(v)] += x * static_cast<double>(model.unembedding()(d, v));
        }
      }
      rows += 1;
    }
  }
  double mean = 0;
  for (double& value : raised) {
    value /= rows;
    mean += value / static_cast<double>(c.vocabulary);
  }
  for (double& value : raised) value -= mean;
  return raised;
}

TEST(TopWrites, AreTheTokensWhoseLogitsAHeadRaisesMost) {
  for (const Arrangement& arrangement : all_arrangements()) {
    const Model model = random_model(arrangement.config);
    const Batch batch = make_batch(uneven_sequences(11));
    const auto writes = top_writes(model, batch, 4);
    const std::vector<HeadId> heads = all_heads(model.config());
    ASSERT_EQ(writes.size(), heads.size()) << arrangement.name;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      if (!has_direct_logits(arrangement.config)) {
        EXPECT_TRUE(writes[h].empty()) << arrangement.name;
        continue;
      }
      const std::vector<double> raised = raised_on_average(model, batch, heads[h]);
      std::vector<double> sorted = raised;
      std::sort(sorted.rbegin(), sorted.rend());
      ASSERT_EQ(writes[h].size(), 4u);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(static_cast<double>(writes[h][i].value), sorted[i], kClose) << arrangement.name;
        EXPECT_NEAR(raised[static_cast<std::size_t>(writes[h][i].token)], sorted[i], kClose) << arrangement.name;
      }
    }
  }
}

TEST(TopWrites, GiveAtMostTheVocabularyAndTheLowerTokenOfATie) {
  const Model model = CircuitModel::make();
  const auto writes = top_writes(model, CircuitModel::repeated(1).batch, 99);
  ASSERT_EQ(writes[1].size(), 16u);
  for (int32_t v = 0; v < 16; ++v) EXPECT_EQ(writes[1][static_cast<std::size_t>(v)].token, v) << "0.1 writes nothing";
}

}  // namespace
}  // namespace headlight
