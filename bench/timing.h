#pragma once
// Timing of several pieces of work in one process: one after the other in each of many rounds, so that the
// machine's moods fall on all of them, and the median over the rounds.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace headlight::bench {

struct Work {
  std::string name;
  double amount;  // done by a call: bytes read and written, each once, or operations
  std::function<void()> run;
  std::vector<double> seconds{};  // per call, one a round

  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  // 1e9 of `amount` a second
  double rate() const { return amount / median() * 1e-9; }
};

// Adds `rounds` times to each piece of work; short ones are repeated to make up a millisecond.
inline void measure(std::vector<Work>& all, int rounds) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_of = [](const Work& work, int64_t times) {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < times; ++i) work.run();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<int64_t> times;
  for (const Work& work : all) {
    work.run();
    times.push_back(1 + static_cast<int64_t>(1e-3 / std::max(1e-7, seconds_of(work, 1))));
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].seconds.push_back(seconds_of(all[i], times[i]) / static_cast<double>(times[i]));
    }
  }
}

}  // namespace headlight::bench
