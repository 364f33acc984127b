#include "text/utf8.h"

#include <gtest/gtest.h>

namespace headlight {
namespace {

TEST(CharacterAt, ReadsBackEveryCharacter) {
  for (int32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_character(text, code);
    const Character character = character_at(text, 0);
    ASSERT_EQ(character.code, code);
    ASSERT_EQ(character.size, text.size()) << code;
    ASSERT_EQ(character_before(text, text.size()), 0u) << code;
    ASSERT_TRUE(is_utf8(text)) << code;
  }
}

TEST(CharacterAt, TakesBrokenBytesByMaximalSubparts) {
  // the examples of Unicode 15, tables 3-8 to 3-11, with the sizes that their U+FFFD stand for
  const std::pair<std::string, std::vector<std::size_t>> cases[] = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", {1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", {1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", {1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", {2, 1, 3, 2, 1}},
  };
  for (const auto& [text, sizes] : cases) {
    std::vector<std::size_t> found;
    for (std::size_t at = 0; at < text.size(); at += found.back()) found.push_back(character_at(text, at).size);
    EXPECT_EQ(found, sizes);
    EXPECT_FALSE(is_utf8(text));
  }
}

TEST(ValidLength, StopsAtTheFirstBrokenByte) {
  EXPECT_EQ(valid_length("ab\xC3\xA9\xFFz", 0), 4u);
  EXPECT_EQ(valid_length("ab\xC3\xA9\xFFz", 4), 0u);
  EXPECT_EQ(valid_length("ab\xC3\xA9\xFFz", 5), 1u);
  EXPECT_EQ(valid_length("ab\xC3", 0), 2u);
}

TEST(CharacterBefore, TakesABrokenByteAlone) {
  EXPECT_EQ(character_before("a\xC3\xA9", 3), 1u);
  EXPECT_EQ(character_before("a\xA9", 2), 1u);
  EXPECT_EQ(character_before("\xC3\xA9\xA9", 3), 2u);
}

}  // namespace
}  // namespace headlight
