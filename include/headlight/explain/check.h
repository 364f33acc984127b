#pragma once
// An identity that a result must satisfy, with what was measured.

#include <string>
#include <vector>

namespace headlight {

struct Check {
  std::string name{};        // "rows sum to 1"
  std::string definition{};  // what is compared and what the figures are relative to
  double error = 0;          // largest deviation found; NaN when something was not a number
  double bound = 0;          // largest one allowed
  bool same_bits = false;    // the two sides must have the same bits; then the bound is 0
  bool passed = false;
};

// "2e-07", or "same bits"
std::string measured(const Check& check);

// Throws Error (runtime) naming the first identity that failed, what was found and allowed.
void demand(const std::vector<Check>& checks);

}  // namespace headlight
