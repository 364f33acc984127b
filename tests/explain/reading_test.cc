#include "headlight/explain/reading.h"

#include <gtest/gtest.h>

#include "explain/models.h"

namespace headlight {
namespace {

const std::vector<HeadScore> kColumns{HeadScore::kPrevious, HeadScore::kDuplicate, HeadScore::kInduction,
                                      HeadScore::kStart, HeadScore::kCurrent};

// One block; each head's five scores.
HeadScores scores_of(const std::vector<std::vector<double>>& heads) {
  HeadScores scores;
  scores.columns = kColumns;
  scores.blocks = 1;
  scores.heads = static_cast<int64_t>(heads.size());
  for (const auto& head : heads) {
    for (double mean : head) scores.values.push_back({mean, 0.01, 16});
  }
  return scores;
}

SweepResult effects_of(const std::vector<double>& changes, double spread = 0) {
  SweepResult result;
  result.sequences = 16;
  for (double change : changes) result.effects.push_back({.change = change, .spread = spread});
  return result;
}

TEST(ReadHeads, NamesByTheLargestScore) {
  const HeadScores scores = scores_of({{0.9, 0.1, 0.1, 0, 0},
                                       {0, 0.5, 0.3, 0, 0.1},
                                       {0, 0, 0.98, 0, 0},
                                       {0.1, 0, 0, 0.7, 0},
                                       {0.1, 0, 0, 0, 0.6},
                                       {0.3, 0, 0.25, 0, 0},
                                       {0.19, 0.1, 0.1, 0.1, 0.1}});
  const std::vector<HeadReading> readings = read_heads(scores, nullptr, nullptr);
  std::vector<std::string> words;
  for (const HeadReading& reading : readings) words.push_back(reading.reads_as);
  EXPECT_EQ(words, (std::vector<std::string>{"previous token", "duplicate token", "induction", "start", "current",
                                             "partly previous token", "mixed"}));
  EXPECT_EQ(readings[2].role, HeadScore::kInduction);
  EXPECT_EQ(readings[5].role, HeadScore::kPrevious);
  EXPECT_EQ(readings[6].role, std::nullopt);
  EXPECT_EQ(readings[6].head, (HeadId{0, 6}));
  for (const HeadReading& reading : readings) EXPECT_FALSE(reading.disagrees);
}

TEST(ReadHeads, AsksForMoreThanChance) {
  const HeadScores scores = scores_of({{0.5, 0, 0, 0, 0}, {0.5, 0, 0.45, 0, 0}});
  const HeadScores chance = scores_of({{0.2, 0.1, 0.1, 0.1, 0.1}, {0.2, 0.1, 0.1, 0.1, 0.1}});
  const std::vector<HeadReading> readings = read_heads(scores, &chance, nullptr);
  EXPECT_EQ(readings[0].reads_as, "mixed") << "0.5 is less than 4 x 0.2";
  EXPECT_EQ(readings[1].reads_as, "induction") << "0.45 is more than 4 x 0.1";
}

TEST(ReadHeads, MarksWhatTheAblationDoesNotBearOut) {
  const HeadScores scores = scores_of({{0.9, 0, 0, 0, 0},
                                       {0, 0, 0.9, 0, 0},
                                       {0, 0, 0.8, 0, 0},
                                       {0, 0, 0, 0.9, 0},
                                       {0.1, 0, 0, 0, 0},
                                       {0.1, 0, 0, 0, 0},
                                       {0.3, 0, 0, 0, 0}});
  const SweepResult alone = effects_of({0.01, 0.0, 0.9, 0, 0.8, 0.2, 0});
  const std::vector<HeadReading> readings = read_heads(scores, nullptr, &alone);
  const std::vector<std::pair<std::string, bool>> wanted{
      {"previous token; alone it is covered by 0.6", true},
      {"induction; alone it is covered by 0.2", true},
      {"induction", false},
      {"start", false},
      {"mixed; yet its removal raises the loss by 0.80 nats", true},
      {"mixed", false},
      {"partly previous token", false},
  };
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(readings[i].reads_as, wanted[i].first);
    EXPECT_EQ(readings[i].disagrees, wanted[i].second) << readings[i].reads_as;
  }
}

TEST(ReadHeads, MarksARemovalThatHelpsAndOneThatNobodyCovers) {
  const HeadScores scores = scores_of({{0.9, 0, 0, 0, 0}, {0, 0, 0.9, 0, 0}});
  const SweepResult alone = effects_of({0.0, -0.3});
  const std::vector<HeadReading> readings = read_heads(scores, nullptr, &alone);
  EXPECT_EQ(readings[0].reads_as, "previous token; alone its removal changes nothing");
  EXPECT_EQ(readings[1].reads_as, "induction; yet its removal lowers the loss by 0.30 nats");
  EXPECT_TRUE(readings[0].disagrees && readings[1].disagrees);
}

TEST(ReadHeads, TakesAChangeWithinTwoStandardErrorsForNone) {
  const HeadScores scores = scores_of({{0, 0, 0.9, 0, 0}});
  const SweepResult clear = effects_of({0.3}, 0.4);  // over 16 sequences: an error of 0.1
  const SweepResult unclear = effects_of({0.3}, 0.8);
  EXPECT_FALSE(read_heads(scores, nullptr, &clear)[0].disagrees);
  EXPECT_TRUE(read_heads(scores, nullptr, &unclear)[0].disagrees);
}

TEST(ReadHeads, NamesAFewOfManyThatCover) {
  const auto reading_of_first = [](std::size_t heads) {
    const SweepResult alone = effects_of(std::vector<double>(heads, 0.0));
    return read_heads(scores_of(std::vector<std::vector<double>>(heads, {0, 0, 0.9, 0, 0})), nullptr, &alone)[0]
        .reads_as;
  };
  EXPECT_EQ(reading_of_first(5), "induction; alone it is covered by 0.1, 0.2, 0.3, 0.4");
  EXPECT_EQ(reading_of_first(6), "induction; alone it is covered by 0.1, 0.2, 0.3 and 2 more");
}

TEST(ReadHeads, RefusesPartsThatDoNotFit) {
  const HeadScores scores = scores_of({{0, 0, 0.9, 0, 0}});
  const SweepResult two = effects_of({0, 0});
  EXPECT_THROW(read_heads(scores, nullptr, &two), LogicError);
  HeadScores chance = scores;
  chance.columns = {HeadScore::kStart};
  EXPECT_THROW(read_heads(scores, &chance, nullptr), LogicError);
}

TEST(ReadHeads, ReadsTheModelMadeByHand) {
  const Model model = CircuitModel::make();
  const RepeatedBatch repeated = CircuitModel::repeated();
  const HeadScores scores = head_scores(model, repeated);
  const HeadScores chance = untrained_scores(model.config(), repeated);
  const SweepResult alone = sweep(model, repeated.batch, each_head(model.config()), second_copy_loss(repeated));
  const std::vector<HeadReading> readings = read_heads(scores, &chance, &alone);
  EXPECT_EQ(readings[0].reads_as, "previous token");
  EXPECT_EQ(readings[1].reads_as, "mixed");
  EXPECT_EQ(readings[2].reads_as, "induction; alone it is covered by 1.1");
  EXPECT_EQ(readings[3].reads_as, "induction; alone it is covered by 1.0");
}

TEST(ReadingDefinition, StatesTheThresholds) {
  const std::string text = reading_definition({.clear = 0.45, .effect = 0.07});
  EXPECT_NE(text.find("0.45"), std::string::npos) << text;
  EXPECT_NE(text.find("0.07"), std::string::npos) << text;
}

}  // namespace
}  // namespace headlight
