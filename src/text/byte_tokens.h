#pragma once
// The two ways in which tokens spell single bytes: byte-level models write each byte as a visible character of its
// own (a blank is U+0120), others keep tokens "<0x00>" to "<0xFF>" for what they have no token for.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace headlight {

// The character that stands for a byte in byte-level vocabularies, as UTF-8.
std::string_view byte_character(unsigned char byte);
// The bytes that a byte-level token stands for; nothing when it holds a character that stands for no byte.
std::optional<std::string> bytes_of_characters(std::string_view spelling);

// The byte of a token spelled "<0xAB>"; nothing for others.
std::optional<unsigned char> byte_of_spelling(std::string_view spelling);
// Ids of "<0x00>" to "<0xFF>", -1 where missing.
std::array<int32_t, 256> byte_fallbacks(const Vocabulary& vocabulary);

}  // namespace headlight
