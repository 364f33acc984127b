#pragma once
// Ctrl-C as a request: work stops at a place where everything can be saved.

#include <atomic>

namespace headlight::cli {

// While one lives, SIGINT and SIGTERM set requested(); the second one ends the process at once.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  static const std::atomic<bool>* requested();
};

}  // namespace headlight::cli
