#include "text/pattern.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "support/expect_error.h"
#include "text/pattern_table.h"
#include "text/pre_tokenizer.h"

namespace headlight {
namespace {

std::vector<std::string> found(const Pattern& pattern, const std::string& text) {
  std::vector<Match> matches;
  pattern.find(text, matches);
  std::vector<std::string> out;
  for (const Match& match : matches) out.push_back(text.substr(match.begin, match.end - match.begin));
  return out;
}

using Texts = std::vector<std::string>;

TEST(Pattern, CutsAsGpt2Does) {
  const Pattern pattern(kGpt2Pattern, "gpt-2");
  EXPECT_EQ(found(pattern, "I'll pay  12$!?\n\n x "),
            (Texts{"I", "'ll", " pay", " ", " 12", "$!?", "\n\n", " x", " "}));
  EXPECT_EQ(found(pattern, "d\xC3\xA9j\xC3\xA0\xE3\x80\x80vu"), (Texts{"d\xC3\xA9j\xC3\xA0", "\xE3\x80\x80", "vu"}));
}

TEST(Pattern, CutsAsLlama3AndQwen2Do) {
  EXPECT_EQ(found(Pattern(kLlama3Pattern, "l"), "I'LL 12345\r\n a"),
            (Texts{"I", "'LL", " ", "123", "45", "\r\n", " a"}));
  EXPECT_EQ(found(Pattern(kQwen2Pattern, "q"), "x12 (y)"), (Texts{"x", "1", "2", " (", "y", ")"}));
}

TEST(Pattern, TakesUnicodesWhiteSpace) {
  // the Mongolian vowel separator is none any more
  EXPECT_EQ(found(Pattern(R"(\s+)", "p"), "a \xE1\xA0\x8E\xC2\x85\xE2\x80\xA8"), (Texts{" ", "\xC2\x85\xE2\x80\xA8"}));
  EXPECT_EQ(found(Pattern(R"([\S]+)", "p"), "a \xE1\xA0\x8E\xC2\x85"), (Texts{"a", "\xE1\xA0\x8E"}));
  EXPECT_EQ(found(Pattern(R"([^\s]+)", "p"), "a \xE1\xA0\x8E\xC2\x85"), (Texts{"a", "\xE1\xA0\x8E"}));
  EXPECT_EQ(found(Pattern(R"(\S+)", "p"), "a \xE1\xA0\x8E\xC2\x85"), (Texts{"a", "\xE1\xA0\x8E"}));
}

TEST(Pattern, MatchesNothingInBrokenBytes) {
  EXPECT_EQ(found(Pattern(R"([^x]+)", "p"), "ab\xFF\xC3\xA9\xE2\x82z"), (Texts{"ab", "\xC3\xA9", "z"}));
  // they are an end of text to what is beside them
  EXPECT_EQ(found(Pattern(R"(\s+(?!\S))", "p"), "  \xFFz"), (Texts{"  "}));
}

TEST(Pattern, FindsEmptyMatchesOnceEach) {
  std::vector<Match> matches;
  Pattern("x*", "p").find("axxb", matches);
  ASSERT_EQ(matches.size(), 3u);
  EXPECT_EQ(matches[0].end, 0u);
  EXPECT_EQ(matches[1].begin, 1u);
  EXPECT_EQ(matches[1].end, 3u);
  EXPECT_EQ(matches[2].begin, 4u);
}

TEST(Pattern, TakesLiteralsAsTheyAre) {
  EXPECT_EQ(found(Pattern::literal(".*[a]\\E", "p"), "x.*[a]\\Ey.*"), (Texts{".*[a]\\E"}));
}

TEST(Pattern, RefusesWhatMeansSomethingElse) {
  for (const char* wrong :
       {"(", "[a", "a\\", R"(\bx)", R"(\h)", "[[:alpha:]]", "[a&&b]", R"([\W])", R"(\p{Nonsense})", "a**b("}) {
    expect_error(ErrorKind::kBadData, {"here", "pattern"}, [&] { Pattern(wrong, "here"); });
  }
  expect_error(ErrorKind::kBadData, {"UTF-8"}, [] { Pattern("\xFF", "here"); });
}

TEST(Pattern, SaysWhenATextNeedsTooManySteps) {
  const Pattern pattern(R"((x+x+)+[yz])", "here");
  std::vector<Match> matches;
  expect_error(ErrorKind::kRuntime, {"pattern", "byte 0"}, [&] { pattern.find(std::string(40, 'x'), matches); });
}

std::vector<std::string> pieces(SplitBehaviour behaviour, bool invert, const std::string& text) {
  Flow flow(text, 0, text.size(), false);
  pre_tokenize({Split{Pattern("-", "p"), behaviour, invert}}, flow);
  std::vector<std::string> out;
  for (const Piece& piece : flow.pieces) out.push_back(text.substr(piece.begin, piece.end - piece.begin));
  return out;
}

TEST(Split, CutsByEveryBehaviour) {
  const std::string text = "a--bc-";
  EXPECT_EQ(pieces(SplitBehaviour::kRemoved, false, text), (Texts{"a", "bc"}));
  EXPECT_EQ(pieces(SplitBehaviour::kRemoved, true, text), (Texts{"-", "-", "-"}));
  EXPECT_EQ(pieces(SplitBehaviour::kIsolated, false, text), (Texts{"a", "-", "-", "bc", "-"}));
  EXPECT_EQ(pieces(SplitBehaviour::kContiguous, false, text), (Texts{"a", "--", "bc", "-"}));
  EXPECT_EQ(pieces(SplitBehaviour::kMergedWithPrevious, false, text), (Texts{"a-", "-", "bc-"}));
  EXPECT_EQ(pieces(SplitBehaviour::kMergedWithNext, false, text), (Texts{"a", "-", "-bc", "-"}));
}

}  // namespace
}  // namespace headlight
