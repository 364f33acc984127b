#include "headlight/explain/head_scores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "explain/models.h"
#include "headlight/base/thread_pool.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

// weights are fp32 and their sums double: a mean of weights is off by a rounding of a weight
constexpr double kRounding = 1e-6;

void expect_score(const HeadScores& scores, HeadId head, HeadScore score, double expected) {
  EXPECT_NEAR(scores.at(head, score).mean, expected, kRounding) << to_string(head) << ' ' << definition_of(score).id;
}

// (T, T) weights of one sequence and head, by definition from the whole pattern
std::vector<std::vector<double>> whole_pattern(const Model& model, const std::vector<int32_t>& tokens, HeadId head) {
  const Batch batch = make_batch({tokens});
  auto run = plan(model, batch, {.logits = false, .capture = {"blocks.*.attn.hook_pattern"}});
  forward(model, batch, run);
  const int64_t n = batch.time;
  Buffer<float> weights(n * n);
  pattern_rows<float>(model, batch, run, head.block, head.head, 0, weights.view<4>({1, 1, n, n}));
  std::vector<std::vector<double>> pattern;
  for (int64_t i = 0; i < n; ++i) pattern.emplace_back(weights.data() + i * n, weights.data() + (i + 1) * n);
  return pattern;
}

TEST(HeadScores, AreExactForHeadsMadeByHand) {
  const Model model = CircuitModel::make();
  const HeadScores scores = head_scores(model, CircuitModel::repeated());
  expect_score(scores, {0, 0}, HeadScore::kPrevious, 1);
  expect_score(scores, {0, 0}, HeadScore::kInduction, 0);
  expect_score(scores, {1, 0}, HeadScore::kInduction, 1);
  expect_score(scores, {1, 1}, HeadScore::kInduction, 1);
  expect_score(scores, {1, 0}, HeadScore::kDuplicate, 0);
  EXPECT_NEAR(scores.at({1, 0}, HeadScore::kInduction).spread, 0, kRounding);
  EXPECT_EQ(ranked(scores, HeadScore::kInduction), (std::vector<HeadId>{{1, 0}, {1, 1}, {0, 1}, {0, 0}}));
}

TEST(HeadScores, OfAUniformCausalHeadAreSumsOfReciprocals) {
  const Model model = uniform_model({.vocabulary = 12, .context = 21, .width = 8, .heads = 2});
  const RepeatedBatch repeated = repeat_random_tokens(model.config(), {.lengths = {8}, .start = 3, .sequences = 4});
  const HeadScores scores = head_scores(model, repeated);
  const int64_t n = 8;
  const int64_t time = 2 * n + 1;
  double all = 0;
  double second = 0;
  for (int64_t i = 0; i < time; ++i) all += 1.0 / static_cast<double>(i + 1);
  for (int64_t i = n + 1; i < time; ++i) second += 1.0 / static_cast<double>(i + 1);
  for (HeadId head : all_heads(model.config())) {
    expect_score(scores, head, HeadScore::kPrevious, (all - 1) / static_cast<double>(time - 1));  // rows 1, 2, ...
    expect_score(scores, head, HeadScore::kStart, all / static_cast<double>(time));
    expect_score(scores, head, HeadScore::kCurrent, all / static_cast<double>(time));
    expect_score(scores, head, HeadScore::kDuplicate, second / static_cast<double>(n));
    expect_score(scores, head, HeadScore::kInduction, second / static_cast<double>(n));
  }
}

TEST(HeadScores, OfAUniformBidirectionalHeadAreOneOverT) {
  const Model model = uniform_model({.vocabulary = 12, .context = 16, .width = 8, .heads = 2, .causal = false});
  const HeadScores scores = head_scores(model, repeat_random_tokens(model.config(), {.lengths = {8}, .sequences = 3}));
  for (HeadScore score : scores.columns) expect_score(scores, {1, 1}, score, 1.0 / 16);
}

TEST(TextScores, OfAUniformCausalHeadHaveTheEntropyOfTheirKeys) {
  const Model model = uniform_model({.vocabulary = 12, .context = 10, .width = 8, .heads = 2});
  const HeadScores scores = text_scores(model, make_batch({random_tokens(10, 12, 4)}), "one text");
  double entropy = 0;
  double distance = 0;
  for (int64_t i = 0; i < 10; ++i) {
    entropy += std::log(static_cast<double>(i + 1)) / 10;
    distance += static_cast<double>(i) / 2 / 10;
  }
  expect_score(scores, {0, 1}, HeadScore::kEntropy, entropy);
  expect_score(scores, {0, 1}, HeadScore::kDistance, distance);
  EXPECT_EQ(scores.condition, "one text");
}

TEST(HeadScores, EqualTheirDefinitionsOnTheWholePattern) {
  for (uint64_t seed : {1, 2, 3}) {
    // sequences longer than a block of rows, of two lengths
    const Model model = random_model({.vocabulary = 60, .context = 90, .width = 24, .heads = 3}, seed);
    const RepeatedBatch repeated =
        repeat_random_tokens(model.config(), {.lengths = {41, 30}, .start = 1, .sequences = 3, .seed = seed});
    const HeadScores scores = head_scores(model, repeated);
    const HeadId head{1, static_cast<int64_t>(seed) - 1};
    std::vector<double> previous, duplicate, induction, start, current;
    for (int64_t b = 0; b < 3; ++b) {
      const int32_t* const tokens = repeated.batch.tokens.data() + repeated.batch.row(b, 0);
      const auto p = whole_pattern(model, {tokens, tokens + repeated.batch.lengths[b]}, head);
      const std::size_t n = static_cast<std::size_t>(repeated.lengths[static_cast<std::size_t>(b)]);
      const std::size_t time = p.size();
      for (std::vector<double>* sum : {&previous, &duplicate, &induction, &start, &current}) sum->push_back(0);
      for (std::size_t i = 0; i < time; ++i) {
        if (i > 0) previous.back() += p[i][i - 1] / static_cast<double>(time - 1);
        start.back() += p[i][0] / static_cast<double>(time);
        current.back() += p[i][i] / static_cast<double>(time);
        if (i < n + 1) continue;
        duplicate.back() += p[i][i - n] / static_cast<double>(n);
        induction.back() += p[i][i - n + 1] / static_cast<double>(n);
      }
    }
    const auto expect = [&](HeadScore score, const std::vector<double>& values) {
      const Estimate wanted = estimate_of(values);
      EXPECT_NEAR(scores.at(head, score).mean, wanted.mean, 1e-12) << definition_of(score).id << " seed " << seed;
      EXPECT_NEAR(scores.at(head, score).spread, wanted.spread, 1e-12) << definition_of(score).id << " seed " << seed;
    };
    expect(HeadScore::kPrevious, previous);
    expect(HeadScore::kDuplicate, duplicate);
    expect(HeadScore::kInduction, induction);
    expect(HeadScore::kStart, start);
    expect(HeadScore::kCurrent, current);
    EXPECT_LT(scores.row_sum_error, 1e-5);
    EXPECT_EQ(scores.rows, 2 * 3 * (83 + 61 + 83));
  }
}

// Scores of a padded batch are the means over its sequences alone: the same bits.
TEST(TextScores, OfAPaddedBatchAreThoseOfItsSequences) {
  for (const Arrangement& arrangement : all_arrangements()) {
    const Model model = random_model(arrangement.config);
    const auto sequences = uneven_sequences(arrangement.config.vocabulary);  // 7, 1, 0 and 4 tokens
    for (PadSide side : {PadSide::kRight, PadSide::kLeft}) {
      const HeadScores together = text_scores(model, make_batch(sequences, side), "");
      EXPECT_LT(together.row_sum_error, 1e-5) << arrangement.name << ": rows of padding sum to 0 and do not count";
      for (HeadId head : all_heads(model.config())) {
        for (HeadScore score : together.columns) {
          std::vector<double> alone;
          for (const auto& sequence : sequences) {
            const bool has_row = sequence.size() > (score == HeadScore::kPrevious ? 1u : 0u);
            if (has_row) alone.push_back(text_scores(model, make_batch({sequence}), "").at(head, score).mean);
          }
          const Estimate wanted = estimate_of(alone);
          const Estimate& found = together.at(head, score);
          EXPECT_EQ(found.mean, wanted.mean) << arrangement.name << ' ' << to_string(head) << definition_of(score).id;
          EXPECT_EQ(found.spread, wanted.spread) << arrangement.name;
          EXPECT_EQ(found.count, score == HeadScore::kPrevious ? 2 : 3) << arrangement.name;
        }
      }
    }
  }
}

TEST(HeadScores, HaveTheSameBitsForAnyThreads) {
  const Model model = random_model({.vocabulary = 30, .context = 50, .width = 16});
  std::vector<double> first;
  for (int threads : {1, 2, 3}) {
    set_threads(threads);
    std::vector<double> values;
    for (const Estimate& estimate : head_scores(model, RepeatOptions{.sequences = 5}).values) {
      values.push_back(estimate.mean);
      values.push_back(estimate.spread);
    }
    if (first.empty()) first = values;
    EXPECT_EQ(values, first) << threads << " threads";
  }
  set_threads(2);
}

TEST(TextScores, OfALargeBatchAreThoseOfItsSequences) {
  // 64 heads x 64 rows x 5 scores, queries and keys of a sequence are 49,152 numbers: 341 sequences fill a part
  const Model model = random_model(
      {.vocabulary = 50, .context = 64, .width = 64, .blocks = 1, .heads = 64, .positions = Positions::kLearned});
  std::vector<std::vector<int32_t>> sequences;
  for (uint64_t b = 0; b < 345; ++b)
    sequences.push_back(random_tokens(b == 0 ? 64 : 2 + static_cast<int64_t>(b % 5), 50, b));
  const HeadScores together = text_scores(model, make_batch(sequences), "");
  std::vector<double> alone;
  for (const auto& sequence : sequences) {
    alone.push_back(text_scores(model, make_batch({sequence}), "").at({0, 63}, HeadScore::kEntropy).mean);
  }
  EXPECT_EQ(together.at({0, 63}, HeadScore::kEntropy).mean, estimate_of(alone).mean);
  EXPECT_EQ(together.at({0, 63}, HeadScore::kEntropy).spread, estimate_of(alone).spread);
}

TEST(UntrainedScores, AreNearUniformAndAlwaysTheSame) {
  const ModelConfig config = CircuitModel::config();
  const RepeatedBatch repeated = CircuitModel::repeated();
  const HeadScores untrained = untrained_scores(config, repeated);
  double uniform = 0;
  for (int64_t i = 1; i < 31; ++i) uniform += 1.0 / static_cast<double>(i + 1) / 30;
  EXPECT_NEAR(pooled(untrained, HeadScore::kPrevious).mean, uniform, 0.05) << "an untrained head is nearly uniform";
  EXPECT_EQ(pooled(untrained, HeadScore::kPrevious).mean,
            pooled(untrained_scores(config, repeated), HeadScore::kPrevious).mean);
  Model same_seed(config);
  initialise(same_seed, 0);
  EXPECT_NE(pooled(untrained, HeadScore::kPrevious).mean,
            pooled(head_scores(same_seed, repeated), HeadScore::kPrevious).mean)
      << "a model that trains from seed 0 is not its own baseline";
}

TEST(HeadScores, RefuseWhatIsNotThere) {
  const Model model = CircuitModel::make();
  RepeatedBatch repeated = CircuitModel::repeated(2);
  const HeadScores scores = head_scores(model, repeated);
  EXPECT_THROW(scores.at({2, 0}, HeadScore::kStart), LogicError);
  EXPECT_THROW(scores.at({0, 2}, HeadScore::kStart), LogicError);
  EXPECT_THROW(scores.at({0, 0}, HeadScore::kEntropy), LogicError);
  repeated.lengths[1] = 14;
  EXPECT_THROW(head_scores(model, repeated), LogicError);
}

TEST(ScoreDefinitions, NameEachScoreOnce) {
  const auto& definitions = score_definitions();
  for (std::size_t i = 0; i < definitions.size(); ++i) {
    EXPECT_EQ(&definition_of(definitions[i].score), &definitions[i]);
    EXPECT_FALSE(definitions[i].definition.empty() || definitions[i].denominator.empty()) << definitions[i].id;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(definitions[i].id, definitions[j].id);
  }
}

}  // namespace
}  // namespace headlight
