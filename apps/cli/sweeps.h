#pragma once
// Sweeps as a person sees them: their memory said before, progress and time left, Ctrl-C that saves, and going on.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "console.h"
#include "headlight/explain/sweep.h"
#include "headlight/explain/sweep_record.h"
#include "interrupt.h"
#include "material.h"
#include "options.h"
#include "progress.h"
#include "subject.h"

namespace headlight::cli {

struct SweepChoice {
  int64_t megabytes = 0;  // 0: half of what is free
  std::string resume;     // file
};
void add_sweep_options(Options& options, SweepChoice& choice);

// The sweeps of one command over the same model and sequences. While one lives, Ctrl-C stops at the next run; what is
// finished is then saved: in the file of --resume, else in a new one in `folder`.
class Sweeps {
 public:
  // Reads the file of --resume, and says when it is not there yet. Errors as SweepRecord::load().
  Sweeps(const Subject& subject, const Material& material, const SweepChoice& choice,
         const std::filesystem::path& folder, Console& console);

  // Calls `sweep` with the options that it is to run with. Throws Error (interrupted) that says where the runs are kept
  // and how to go on.
  void run(const std::string& what, const std::function<void(const SweepOptions&)>& sweep);

  // Says on standard error what this will take, where that is much: bytes, runs and tokens.
  void announce(const std::string& what, const std::vector<std::vector<Intervention>>& groups);
  // Bytes of the largest sweep announced.
  int64_t bytes() const { return bytes_; }

  // All is done: the file of --resume goes.
  void finish();

 private:
  [[noreturn]] void stop(const std::string& what);

  const Subject& subject_;
  const Material& material_;
  SweepChoice choice_;
  std::filesystem::path folder_;
  Console& console_;
  SweepRecord record_;
  StopOnSignal signals_;
  int64_t bytes_ = 0;
};

}  // namespace headlight::cli
