#pragma once
// Rates beside their ceiling: a table while it measures, or one JSON object at the end.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headlight/base/thread_pool.h"
#include "headlight/kernels/isa.h"
#include "timing.h"

namespace headlight::bench {

// What a program that reads files does: an error is said.
template <class Run>
int run_main(Run run) {
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

// All that was measured, as a table on the way and as JSON at the end.
class Report {
 public:
  Report(bool json, int rounds) : json_(json), rounds_(rounds) {
    if (json) return;
    fmt::print("{}, {} threads, medians of {} interleaved rounds\n", active_isa(), default_pool().threads(), rounds);
  }

  // `all` begins with the ceiling
  void add(const std::string& shape, std::vector<Work>& all, const char* unit) {
    measure(all, rounds_);
    if (!json_) fmt::print("\n{:<24} {:>10} {:>9} {:>8}\n", shape, "us", unit, "share");
    for (const Work& work : all) {
      const double share = work.rate() / all.front().rate();
      if (!json_)
        fmt::print("{:<24} {:>10.1f} {:>9.1f} {:>7.1f}%\n", work.name, work.median() * 1e6, work.rate(), 100 * share);
      rows_.push_back(
          {{"shape", shape}, {"name", work.name}, {"seconds", work.median()}, {unit, work.rate()}, {"share", share}});
    }
  }

  void finish() const {
    if (!json_) return;
    const nlohmann::json all{
        {"isa", active_isa()}, {"threads", default_pool().threads()}, {"rounds", rounds_}, {"results", rows_}};
    fmt::print("{}\n", all.dump(2));
  }

 private:
  bool json_;
  int rounds_;
  nlohmann::json rows_ = nlohmann::json::array();
};

}  // namespace headlight::bench
