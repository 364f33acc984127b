#include "utf8.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <array>
#include <cstdint>
#include <utility>

namespace headlight::cli {
namespace {

struct Decoded {
  char32_t point = 0;
  std::size_t length = 0;  // bytes; 0: not UTF-8
};

// One character by the table of well-formed byte sequences (Unicode 15, table 3-7).
Decoded decode(std::string_view s) {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : uint8_t{0}; };
  const uint8_t b = byte(0);
  if (b < 0x80) return {b, 1};
  const std::size_t length = b >= 0xC2 && b <= 0xDF ? 2 : b >= 0xE0 && b <= 0xEF ? 3 : b >= 0xF0 && b <= 0xF4 ? 4 : 0;
  if (length == 0) return {};
  char32_t point = b & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    point = (point << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
  return {point, length};
}

struct Span {
  char32_t first, last;
};

// control characters, and those that reorder text, hide, or leave no mark
constexpr std::array<Span, 19> kHidden{{
    {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       {0x034F, 0x034F}, {0x061C, 0x061C},
    {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F},   {0x200B, 0x200F}, {0x2028, 0x202E},
    {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFDD0, 0xFDEF},   {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF}, {0xE000, 0xF8FF},
}};

bool is_hidden(char32_t point) {
  if (point >= 0xF0000 || (point & 0xFFFE) == 0xFFFE) return true;  // private use and noncharacters
  for (const Span& span : kHidden) {
    if (point >= span.first && point <= span.last) return true;
  }
  return false;
}

std::string escaped(char32_t point) {
  switch (point) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      break;
  }
  const auto number = static_cast<uint32_t>(point);
  if (number < 0x100) return fmt::format("\\x{:02x}", number);
  return number < 0x10000 ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

// columns of one character by the C library's table
int width_of(char32_t point) {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
  if (point < 0x80 || utf8 == static_cast<locale_t>(nullptr)) return 1;
  const locale_t before = uselocale(utf8);
  const int width = wcwidth(static_cast<wchar_t>(point));
  uselocale(before);
  return width < 0 ? 1 : width;
}

// bytes of the colour sequence (CSI ... m) that `s` begins with, or 0
std::size_t colour_length(std::string_view s) {
  if (s.substr(0, 2) != "\x1b[") return 0;
  const std::size_t end = s.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

// Whether `s`, which is no whole character, may be the beginning of one.
bool may_become_whole(std::string_view s) {
  if (s.size() > 3) return false;
  for (uint8_t last : {uint8_t{0x80}, uint8_t{0x9F}, uint8_t{0xA0}, uint8_t{0xBF}}) {
    // whatever the second byte must be, one of these will do
    std::string whole(s);
    if (whole.size() == 1) whole += static_cast<char>(last);
    while (whole.size() <= 4) {
      if (decode(whole).length == whole.size()) return true;
      whole += '\x80';
    }
  }
  return false;
}

}  // namespace

std::string visible(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const Decoded c = decode(bytes);
    if (c.length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(bytes[0]));
    } else if (is_hidden(c.point)) {
      out += escaped(c.point);
    } else {
      out += bytes.substr(0, c.length);
    }
    bytes.remove_prefix(c.length == 0 ? 1 : c.length);
  }
  return out;
}

std::string VisibleStream::add(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  std::string_view left = held_;
  while (!left.empty()) {
    const Decoded c = decode(left);
    if (c.length == 0 && may_become_whole(left)) break;
    const std::size_t length = c.length == 0 ? 1 : c.length;
    out += left[0] == '\n' || left[0] == '\t' ? std::string(1, left[0]) : visible(left.substr(0, length));
    left.remove_prefix(length);
  }
  held_ = std::string(left);
  return out;
}

std::string VisibleStream::end() { return visible(std::exchange(held_, "")); }

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = decode(bytes).length;
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

int columns(std::string_view text) {
  int total = 0;
  while (!text.empty()) {
    const std::size_t colour = colour_length(text);
    if (colour > 0) {
      text.remove_prefix(colour);
      continue;
    }
    const Decoded c = decode(text);
    total += c.length == 0 ? 1 : width_of(c.point);
    text.remove_prefix(c.length == 0 ? 1 : c.length);
  }
  return total;
}

std::string cut(std::string_view text, int most) {
  std::string out;
  int total = 0;
  while (!text.empty()) {
    std::size_t length = colour_length(text);
    if (length == 0) {
      const Decoded c = decode(text);
      length = c.length == 0 ? 1 : c.length;
      total += c.length == 0 ? 1 : width_of(c.point);
      if (total > most) {
        total = most + 1;  // colour that follows is still taken, so that none stays on
        text.remove_prefix(length);
        continue;
      }
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  int used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const int length = columns(word);
    if (used > 0 && used + 1 + length > width) {
      lines.emplace_back();
      used = 0;
    }
    if (used > 0) lines.back() += ' ';
    lines.back() += word;
    used += length + (used > 0 ? 1 : 0);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace headlight::cli
