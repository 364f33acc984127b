#include "headlight/text/tokenizer.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

TEST(ByteTokenizer, GivesBackEveryByte) {
  std::string text;
  for (int i = 0; i < 512; ++i) text += static_cast<char>(i);
  const std::shared_ptr<const Tokenizer> tokenizer = byte_tokenizer();
  const std::vector<int32_t> ids = tokenizer->encode(text);
  ASSERT_EQ(ids.size(), text.size());
  EXPECT_EQ(ids[200], 200);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ(tokenizer->token_text(0), std::string(1, '\0'));
  EXPECT_EQ(tokenizer->vocabulary(), 256);
  EXPECT_FALSE(tokenizer->start_token().has_value());
}

TEST(SymbolTokenizer, ReadsAndWritesNamesBetweenBlanks) {
  const auto tokenizer = symbol_tokenizer({"t0", "t1", "t2", "[start]"}, 3);
  EXPECT_EQ(tokenizer->encode("  [start] t1\n\tt2 t1 "), (std::vector<int32_t>{3, 1, 2, 1}));
  EXPECT_TRUE(tokenizer->encode(" \n").empty());
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{3, 1, 2}), "[start] t1 t2");
  EXPECT_EQ(tokenizer->start_token(), 3);
}

TEST(SymbolTokenizer, NamesTheWordThatIsNoToken) {
  const auto tokenizer = symbol_tokenizer({"t0", "t1"}, std::nullopt);
  expect_error(ErrorKind::kUsage, {"\"t9\"", "t0 to t1"}, [&] { tokenizer->encode("t0 t9"); });
}

TEST(SymbolTokenizer, RefusesNamesThatTextCouldNotSpell) {
  EXPECT_THROW(symbol_tokenizer({}, std::nullopt), LogicError);
  EXPECT_THROW(symbol_tokenizer({"a", ""}, std::nullopt), LogicError);
  EXPECT_THROW(symbol_tokenizer({"a", "b c"}, std::nullopt), LogicError);
  EXPECT_THROW(symbol_tokenizer({"a", "b", "a"}, std::nullopt), LogicError);
  EXPECT_THROW(symbol_tokenizer({"a", "b"}, 2), LogicError);
  EXPECT_THROW(symbol_tokenizer({"a", "b"}, -1), LogicError);
}

TEST(PieceTokenizer, CutsTheLongestPieceFirstAndGivesBackTheText) {
  const auto tokenizer = piece_tokenizer({"a", "ab", "abc", " a", " ", "\n", "b"});
  EXPECT_EQ(tokenizer->encode("abcab a b\n"), (std::vector<int32_t>{2, 1, 3, 4, 6, 5}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("abcab a b\n")), "abcab a b\n");
  EXPECT_EQ(tokenizer->token_text(3), " a");
  EXPECT_EQ(tokenizer->vocabulary(), 7);
  EXPECT_FALSE(tokenizer->start_token().has_value());
  EXPECT_TRUE(tokenizer->encode("").empty());
  expect_error(ErrorKind::kUsage, {"byte 2", "\"xyz\""}, [&] { tokenizer->encode("abxyz"); });
}

TEST(PieceTokenizer, RefusesPiecesThatAreNone) {
  EXPECT_THROW(piece_tokenizer({}), LogicError);
  EXPECT_THROW(piece_tokenizer({"a", ""}), LogicError);
  EXPECT_THROW(piece_tokenizer({"a", "a"}), LogicError);
}

TEST(Decode, RefusesIdsOutsideTheVocabulary) {
  for (const auto& tokenizer : {byte_tokenizer(), symbol_tokenizer({"a", "b"}, 0)}) {
    for (const int64_t id : {int64_t{-1}, tokenizer->vocabulary()}) {
      EXPECT_THROW(tokenizer->token_text(static_cast<int32_t>(id)), LogicError) << tokenizer->kind() << " " << id;
    }
  }
}

TEST(SaveTokenizer, IsReadBackTheSame) {
  TempFolder folder;
  for (const auto& tokenizer : {byte_tokenizer(), symbol_tokenizer({"x", "\"é\"", "[start]"}, 2),
                                symbol_tokenizer({"x", "y"}, std::nullopt), piece_tokenizer({" x", "\n"})}) {
    save_tokenizer(*tokenizer, folder / "run");
    const auto loaded = load_tokenizer(folder / "run");
    EXPECT_EQ(loaded->to_json(), tokenizer->to_json());
    EXPECT_EQ(loaded->vocabulary(), tokenizer->vocabulary());
    EXPECT_EQ(loaded->start_token(), tokenizer->start_token());
  }
}

TEST(TokenizerFromJson, NamesWhatIsWrong) {
  const auto refuse = [](const std::string& json, std::initializer_list<std::string> words) {
    expect_error(ErrorKind::kBadData, words, [&] { tokenizer_from_json(json, "a/tokenizer.json"); });
  };
  refuse("", {"a/tokenizer.json"});
  refuse("[]", {"a/tokenizer.json", "object"});
  refuse("{}", {"kind", "missing"});
  refuse(R"({"kind": "morse"})", {"kind", "morse", "symbols"});
  refuse(R"({"kind": "bytes", "tokens": ["a"]})", {"tokens", "unknown"});
  refuse(R"({"kind": "symbols"})", {"tokens", "missing"});
  refuse(R"({"kind": "symbols", "tokens": "a"})", {"tokens", "list"});
  refuse(R"({"kind": "symbols", "tokens": ["a", 3]})", {"tokens", "3"});
  refuse(R"({"kind": "symbols", "tokens": ["a", "a"]})", {"tokens", "0 and 1"});
  refuse(R"({"kind": "symbols", "tokens": ["a"], "start": "b"})", {"start", "\"b\""});
}

TEST(LoadTokenizer, SaysWhenTheFileIsMissing) {
  TempFolder folder;
  expect_error(ErrorKind::kMissingInput, {"tokenizer.json"}, [&] { load_tokenizer(folder.path()); });
}

TEST(PaddedTokenizer, HasIdsToSpareThatStandForNoText) {
  const auto inner = symbol_tokenizer({"[start]", "a", "b"}, 0);
  const auto padded = padded_tokenizer(inner, 8);
  EXPECT_EQ(padded->vocabulary(), 8);
  EXPECT_EQ(padded->encode("a b", {.framed = true, .spans = true}).ids,
            inner->encode("a b", {.framed = true, .spans = true}).ids);
  EXPECT_EQ(padded->start_token(), inner->start_token());
  EXPECT_EQ(padded->decode(std::vector<int32_t>{1, 7, 2}), inner->decode(std::vector<int32_t>{1, 2}));
  EXPECT_EQ(padded->token_text(5), "");
  EXPECT_TRUE(padded->is_special(3));
  EXPECT_FALSE(padded->is_special(1));
  EXPECT_THROW(padded->token_text(8), LogicError);
  EXPECT_THROW(padded_tokenizer(inner, 2), LogicError);
  EXPECT_EQ(padded_tokenizer(inner, 3), inner);
}

}  // namespace
}  // namespace headlight
