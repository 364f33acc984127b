#include "headlight/explain/formation.h"

#include <gtest/gtest.h>

#include <limits>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

TEST(Steepest, IsTheIntervalOfTheLargestChange) {
  const std::vector<int64_t> steps{0, 10, 20, 30, 40, 50};
  EXPECT_EQ(steepest(steps, {0, 0.1, 0.2, 0.7, 0.8, 1}, 0.2), (StepInterval{20, 30}));
  EXPECT_EQ(steepest(steps, {4, 4, 3.9, 0.3, 0.1, 0.1}, -0.5), (StepInterval{20, 30})) << "falling";
  EXPECT_EQ(steepest(steps, {0, kNothing, 0.2, kNothing, 0.8, 1}, 0.2), (StepInterval{20, 40})) << "not measured";
  EXPECT_EQ(steepest(steps, {0, 1, 1, 1, 1, 1}, 0.2), (StepInterval{0, 10}));
  EXPECT_EQ(steepest(steps, {0, 0, 0, 0, 0, 1}, 0.2), (StepInterval{40, 50}));
  EXPECT_EQ(steepest(steps, {0, 0, 0.5, 0.5, 1, 1}, 0.2), (StepInterval{10, 20})) << "the first of equal ones";
}

TEST(Steepest, IsNowhereWhenTheCurveStaysWhereItWas) {
  const std::vector<int64_t> steps{0, 10, 20};
  EXPECT_EQ(steepest(steps, {0, 0.5, 0.1}, 0.2), std::nullopt);
  EXPECT_EQ(steepest(steps, {1, 0.5, 0}, 0.2), std::nullopt) << "falls instead of rising";
  EXPECT_EQ(steepest(steps, {0, 0.5, 1}, -0.2), std::nullopt);
  EXPECT_EQ(steepest(steps, {1, 1, 1}, 0), std::nullopt);
  EXPECT_EQ(steepest(steps, {kNothing, kNothing, 1}, 0.2), std::nullopt);
  EXPECT_EQ(steepest({}, {}, 0.2), std::nullopt);
  EXPECT_THROW(steepest(steps, {1, 2}, 0.2), LogicError);
}

TrainingSeries loss(const std::string& name, const std::vector<double>& values) {
  return {.name = name, .unit = "nats", .values = values};
}
TrainingSeries score(HeadScore kind, HeadId head, const std::vector<double>& values) {
  return {.name = to_string(head), .score = kind, .head = head, .values = values};
}

TrainingLog formed_log() {
  return {.steps = {0, 400, 450, 500, 550},
          .series = {loss("first copy", {4.2, 4.1, 4.1, 4.1, 4.1}), loss("second copy", {4.2, 4.0, 0.9, 0.3, 0.2}),
                     score(HeadScore::kPrevious, {0, 0}, {0.05, 0.3, 0.5, 0.5, 0.6}),
                     score(HeadScore::kPrevious, {0, 1}, {0.05, 0.1, 0.1, 0.1, 0.1}),
                     score(HeadScore::kPrevious, {1, 0}, {0.05, 0.7, 0.7, 0.7, 0.9}),
                     score(HeadScore::kInduction, {0, 0}, {0.02, 0.02, 0.02, 0.02, 0.02}),
                     score(HeadScore::kInduction, {1, 0}, {0.02, 0.1, 0.6, 0.8, 0.6}),
                     score(HeadScore::kInduction, {1, 1}, {0.02, 0.1, 0.5, 0.8, 0.9})}};
}

TEST(FindFormation, NamesTheIntervalAndTheHeads) {
  const std::optional<Formation> formation = find_formation(formed_log());
  ASSERT_TRUE(formation);
  EXPECT_EQ(formation->heads, (StepInterval{400, 450}));
  EXPECT_EQ(formation->drop, (StepInterval{400, 450}));
  EXPECT_TRUE(formation->together);
  EXPECT_EQ(formation->induction, (std::vector<HeadId>{{1, 0}, {1, 1}}));
  EXPECT_EQ(formation->previous, (std::vector<HeadId>{{0, 0}})) << "of earlier blocks only";
  EXPECT_EQ(formation->text,
            "heads formed between steps 400 and 450: previous token in block 0, induction in block 1; the loss (second "
            "copy) fell most in the same interval");
}

TEST(FindFormation, SaysWhenTheLossDroppedElsewhere) {
  TrainingLog log = formed_log();
  log.series[1].values = {4.2, 4.0, 3.9, 0.3, 0.2};
  const std::optional<Formation> later = find_formation(log);
  EXPECT_FALSE(later->together);
  EXPECT_NE(later->text.find("fell most between steps 450 and 500"), std::string::npos) << later->text;
  log.series[1].values = {4.2, 4.0, 3.9, 3.9, 3.9};
  EXPECT_EQ(find_formation(log)->drop, std::nullopt);
  EXPECT_FALSE(find_formation(log)->together);
}

TEST(FindFormation, ComparesALossThatIsLoggedMoreOftenOnTheStepsOfTheScores) {
  TrainingLog log = formed_log();
  log.steps = {0, 400, 420, 450, 550};
  for (TrainingSeries& series : log.series) {
    if (series.score) series.values[2] = kNothing;
  }
  log.series[1].values = {4.2, 4.0, 1.9, kNothing, 0.2};
  const std::optional<Formation> formation = find_formation(log);
  EXPECT_EQ(formation->heads, (StepInterval{400, 450}));
  EXPECT_EQ(formation->drop, (StepInterval{400, 450})) << "from 4.0 to the 1.9 last logged before 450";
  EXPECT_TRUE(formation->together);
}

TEST(FindFormation, FindsNothingInAModelWithoutInductionHeads) {
  TrainingLog log = formed_log();
  log.series.resize(6);
  EXPECT_EQ(find_formation(log), std::nullopt);
  EXPECT_EQ(find_formation({}), std::nullopt);
}

TEST(FindFormation, RefusesALogThatDoesNotFit) {
  TrainingLog log = formed_log();
  log.steps[2] = 400;
  EXPECT_THROW(find_formation(log), LogicError);
  log = formed_log();
  log.series[0].values.pop_back();
  EXPECT_THROW(find_formation(log), LogicError);
}

TEST(NamedScores, AreReadBack) {
  HeadScores scores;
  scores.columns = {HeadScore::kPrevious, HeadScore::kInduction};
  scores.blocks = 2;
  scores.heads = 1;
  scores.values = {{0.1, 0, 1}, {0.2, 0, 1}, {0.3, 0, 1}, {0.4, 0, 1}};
  const auto named = named_scores(scores);
  ASSERT_EQ(named.size(), 4u);
  EXPECT_EQ(named[3].first, "1.0 induction");
  EXPECT_EQ(named[3].second, 0.4);
  const std::optional<ScoreName> name = parse_score_name(named[2].first);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->head, (HeadId{1, 0}));
  EXPECT_EQ(name->score, HeadScore::kPrevious);
  for (const char* other : {"", "loss", "1.0", "1.0 ", "1.0 loss", "x.0 induction", "1.0  induction"}) {
    EXPECT_FALSE(parse_score_name(other)) << other;
  }
}

}  // namespace
}  // namespace headlight
