#pragma once
// Characters of text that may be broken.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headlight {

// Code points are 32-bit signed, so that one value can stand for bytes that are no character.
constexpr int32_t kBroken = -1;
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Character {
  int32_t code;      // kBroken: the bytes begin no character
  std::size_t size;  // bytes; of broken ones as many as Unicode's "maximal subpart", which others replace by one U+FFFD
};

// The character that begins at `at` < text.size().
Character character_at(std::string_view text, std::size_t at);

// Where the character before `at` > 0 begins; a broken byte counts as one.
std::size_t character_before(std::string_view text, std::size_t at);

// Bytes of the longest prefix of `text` from `at` on that is UTF-8.
std::size_t valid_length(std::string_view text, std::size_t at);

inline bool is_utf8(std::string_view text) { return valid_length(text, 0) == text.size(); }

// Appends the character; `code` is a Unicode scalar value.
void append_character(std::string& text, int32_t code);

}  // namespace headlight
