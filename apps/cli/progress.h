#pragma once
// How far a long piece of work is, in one line that is redrawn on a terminal; nothing elsewhere.

#include <chrono>
#include <cstdint>
#include <string>

#include "console.h"

namespace headlight::cli {

// "[========>            ]"
std::string bar(int64_t done, int64_t total, int width);

class ProgressLine {
 public:
  ProgressLine(Console& console, std::string what) : console_(console), what_(std::move(what)) {}
  ~ProgressLine() { console_.clear_line(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Redrawn at most ten times a second, and at the end. `details` stand behind the bar. Without `seconds_left`
  // (negative) the time left is that of the pace so far.
  void show(int64_t done, int64_t total, const std::string& details = "", double seconds_left = -1);

 private:
  using Clock = std::chrono::steady_clock;

  Console& console_;
  std::string what_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
};

}  // namespace headlight::cli
