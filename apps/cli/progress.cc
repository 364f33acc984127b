#include "progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "numbers.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

constexpr std::chrono::milliseconds kBetween{100};  // redraws
constexpr int kWidestBar = 22;
constexpr int kNarrowestBar = 6;

}  // namespace

std::string bar(int64_t done, int64_t total, int width) {
  const auto filled = static_cast<int>(total > 0 ? static_cast<int64_t>(width) * std::min(done, total) / total : width);
  std::string text(static_cast<std::size_t>(width), ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled < width) text[static_cast<std::size_t>(filled)] = '>';
  return "[" + text + "]";
}

void ProgressLine::show(int64_t done, int64_t total, const std::string& details, double seconds_left) {
  if (!console_.err().is_terminal) return;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < kBetween && done < total) return;
  drawn_ = now;
  if (seconds_left < 0 && done > 0) {
    const double spent = std::chrono::duration<double>(now - start_).count();
    seconds_left = spent * static_cast<double>(total - done) / static_cast<double>(done);
  }
  const std::string all = fmt::format("{}", total);
  const std::string head = fmt::format("{} {:>{}}/{}  ", what_, done, all.size(), all);
  std::string tail = details.empty() ? "" : "  " + details;
  if (seconds_left >= 0) tail += "  left " + duration(seconds_left);
  const int room = console_.err().width - 3 - columns(head) - columns(tail);
  const std::string middle = room < kNarrowestBar ? "" : bar(done, total, std::min(room, kWidestBar));
  console_.redraw(head + middle + tail);
}

}  // namespace headlight::cli
