#pragma once
// Timing of several pieces of work in one process: one after the other in each of many rounds, so that the
// machine's moods fall on all of them, and the median over the rounds.

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headlight/base/thread_pool.h"

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

inline double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Adds `rounds` times to each piece of work; short ones are repeated to make up a millisecond. With one thread it is
// the time that it had a processor: what other programs run then costs caches, but is not counted.
inline void measure(std::vector<Work>& all, int rounds) {
  const clockid_t clock = default_pool().threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const auto seconds_of = [clock](const Work& work, int64_t times) {
    const double begin = seconds(clock);
    for (int64_t i = 0; i < times; ++i) work.run();
    return seconds(clock) - begin;
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
