#pragma once
// What an experiment measured, beside what the textbook or the claim says.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "console.h"

namespace headlight::cli {

struct Finding {
  std::string section;  // heading
  std::string what;
  std::vector<double> measured;
  std::vector<double> expected;
  // kEqual: |measured - expected| <= tolerance for each; kAtLeast, kAtMost: measured against expected
  enum class Relation { kEqual, kAtLeast, kAtMost } relation = Relation::kEqual;
  double tolerance = 0;
  int decimals = 6;

  bool holds() const;
};

class Findings {
 public:
  // Findings from here on stand under this heading.
  void section(std::string title) { section_ = std::move(title); }
  void equal(std::string what, std::vector<double> measured, std::vector<double> expected, double tolerance,
             int decimals = 6);
  void at_least(std::string what, double measured, double bound, int decimals = 2);
  void at_most(std::string what, double measured, double bound, int decimals = 2);

  bool all_hold() const;
  // A table with ok or DIFFERS in each line, and a closing line.
  std::string text(const Screen& screen) const;
  nlohmann::ordered_json json() const;

 private:
  void add(Finding finding);

  std::vector<Finding> all_;
  std::string section_;
};

}  // namespace headlight::cli
