#include "numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace headlight::cli {
namespace {

constexpr std::array<const char*, 7> kThousands{"", "k", "M", "G", "T", "P", "E"};

// a number below 1000 and its power of 1000
std::string scaled(double n, const char* unit, int figures) {
  std::size_t power = 0;
  while (std::abs(n) >= 999.5 && power + 1 < kThousands.size()) {
    n /= 1000;
    ++power;
  }
  const int before_point = std::abs(n) >= 99.95 ? 3 : std::abs(n) >= 9.995 ? 2 : 1;
  const bool whole = power == 0 && n == std::floor(n);
  const std::string suffix = std::string(kThousands[power]) + unit;
  return fmt::format("{:.{}f}{}{}", n, whole ? 0 : std::max(0, figures - before_point), suffix.empty() ? "" : " ",
                     suffix);
}

}  // namespace

std::string grouped(int64_t n) {
  std::string digits = fmt::format("{}", n);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string rounded(double n, int figures) { return scaled(n, "", figures); }

std::string byte_size(double bytes) { return scaled(bytes, "B", 3); }

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string percent(double part, double whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

std::string signed_number(double x, int decimals) {
  const std::string text = fmt::format("{:+.{}f}", x, decimals);
  // no "-0.00"
  return text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos ? "+" + text.substr(1) : text;
}

}  // namespace headlight::cli
