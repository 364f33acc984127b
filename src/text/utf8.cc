#include "text/utf8.h"

#include <algorithm>

namespace headlight {
namespace {

// How a character that begins with some byte goes on: Unicode 15, table 3-7.
struct Lead {
  std::size_t size;         // 0: no character begins so
  unsigned char low, high;  // what the second byte can be
  int32_t bits;             // of the code point, from the first byte
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0, byte};
  if (byte < 0xC2) return {0, 0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF, byte & 0x1F};
  if (byte == 0xE0) return {3, 0xA0, 0xBF, 0};
  if (byte == 0xED) return {3, 0x80, 0x9F, 0x0D};
  if (byte < 0xF0) return {3, 0x80, 0xBF, byte & 0x0F};
  if (byte == 0xF0) return {4, 0x90, 0xBF, 0};
  if (byte < 0xF4) return {4, 0x80, 0xBF, byte & 0x07};
  if (byte == 0xF4) return {4, 0x80, 0x8F, 4};
  return {0, 0, 0, 0};
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
  if (lead.size == 0) return {kBroken, 1};
  int32_t code = lead.bits;
  for (std::size_t i = 1; i < lead.size; ++i) {
    if (at + i >= text.size()) return {kBroken, i};
    const auto byte = static_cast<unsigned char>(text[at + i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xC0) == 0x80;
    if (!fits) return {kBroken, i};
    code = code << 6 | (byte & 0x3F);
  }
  return {code, lead.size};
}

std::size_t character_before(std::string_view text, std::size_t at) {
  const std::size_t longest = std::min<std::size_t>(4, at);
  for (std::size_t size = 1; size <= longest; ++size) {
    const Character character = character_at(text.substr(0, at), at - size);
    if (character.code != kBroken && character.size == size) return at - size;
  }
  return at - 1;
}

std::size_t valid_length(std::string_view text, std::size_t at) {
  const std::size_t begin = at;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Character character = character_at(text, at);
    if (character.code == kBroken) break;
    at += character.size;
  }
  return at - begin;
}

void append_character(std::string& text, int32_t code) {
  const auto put = [&](int32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace headlight
