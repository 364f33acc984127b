#include "text/byte_tokens.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace headlight {
namespace {

constexpr int32_t kFirstStandIn = 0x100;

// Visible Latin-1 characters stand for their own byte.
bool stands_for_itself(int32_t code) {
  return (code >= '!' && code <= '~') || (code >= 0xA1 && code <= 0xAC) || (code >= 0xAE && code <= 0xFF);
}

struct ByteCharacters {
  std::array<std::string, 256> of_byte;
  std::array<int32_t, 0x180> byte_of;  // by code point, -1: none

  ByteCharacters() {
    byte_of.fill(-1);
    int32_t stand_in = kFirstStandIn;
    for (int32_t byte = 0; byte < 256; ++byte) {
      const int32_t code = stands_for_itself(byte) ? byte : stand_in++;
      append_character(of_byte[static_cast<std::size_t>(byte)], code);
      byte_of[static_cast<std::size_t>(code)] = byte;
    }
  }
};

const ByteCharacters& byte_characters() {
  static const ByteCharacters characters;
  return characters;
}

}  // namespace

std::string_view byte_character(unsigned char byte) { return byte_characters().of_byte[byte]; }

std::optional<std::string> bytes_of_characters(std::string_view spelling) {
  const auto& byte_of = byte_characters().byte_of;
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const Character character = character_at(spelling, at);
    const auto code = static_cast<std::size_t>(character.code);
    if (character.code == kBroken || code >= byte_of.size() || byte_of[code] < 0) return std::nullopt;
    bytes += static_cast<char>(static_cast<unsigned char>(byte_of[code]));
    at += character.size;
  }
  return bytes;
}

std::optional<unsigned char> byte_of_spelling(std::string_view spelling) {
  if (spelling.size() != 6 || spelling.substr(0, 3) != "<0x" || spelling[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (char c : spelling.substr(3, 2)) {
    const std::size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit);
  }
  return static_cast<unsigned char>(value);
}

std::array<int32_t, 256> byte_fallbacks(const Vocabulary& vocabulary) {
  std::array<int32_t, 256> ids{};
  for (std::size_t byte = 0; byte < 256; ++byte) ids[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
  return ids;
}

}  // namespace headlight
