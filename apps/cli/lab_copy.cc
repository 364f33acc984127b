// headlight lab copy: a model learns to copy a part's name when its identifier returns, also one it has never seen.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "findings.h"
#include "groups.h"
#include "headlight/text/tasks.h"
#include "headlight/train/evaluate.h"
#include "lab_training.h"
#include "results.h"
#include "table.h"

namespace headlight::cli {
namespace {

constexpr double kAccuracy = 0.95;  // of names copied after identifiers never trained
constexpr double kLearnt = 0.5;     // accuracy from which the model is said to have learnt it
constexpr int64_t kInterval = 250;  // steps between tests
constexpr const char* kCopied = "copied name";

const ClassResult& copied(const Evaluation& evaluation) {
  for (const ClassResult& c : evaluation.classes) {
    if (c.name == kCopied) return c;
  }
  throw LogicError("lab copy", std::string("the data has no class ") + kCopied);
}

class LabCopy : public Command {
 public:
  Description description() const override {
    return {
        "lab copy",
        "textbook experiments",
        "copying a name after an identifier never seen",
        "Trains a small model on log lines in which an identifier such as P-104 returns with its part name. The names "
        "are drawn anew for each sequence, so a name that returns can only be copied. It is tested on identifiers that "
        "training never used: a name counts when each of its words is the model's first choice. Exit code 1 when "
        "fewer "
        "than 95 % are right at the end.",
        {{"headlight lab copy", "some minutes; accuracy over the steps"}}};
  }

  void declare(Options& options) override {
    options.group("experiment");
    options.integer("--steps", steps_, {1, 1 << 24}, "optimiser steps");
    options.integer("--seed", seed_, {0, int64_t{1} << 62}, "of the first weights and of the data");
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    TrainerOptions options;
    options.data = log_lines({});
    options.model.blocks = 3;
    options.model.heads = 8;
    options.model.head_width = 16;
    options.rate = 3e-3;
    options.final_rate = 3e-4;
    options.steps = steps_;
    options.seed = seed_;
    options.log_interval = kInterval;
    options.observe_interval = kInterval;
    Trainer trainer(options);
    const std::vector<LogEntry> entries = train_for_lab(
        trainer, "lab copy", console, [](Trainer& t, LogEntry& entry) { entry.validation = t.evaluate(); });
    const std::optional<int64_t> learnt = step_of_learning(entries);
    const ClassResult& end = copied(*entries.back().validation);
    Findings findings;
    findings.section("on identifiers never seen");
    findings.at_least(fmt::format("share of {} names copied without a mistake", end.spans), end.span_accuracy,
                      kAccuracy, 3);
    if (console.wants_json()) {
      print_json(entries, learnt, findings, console);
    } else {
      print(trainer, entries, learnt, findings, console);
    }
    return findings.all_hold() ? 0 : 1;
  }

 private:
  // the first tested step from which the accuracy stays above kLearnt
  static std::optional<int64_t> step_of_learning(const std::vector<LogEntry>& entries) {
    std::optional<int64_t> step;
    for (const LogEntry& entry : entries) {
      const bool knows = copied(*entry.validation).span_accuracy >= kLearnt;
      if (!knows) step.reset();
      if (knows && !step) step = entry.step;
    }
    return step;
  }

  static void print(const Trainer& trainer, const std::vector<LogEntry>& entries, const std::optional<int64_t>& learnt,
                    const Findings& findings, Console& console) {
    console.print(summary(trainer.model().config()) + "\n\n");
    Table table({{"step"}, {"text"}, {"new name"}, {kCopied}, {"names right"}, {"", Align::kLeft}});
    for (const LogEntry& entry : entries) {
      const Evaluation& e = *entry.validation;
      const double share = copied(e).span_accuracy;
      std::vector<Cell> cells{fmt::format("{}", entry.step)};
      for (const ClassResult& c : e.classes) cells.emplace_back(fmt::format("{:.3f}", c.loss));
      cells.emplace_back(fmt::format("{:.1f} %", 100 * share));
      cells.emplace_back(std::string(static_cast<std::size_t>(share * 30 + 0.5), '#') +
                             (learnt && *learnt == entry.step ? "  learnt" : ""),
                         Paint::kCyan);
      table.row(std::move(cells));
    }
    console.print(table.text(console.out()));
    console.print("losses in nats per token, all on identifiers never trained\n");
    console.print("\n" + findings.text(console.out()));
  }

  void print_json(const std::vector<LogEntry>& entries, const std::optional<int64_t>& learnt, const Findings& findings,
                  Console& console) const {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const LogEntry& entry : entries) {
      steps.push_back({{"step", entry.step}, {"validation", json_of(*entry.validation)}});
    }
    console.print_json({{"lab", "copy"},
                        {"seed", seed_},
                        {"learnt_at_step", learnt ? nlohmann::ordered_json(*learnt) : nlohmann::ordered_json(nullptr)},
                        {"steps", steps},
                        {"findings", findings.json()},
                        {"holds", findings.all_hold()}});
  }

  int64_t steps_ = 2000;
  int64_t seed_ = 1;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> lab_copy_command() { return std::make_unique<LabCopy>(); }

}  // namespace headlight::cli
