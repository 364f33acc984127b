// Each model against its definition done slowly.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "text/bpe.h"
#include "text/merges.h"
#include "text/unigram.h"
#include "text/word_piece.h"

namespace headlight {
namespace {

std::vector<int32_t> ids_of(const PieceModel& model, const std::string& piece) {
  PieceTokens tokens;
  model.encoder()->encode(piece, tokens);
  std::vector<int32_t> ids;
  for (const PieceToken& token : tokens.tokens) ids.push_back(token.id);
  return ids;
}

// Letters and random longer tokens over few letters, so that many merges compete.
std::vector<std::string> random_tokens(std::mt19937& random, const std::string& letters, std::size_t count) {
  std::vector<std::string> tokens;
  for (char letter : letters) tokens.emplace_back(1, letter);
  while (tokens.size() < count) {
    const std::string token = tokens[random() % tokens.size()] + tokens[random() % tokens.size()];
    if (token.size() < 9 && std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  return tokens;
}

std::string random_word(std::mt19937& random, const std::string& letters, std::size_t longest) {
  std::string word;
  for (std::size_t size = 1 + random() % longest; word.size() < size;) word += letters[random() % letters.size()];
  return word;
}

// Merges the lowest rank, leftmost, until none is left.
std::vector<int32_t> merged_slowly(std::vector<int32_t> ids, const std::vector<MergeRule>& rules) {
  while (true) {
    const MergeRule* best = nullptr;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (const MergeRule& rule : rules) {
        if (rule.left != ids[i] || rule.right != ids[i + 1] || (best != nullptr && rule.rank >= best->rank)) continue;
        best = &rule;
        place = i;
      }
    }
    if (best == nullptr) return ids;
    ids[place] = best->merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(Bpe, MergesAsTheDefinitionSays) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::string letters = "abc";
    const Vocabulary vocabulary(random_tokens(random, letters, 30), "v");
    std::vector<float> scores;
    for (int32_t id = 0; id < vocabulary.size(); ++id) scores.push_back(static_cast<float>(random() % 12));
    const std::vector<MergeRule> rules = merge_rules_from_scores(vocabulary, scores, std::vector<bool>(30, true));
    const Bpe bpe(vocabulary, rules, {});
    const auto encoder = bpe.encoder();
    for (int i = 0; i < 200; ++i) {
      const std::string word = random_word(random, letters, 40);
      std::vector<int32_t> start;
      for (char c : word) start.push_back(vocabulary.find(std::string_view(&c, 1)));
      PieceTokens tokens;
      encoder->encode(word, tokens);
      std::vector<int32_t> ids;
      for (const PieceToken& token : tokens.tokens) ids.push_back(token.id);
      EXPECT_EQ(ids, merged_slowly(start, rules)) << word << ", round " << round;
    }
  }
}

TEST(Bpe, GivesTheSameWithAndWithoutMemoryOfWords) {
  const Vocabulary vocabulary({"a", "b", "ab", "aba"}, "v");
  const Bpe bpe(vocabulary, merge_rules(vocabulary, {{"a", "b"}, {"ab", "a"}}, "m"), {});
  const auto encoder = bpe.encoder();
  PieceTokens first;
  encoder->encode("abab", first);
  for (int i = 0; i < 200; ++i) {
    PieceTokens again;
    encoder->encode("abab", again);
    ASSERT_EQ(again.tokens.size(), 2u);
    for (std::size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(again.tokens[t].id, first.tokens[t].id);
      EXPECT_EQ(again.tokens[t].begin, first.tokens[t].begin);
      EXPECT_EQ(again.tokens[t].end, first.tokens[t].end);
    }
  }
}

TEST(Bpe, KeepsWordsApartThatShareAPlaceInMemory) {
  std::mt19937 random(4);
  const Vocabulary vocabulary(random_tokens(random, "ab", 12), "v");
  std::vector<float> scores;
  for (int32_t id = 0; id < vocabulary.size(); ++id) scores.push_back(static_cast<float>(-id));
  const Bpe bpe(vocabulary, merge_rules_from_scores(vocabulary, scores, std::vector<bool>(12, true)), {});
  const auto encoder = bpe.encoder();
  for (int i = 0; i < 30000; ++i) {
    const std::string word = random_word(random, "ab", 25);
    PieceTokens tokens;
    encoder->encode(word, tokens);
    std::vector<int32_t> ids;
    for (const PieceToken& token : tokens.tokens) ids.push_back(token.id);
    ASSERT_EQ(ids, ids_of(bpe, word)) << word << ", word " << i;
  }
}

TEST(Bpe, FallsBackToBytesThenToTheUnknownToken) {
  std::vector<std::string> tokens{"?", "a"};
  const Vocabulary few(tokens, "v");
  EXPECT_EQ(ids_of(Bpe(few, {}, {.byte_fallback = true, .unknown = 0}), "a\xC3\xA9z"), (std::vector<int32_t>{1, 0, 0}));
  EXPECT_EQ(ids_of(Bpe(few, {}, {.unknown = 0, .fuse_unknown = true}), "\xC3\xA9za"), (std::vector<int32_t>{0, 1}));
  tokens.insert(tokens.end(), {"<0xC3>", "<0xA9>", "<0xFF>"});
  const Vocabulary more(tokens, "v");
  EXPECT_EQ(ids_of(Bpe(more, {}, {.byte_fallback = true, .unknown = 0}), "\xC3\xA9\xFFz"),
            (std::vector<int32_t>{2, 3, 4, 0}));
  PieceTokens left;
  Bpe(few, {}, {}).encoder()->encode("az\xFF", left);
  ASSERT_EQ(left.unspelled.size(), 2u);
  EXPECT_EQ(left.unspelled[1].begin, 2u);
}

TEST(WordPiece, TakesTheLongestFirstOrNothing) {
  const Vocabulary vocabulary({"?", "un", "##aff", "##able", "unaf", "##a", "##f"}, "v");
  const WordPiece model(vocabulary, {.longest = 12});
  EXPECT_EQ(ids_of(model, "unaffable"), (std::vector<int32_t>{4, 6, 3}));
  EXPECT_EQ(ids_of(model, "unaffablex"), (std::vector<int32_t>{0}));
  EXPECT_EQ(ids_of(model, "un" + std::string(10, 'a')), (std::vector<int32_t>{1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(ids_of(model, "un" + std::string(11, 'a')), (std::vector<int32_t>{0}));
}

// The best total of all ways to cut the word.
double best_slowly(const Vocabulary& vocabulary, const std::vector<double>& scores, const std::string& word,
                   double unknown) {
  std::function<double(std::size_t)> best = [&](std::size_t at) {
    if (at == word.size()) return 0.0;
    double total = -INFINITY;
    for (std::size_t size = 1; at + size <= word.size(); ++size) {
      const int32_t id = vocabulary.find(word.substr(at, size));
      if (id >= 0) total = std::max(total, scores[static_cast<std::size_t>(id)] + best(at + size));
    }
    if (vocabulary.find(word.substr(at, 1)) < 0) total = std::max(total, unknown + best(at + 1));
    return total;
  };
  return best(0);
}

TEST(Unigram, FindsTheBestOfAllWays) {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    const Vocabulary vocabulary(random_tokens(random, "abc", 20), "v");
    UnigramOptions options;
    options.usable.assign(20, true);
    for (int i = 0; i < 20; ++i) options.scores.push_back(-static_cast<double>(random() % 1000) / 100);
    const double unknown = *std::min_element(options.scores.begin(), options.scores.end()) - 10;
    const Unigram model(vocabulary, options);
    for (int i = 0; i < 100; ++i) {
      const std::string word = random_word(random, "abcx", 12);
      PieceTokens tokens;
      model.encoder()->encode(word, tokens);
      double total = 0;
      for (const PieceToken& token : tokens.tokens) total += options.scores[static_cast<std::size_t>(token.id)];
      for (const Unspelled& part : tokens.unspelled) total += unknown * static_cast<double>(part.end - part.begin);
      EXPECT_NEAR(total, best_slowly(vocabulary, options.scores, word, unknown), 1e-9)
          << word;  // sums in another order
    }
  }
}

TEST(Unigram, TakesAnUnknownCharacterForTenLessThanTheLeastLikelyToken) {
  const auto cut = [](double score) {
    const Vocabulary vocabulary({"ab", "c", "bc", "?"}, "v");
    const UnigramOptions options{.scores = {score, score, -1, -1}, .usable = {true, true, true, false}, .unknown = 3};
    return ids_of(Unigram(vocabulary, options), "abc");
  };
  EXPECT_EQ(cut(-10), (std::vector<int32_t>{0, 1}));  // ab c: -20; ? bc: -10 - 10 - 1
  EXPECT_EQ(cut(-12), (std::vector<int32_t>{3, 2}));  // ab c: -24; ? bc: -12 - 10 - 1
}

TEST(Unigram, GivesOneUnknownTokenOrBytesForNeighbours) {
  std::vector<std::string> tokens{"?", "a"};
  const auto model_of = [](const Vocabulary& vocabulary, bool bytes) {
    UnigramOptions options;
    options.scores.assign(static_cast<std::size_t>(vocabulary.size()), -1);
    options.usable.assign(options.scores.size(), true);
    options.unknown = 0;
    options.byte_fallback = bytes;
    return Unigram(vocabulary, options);
  };
  const Vocabulary few(tokens, "v");
  EXPECT_EQ(ids_of(model_of(few, false), "a\xC3\xA9za"), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(ids_of(model_of(few, true), "a\xC3\xA9za"), (std::vector<int32_t>{1, 0, 1}));
  tokens.insert(tokens.end(), {"<0xC3>", "<0xA9>"});
  const Vocabulary more(tokens, "v");
  EXPECT_EQ(ids_of(model_of(more, true),
                   "a\xC3\xA9"
                   "a"),
            (std::vector<int32_t>{1, 2, 3, 1}));
}

TEST(Trie, KnowsItsStringsAndNoOthers) {
  const Trie trie({{"ab", 1}, {"a", 0}, {"abc", 2}, {"b\xFF", 3}, {"", 9}, {"ab", 4}});
  const auto value_of = [&](const std::string& text) {
    int32_t node = Trie::kRoot;
    for (char c : text) {
      node = trie.next(node, static_cast<unsigned char>(c));
      if (node < 0) return -2;
    }
    return trie.value(node);
  };
  EXPECT_EQ(value_of("a"), 0);
  EXPECT_EQ(value_of("ab"), 4);
  EXPECT_EQ(value_of("abc"), 2);
  EXPECT_EQ(value_of("b"), -1);
  EXPECT_EQ(value_of("b\xFF"), 3);
  EXPECT_EQ(value_of("c"), -2);
  EXPECT_EQ(value_of(""), -1);
}

}  // namespace
}  // namespace headlight
