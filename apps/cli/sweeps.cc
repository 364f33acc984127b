#include "sweeps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "headlight/base/error.h"
#include "numbers.h"

namespace headlight::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kBetweenSaves{10};
constexpr double kWorthSaying = 1e12;  // multiply-adds
constexpr int64_t kMegabyte = 1000 * 1000;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

void add_sweep_options(Options& options, SweepChoice& choice) {
  options.group("sweep");
  options.integer("--memory", choice.megabytes, {0, 1 << 30}, "megabytes that ablations may take beside the model",
                  "half of what the machine has free");
  options.text("--resume", "FILE", choice.resume,
               "keeps finished runs in FILE every 10 seconds and on Ctrl-C, goes on from those it has, and removes it "
               "when all is done");
}

Sweeps::Sweeps(const Subject& subject, const Material& material, const SweepChoice& choice,
               const std::filesystem::path& folder, Console& console)
    : subject_(subject),
      material_(material),
      choice_(choice),
      folder_(folder),
      console_(console),
      record_(subject.model, material.sequences(), material.metric, HEADLIGHT_VERSION) {
  if (choice_.resume.empty()) return;
  if (!std::filesystem::exists(choice_.resume)) {
    console_.note(fmt::format("{} is not there yet: begins anew", choice_.resume));
    return;
  }
  record_.load(choice_.resume);
  console_.note(fmt::format("goes on from {}: {} effects are finished", choice_.resume, grouped(record_.effects())));
}

void Sweeps::run(const std::string& what, const std::function<void(const SweepOptions&)>& sweep) {
  ProgressLine line(console_, what);
  const Clock::time_point start = Clock::now();
  Clock::time_point saved = start;
  std::optional<double> first;
  SweepOptions options{.memory = choice_.megabytes * kMegabyte, .stop = StopOnSignal::requested(), .record = &record_};
  options.progress = [&](const SweepProgress& p) {
    if (!first) first = p.share;
    // what was finished before took no time
    const double share = p.share - *first;
    const double left = share > 0 ? seconds_since(start) * (1 - p.share) / share : -1;
    if (share > 0) line.show(p.done, p.total, "", left);
    if (choice_.resume.empty() || Clock::now() - saved < kBetweenSaves) return;
    record_.save(choice_.resume);
    saved = Clock::now();
  };
  try {
    sweep(options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInterrupted) throw;
    stop(fmt::format("{}: {}", what, error.found()));
  }
}

void Sweeps::stop(const std::string& what) {
  std::string file = choice_.resume;
  std::string command = console_.command_line();
  if (file.empty()) {
    file = (folder_ / fmt::format("headlight-{}.sweep", record_.key().substr(0, 8))).string();
    command += " --resume " + file;
  }
  record_.save(file);
  throw Error(ErrorKind::kInterrupted, "", fmt::format("{}, saved in {}; continue: {}", what, file, command));
}

void Sweeps::announce(const std::string& what, const std::vector<std::vector<Intervention>>& groups) {
  const SweepPlan plan = plan_sweep(subject_.model, material_.sequences(), groups, material_.metric,
                                    {.memory = choice_.megabytes * kMegabyte});
  bytes_ = std::max(bytes_, plan.bytes);
  const Batch& batch = material_.sequences();
  const double tokens = static_cast<double>(batch.size * batch.time);
  if (static_cast<double>(groups.size()) * tokens * weights_per_token(subject_.model.config()) < kWorthSaying) return;
  console_.note(
      fmt::format("{}: {} runs on {} tokens, {} of {} sequences at a time; {} of memory beside the model's {}", what,
                  grouped(plan.runs), grouped(batch.size * batch.time), plan.sequences, batch.size,
                  byte_size(static_cast<double>(plan.bytes)),
                  byte_size(static_cast<double>(4 * subject_.model.weights().count()))));
}

void Sweeps::finish() {
  if (choice_.resume.empty()) return;
  std::error_code ignored;  // nothing is lost when it stays
  std::filesystem::remove(choice_.resume, ignored);
}

}  // namespace headlight::cli
