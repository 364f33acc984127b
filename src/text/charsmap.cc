#include "text/charsmap.h"

#include <fmt/format.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

uint32_t read_u32(std::string_view bytes, std::size_t at) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

// the parts of one unit of the double array
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) == 1; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw Error(ErrorKind::kBadData, where, found, expected);
  };
  if (bytes.size() < 4) refuse(fmt::format("{} bytes", bytes.size()), "expected a size in 4 bytes first");
  const uint32_t size = read_u32(bytes, 0);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4) {
    refuse(fmt::format("a map of {} bytes", size), fmt::format("expected a multiple of 4 up to {}", bytes.size() - 4));
  }
  for (std::size_t at = 4; at < 4 + std::size_t{size}; at += 4) units_.push_back(read_u32(bytes, at));
  texts_ = bytes.substr(4 + std::size_t{size});
  if (texts_.empty() || texts_.back() != '\0') refuse("a last text without an end", "expected a zero byte");
}

std::optional<Charsmap::Entry> Charsmap::find(std::string_view text, bool first) const {
  std::optional<Entry> found;
  std::size_t at = offset_of(units_[0]);
  for (std::size_t size = 1; size <= text.size() && !(found && first); ++size) {
    const auto byte = static_cast<unsigned char>(text[size - 1]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) break;
    const bool ends = has_leaf(units_[at]);
    at ^= offset_of(units_[at]);
    if (!ends) continue;
    if (at >= units_.size() || value_of(units_[at]) >= texts_.size()) break;
    found = {size, std::string_view(texts_.data() + value_of(units_[at]))};
  }
  return found;
}

}  // namespace headlight
