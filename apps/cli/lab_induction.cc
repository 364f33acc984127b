// headlight lab induction: two-block models form induction heads, one-block models do not.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "curves.h"
#include "groups.h"
#include "headlight/explain/knockout.h"
#include "headlight/text/tasks.h"
#include "lab_training.h"
#include "numbers.h"
#include "results.h"
#include "table.h"

namespace headlight::cli {
namespace {

// What the lab claims of every seed; it holds when at least four of five do.
constexpr double kSecondCopy = 0.3;     // nats, at most
constexpr double kNearLogV = 0.2;       // of the first copy, nats
constexpr double kInduction = 0.6;      // best score in block 1, at lengths never trained
constexpr double kTimesUniform = 4;     // best previous-token score in block 0
constexpr double kEffect = 2;           // nats that zeroing a set of heads adds, at least
constexpr double kFarLess = 0.5;        // the lowest heads' effect, as a share of the leaders', at most
constexpr double kNoInduction = 0.2;    // of one block, at most
constexpr double kNoDrop = 2;           // second copy of one block, nats, at least
constexpr double kSeedsThatHold = 0.8;  // share
constexpr double kRate = 2e-3;          // learning rate: heads specialise more clearly than at 1e-3

// One trained model.
struct Outcome {
  double first = 0, second = 0;      // losses at lengths never trained
  std::vector<double> induction;     // best score of each block
  double previous = 0, uniform = 0;  // best previous-token score of block 0, and an untrained model's
  std::vector<HeadSetEffect> sets;   // induction heads, leading previous-token heads, the lowest of that block
  std::optional<Formation> formation;
  double seconds = 0;

  // Effect of the set whose name begins so, or NaN.
  double effect(const std::string& name) const {
    for (const HeadSetEffect& e : sets) {
      if (e.set.name.rfind(name, 0) == 0) return e.change;
    }
    return std::nan("");
  }
};

struct Verdict {
  const char* claim;
  bool holds;
};

std::vector<Verdict> judge(const Outcome& two, const Outcome& one, double log_v) {
  const double induction = two.effect("induction"), leaders = two.effect("leading"), lowest = two.effect("lowest");
  return {{"the second copy is predicted", two.second < kSecondCopy},
          {"the first copy is not", std::abs(two.first - log_v) < kNearLogV},
          {"block 1 has induction heads", two.induction.back() >= kInduction},
          {"block 0 has previous-token heads", two.previous >= kTimesUniform * two.uniform},
          {"without induction heads the loss rises", induction >= kEffect},
          {"without the leading previous-token heads too", leaders >= kEffect},
          {"without as many of the lowest far less", lowest <= kFarLess * leaders},
          {"heads and loss change together", two.formation && two.formation->together},
          {"one block has no induction head", one.induction.back() < kNoInduction},
          {"one block does not predict the second copy", one.second >= kNoDrop}};
}

bool all_hold(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.holds; });
}

class LabInduction : public Command {
 public:
  Description description() const override {
    return {
        "lab induction",
        "textbook experiments",
        "two blocks form induction heads, one block does not",
        "Trains attention-only models on repeated random tokens, with each of several seeds one of two blocks and one "
        "of "
        "one block, and tests them at lengths that training never used: the loss of both copies, the best induction "
        "score, the previous-token heads of block 0, what happens to the second copy when sets of heads are zeroed, "
        "and "
        "whether heads and loss change in the same interval. Exit code 1 unless it holds for at least four of five "
        "seeds.",
        {{"headlight lab induction", "some minutes; one line per seed"},
         {"headlight lab induction --seeds 1", "a first look"}}};
  }

  void declare(Options& options) override {
    options.group("experiment");
    options.integer("--seeds", seeds_, {1, 1000}, "how many: 1, 2, ...");
    options.integer("--steps", steps_, {1, 1 << 24}, "optimiser steps of each model");
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    data_ = repeats({});
    const double log_v = std::log(static_cast<double>(RepeatsOptions{}.vocabulary));
    Table table = empty_table();
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    int64_t held = 0;
    for (int64_t seed = 1; seed <= seeds_; ++seed) {
      const Outcome two = train(seed, 2, console), one = train(seed, 1, console);
      const std::vector<Verdict> verdicts = judge(two, one, log_v);
      held += all_hold(verdicts);
      add_row(table, seed, two, one, verdicts);
      rows.push_back({{"seed", seed},
                      {"two_blocks", json_of_outcome(two)},
                      {"one_block", json_of_outcome(one)},
                      {"claims", json_of_verdicts(verdicts)},
                      {"holds", all_hold(verdicts)}});
    }
    const bool holds = static_cast<double>(held) >= kSeedsThatHold * static_cast<double>(seeds_);
    if (console.wants_json()) {
      console.print_json({{"lab", "induction"}, {"seeds", rows}, {"held", held}, {"holds", holds}});
    } else {
      print(table, held, holds, log_v, console);
    }
    return holds ? 0 : 1;
  }

 private:
  Outcome train(int64_t seed, int64_t blocks, Console& console) const {
    TrainerOptions options;
    options.data = data_;
    options.model.blocks = blocks;
    options.model.feed_forward = FeedForward::kNone;
    options.steps = steps_;
    options.rate = kRate;
    options.seed = seed;
    Trainer trainer(options);
    const RepeatedBatch repeated =
        repeat_random_tokens(trainer.model().config(), scoring_repeats(trainer.model().config(), *data_));
    const std::string what = fmt::format("seed {} of {}, {} block{}", seed, seeds_, blocks, blocks == 1 ? "" : "s");
    const std::vector<LogEntry> entries = train_for_lab(trainer, what, console, [&](Trainer& t, LogEntry& entry) {
      entry.observed = named_scores(head_scores(t.model(), repeated));
    });
    Outcome outcome = measure(trainer.model(), repeated);
    outcome.formation = find_formation(training_log(entries));
    outcome.seconds = entries.back().seconds;
    return outcome;
  }

  static Outcome measure(const Model& model, const RepeatedBatch& repeated) {
    Outcome outcome;
    const std::vector<Intervention> none;
    outcome.first = sweep(model, repeated.batch, none, first_copy_loss(repeated)).clean_loss;
    outcome.second = sweep(model, repeated.batch, none, second_copy_loss(repeated)).clean_loss;
    const HeadScores scores = head_scores(model, repeated);
    outcome.uniform = pooled(untrained_scores(model.config(), repeated), HeadScore::kPrevious).mean;
    outcome.induction.assign(static_cast<std::size_t>(scores.blocks), 0);
    for (const HeadId& head : all_heads(model.config())) {
      double& best = outcome.induction[static_cast<std::size_t>(head.block)];
      best = std::max(best, scores.at(head, HeadScore::kInduction).mean);
      if (head.block == 0) outcome.previous = std::max(outcome.previous, scores.at(head, HeadScore::kPrevious).mean);
    }
    HeadSetOptions sets;
    sets.uniform_previous = outcome.uniform;
    outcome.sets = ablate_sets(model, repeated.batch, head_sets(scores, sets), second_copy_loss(repeated));
    return outcome;
  }

  static Table empty_table() {
    return Table({{"seed"},
                  {"first"},
                  {"second"},
                  {"induct."},
                  {"previous"},
                  {"-induct."},
                  {"-previous"},
                  {"-lowest"},
                  {"formed"},
                  {"dropped"},
                  {"1 block"},
                  {"", Align::kLeft}});
  }

  static void add_row(Table& table, int64_t seed, const Outcome& two, const Outcome& one,
                      const std::vector<Verdict>& verdicts) {
    const auto interval = [](const StepInterval& i) { return fmt::format("{}-{}", i.from, i.to); };
    const auto number = [](double x) { return std::isnan(x) ? std::string("-") : signed_number(x, 2); };
    std::string problems;
    for (const Verdict& v : verdicts) {
      if (!v.holds) problems += (problems.empty() ? "not: " : "; ") + std::string(v.claim);
    }
    const std::string formed = two.formation ? interval(two.formation->heads) : "-";
    const std::string dropped = two.formation && two.formation->drop ? interval(*two.formation->drop) : "-";
    table.row({fmt::format("{}", seed), fmt::format("{:.2f}", two.first), fmt::format("{:.3f}", two.second),
               fmt::format("{:.2f}", two.induction.back()), fmt::format("{:.1f}x", two.previous / two.uniform),
               number(two.effect("induction")), number(two.effect("leading")), number(two.effect("lowest")), formed,
               dropped, fmt::format("{:.2f} {:.2f}", one.induction.back(), one.second),
               problems.empty() ? Cell("ok", Paint::kGreen) : Cell(problems, Paint::kRed)});
  }

  void print(const Table& table, int64_t held, bool holds, double log_v, Console& console) const {
    console.print_wrapped(
        fmt::format("attention-only models of width 64 with 4 heads, {} steps, tested on [start] R R at lengths never "
                    "trained; nats; "
                    "ln V = {:.2f}",
                    steps_, log_v));
    console.print("\n" + table.text(console.out()) + "\n");
    console.print_wrapped(
        "induct.: best induction score in block 1; previous: best previous-token score in block 0, times that of an "
        "untrained model; -induct., -previous, -lowest: rise of the second copy's loss without all induction heads, "
        "the "
        "leading previous-token heads, as many heads of that block that score lowest; formed, dropped: steps between "
        "which "
        "heads formed and the loss fell; 1 block: best induction score and second copy's loss of a one-block model");
    console.print("\n" +
                  console.out().paint(holds ? Paint::kGreen : Paint::kRed,
                                      fmt::format("{} of {} seeds show all of it", held, seeds_)) +
                  "\n");
  }

  static nlohmann::ordered_json json_of_outcome(const Outcome& o) {
    nlohmann::ordered_json sets = nlohmann::ordered_json::array();
    for (const HeadSetEffect& e : o.sets) {
      sets.push_back(
          {{"name", e.set.name}, {"heads", json_of(e.set.heads)}, {"change", e.change}, {"spread", e.spread}});
    }
    return {{"first_copy_loss", o.first},
            {"second_copy_loss", o.second},
            {"best_induction", o.induction},
            {"best_previous_in_block_0", o.previous},
            {"untrained_previous", o.uniform},
            {"zeroed_together", sets},
            {"formation", o.formation ? json_of(*o.formation) : nlohmann::ordered_json(nullptr)},
            {"seconds", o.seconds}};
  }

  static nlohmann::ordered_json json_of_verdicts(const std::vector<Verdict>& verdicts) {
    nlohmann::ordered_json json;
    for (const Verdict& v : verdicts) json[v.claim] = v.holds;
    return json;
  }

  int64_t seeds_ = 5;
  int64_t steps_ = 1000;
  int64_t threads_ = 0;
  std::shared_ptr<const DataSource> data_;
};

}  // namespace

std::unique_ptr<Command> lab_induction_command() { return std::make_unique<LabInduction>(); }

}  // namespace headlight::cli
