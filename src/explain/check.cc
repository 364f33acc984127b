#include "headlight/explain/check.h"

#include <fmt/format.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

// "2e-7"
std::string short_figure(double value) {
  std::string text = fmt::format("{:.0e}", value);
  const std::size_t exponent = text.find('e');
  if (value == 0) return "0";
  if (exponent == std::string::npos) return text;
  std::size_t zero = exponent + 2;
  while (zero + 1 < text.size() && text[zero] == '0') text.erase(zero, 1);
  return text;
}

}  // namespace

std::string measured(const Check& check) {
  if (!check.same_bits) return short_figure(check.error);
  return check.passed ? "same bits" : "differs by " + short_figure(check.error);
}

void demand(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    if (check.passed) continue;
    throw Error(ErrorKind::kRuntime, "check failed: " + check.name, measured(check),
                check.same_bits ? "expected the same bits" : "expected at most " + short_figure(check.bound));
  }
}

}  // namespace headlight
