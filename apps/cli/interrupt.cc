#include "interrupt.h"

#include <signal.h>

namespace headlight::cli {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

void on_signal(int number) {
  stop_requested = true;
  signal(number, SIG_DFL);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop_requested = false;
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
}

StopOnSignal::~StopOnSignal() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>* StopOnSignal::requested() { return &stop_requested; }

}  // namespace headlight::cli
