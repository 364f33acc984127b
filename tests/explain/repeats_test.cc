#include "headlight/explain/repeats.h"

#include <gtest/gtest.h>

#include <set>

#include "support/expect_error.h"

namespace headlight {
namespace {

const ModelConfig kConfig{.vocabulary = 20, .context = 33};

std::vector<int32_t> sequence(const Batch& batch, int64_t b) {
  const int32_t* const first = batch.tokens.data() + batch.row(b, 0);
  return {first, first + batch.lengths[b]};
}

TEST(RepeatRandomTokens, RepeatsDistinctTokensAfterTheStart) {
  const RepeatedBatch repeated = repeat_random_tokens(kConfig, {.lengths = {7, 9}, .start = 19, .sequences = 5});
  EXPECT_EQ(repeated.lengths, (std::vector<int64_t>{7, 9, 7, 9, 7}));
  EXPECT_EQ(repeated.condition, "5 sequences [start] R R of 2 x 7 or 9 tokens, seed 7");
  for (int64_t b = 0; b < 5; ++b) {
    const std::vector<int32_t> tokens = sequence(repeated.batch, b);
    const std::size_t n = static_cast<std::size_t>(repeated.lengths[static_cast<std::size_t>(b)]);
    ASSERT_EQ(tokens.size(), 2 * n + 1);
    EXPECT_EQ(tokens[0], 19);
    EXPECT_EQ(repeated.second_copy(b), static_cast<int64_t>(n + 1));
    std::set<int32_t> distinct;
    for (std::size_t i = 1; i <= n; ++i) {
      EXPECT_EQ(tokens[i], tokens[i + n]) << "sequence " << b << " token " << i;
      EXPECT_NE(tokens[i], 19) << "the start token is not drawn";
      distinct.insert(tokens[i]);
    }
    EXPECT_EQ(distinct.size(), n);
  }
}

TEST(RepeatRandomTokens, DependsOnTheSeedAlone) {
  const auto tokens = [](uint64_t seed, int64_t sequences) {
    return sequence(repeat_random_tokens(kConfig, {.sequences = sequences, .seed = seed}).batch, 1);
  };
  EXPECT_EQ(tokens(1, 2), tokens(1, 8));
  EXPECT_NE(tokens(1, 2), tokens(2, 2));
}

TEST(RepeatRandomTokens, DrawsFromThePool) {
  const RepeatedBatch repeated =
      repeat_random_tokens(kConfig, {.lengths = {3}, .pool = {4, 8, 15, 16}, .sequences = 50});
  const std::set<int32_t> pool{4, 8, 15, 16};
  std::set<int32_t> drawn;
  for (int64_t b = 0; b < 50; ++b) {
    for (int32_t token : sequence(repeated.batch, b)) drawn.insert(token);
  }
  EXPECT_EQ(drawn, pool);
}

TEST(RepeatRandomTokens, TakesTheLongestThatFits) {
  EXPECT_EQ(repeat_random_tokens(kConfig, {}).lengths.front(), 16);                              // (33 - 0) / 2
  EXPECT_EQ(repeat_random_tokens(kConfig, {.pool = {1, 2, 3, 4, 5}}).lengths.front(), 5);        // the pool
  EXPECT_EQ(repeat_random_tokens({.vocabulary = 999, .context = 999}, {}).lengths.front(), 50);  // enough
}

TEST(RepeatRandomTokens, RefusesWhatDoesNotFit) {
  const auto refused = [](std::initializer_list<std::string> words, const RepeatOptions& options) {
    expect_error(ErrorKind::kUsage, words, [&] { repeat_random_tokens(kConfig, options); });
  };
  refused({"copies of 17 tokens", "2 to 16"}, {.lengths = {17}, .start = 0});
  refused({"copies of 1 tokens"}, {.lengths = {8, 1}});
  refused({"copies of 4 tokens", "3 tokens to draw from"}, {.lengths = {4}, .pool = {1, 2, 3}});
  refused({"token 20", "0 to 19"}, {.pool = {1, 20}});
  refused({"token 3 is there twice"}, {.pool = {3, 1, 3}});
  refused({"start token", "token -1"}, {.start = -1});
  refused({"at least 1"}, {.sequences = 0});
}

}  // namespace
}  // namespace headlight
