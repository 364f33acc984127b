// headlight train: trains a model, shows how it goes, and leaves a run that every other command reads.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "curves.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "headlight/explain/head_scores.h"
#include "headlight/kernels/isa.h"
#include "headlight/train/loop.h"
#include "interrupt.h"
#include "numbers.h"
#include "progress.h"
#include "results.h"

namespace headlight::cli {
namespace {

// "first copy 4.12  second copy 0.31"
std::string losses_text(const StepReport& report) {
  std::string text;
  if (report.losses.size() < 2) return fmt::format("loss {:.3f}", report.loss);
  for (const auto& [name, value] : report.losses) {
    if (!std::isnan(value)) text += fmt::format("{}{} {:.2f}", text.empty() ? "" : "  ", name, value);
  }
  return text;
}

class Train : public Command {
 public:
  Description description() const override {
    return {
        "train",
        "work",
        "trains a model on a text or a task, and saves it as a run",
        "Trains with AdamW, a linear rise of the learning rate and half a cosine down. The run's folder holds the "
        "model, checkpoints, and log.jsonl with losses, validation and, at intervals, the scores of every head. "
        "Ctrl-C saves and says how to go on; a run that was stopped or killed at any moment ends, when resumed, with "
        "the same bits as one that was not.",
        {{"headlight train --task repeats --blocks 2 --heads 4 --width 64 --attention-only --out runs/repeats",
          "repeated random tokens: induction heads form within a minute"},
         {"headlight train --data text.txt --blocks 4 --heads 4 --width 128 --context 64 --out runs/text",
          "a text of your own, one token per byte"},
         {"headlight train --resume runs/text", "goes on where it was stopped"}}};
  }

  void declare(Options& options) override {
    options.group("run");
    options.text("--out", "FOLDER", out_, "where the run is saved; must be new or empty");
    options.text("--resume", "FOLDER", resume_, "go on with the run in this folder");
    add_data_options(options, data_);
    add_model_options(options, training_.model);
    add_training_options(options, training_);
    options.group("machine");
    add_compute_options(options, threads_);
  }

  int run(const Options& options, Console& console) override {
    use_threads(threads_);
    const StopOnSignal signals;
    Trainer trainer = resume_.empty() ? begin() : resume(options, console);
    const std::string folder = resume_.empty() ? out_ : resume_;
    trainer.open(folder);
    console.note(fmt::format("{}, {} parameters; {} threads, {}", summary(trainer.model().config()),
                             rounded(static_cast<double>(trainer.model().parameters().count())),
                             default_pool().threads(), active_isa()));
    if (resume_.empty() || !trainer.done()) train_all(trainer, folder, console);
    report(trainer, folder, console);
    return 0;
  }

 private:
  Trainer begin() {
    if (out_.empty()) throw Error(ErrorKind::kUsage, "", "--out FOLDER is missing: where shall the run be saved?");
    training_.data = make_data(data_);
    return Trainer(resolve(training_, option_of_field));
  }

  Trainer resume(const Options& options, Console& console) {
    for (const Option& o : options.all()) {
      if (o.is_given && o.name != "--resume" && o.name != "--threads" && o.name != "--json") {
        throw Error(ErrorKind::kUsage, "", o.name + " does not go with --resume: the run says how it is trained");
      }
    }
    std::vector<std::string> messages;
    Trainer trainer = Trainer::resume(resume_, &messages);
    for (const std::string& message : messages) console.note(message);
    console.note(fmt::format("{} stands at step {} of {}", resume_, trainer.step_number(), trainer.options().steps));
    return trainer;
  }

  static void train_all(Trainer& trainer, const std::string& folder, Console& console) {
    const RepeatedBatch repeated = repeat_random_tokens(
        trainer.model().config(), scoring_repeats(trainer.model().config(), *trainer.options().data));
    ProgressLine line(console, "step");
    TrainHooks hooks;
    hooks.progress = [&](const Progress& p) {
      const std::string details = fmt::format("{}  {} tok/s", losses_text(*p.last), rounded(p.tokens_per_second, 2));
      line.show(p.step, p.steps, details, p.seconds_left);
    };
    hooks.observe = [&](const Trainer& t) { return named_scores(head_scores(t.model(), repeated)); };
    hooks.stop = StopOnSignal::requested();
    if (train(trainer, folder, hooks) == TrainEnd::kDone) return;
    throw Error(ErrorKind::kInterrupted, "",
                fmt::format("stopped at step {} of {} and saved; continue: headlight train --resume {}",
                            trainer.step_number(), trainer.options().steps, folder));
  }

  static void report(const Trainer& trainer, const std::string& folder, Console& console) {
    const std::vector<LogEntry> entries = read_log(folder);
    const ModelConfig& config = trainer.model().config();
    const std::optional<Formation> formation = find_formation(training_log(entries));
    const LogEntry& last = entries.back();
    if (console.wants_json()) {
      nlohmann::ordered_json json{{"run", folder},
                                  {"step", trainer.step_number()},
                                  {"tokens", last.tokens},
                                  {"seconds", last.seconds},
                                  {"parameters", trainer.model().parameters().count()},
                                  {"model", nlohmann::ordered_json::parse(to_json(config))}};
      if (last.validation) json["validation"] = json_of(*last.validation);
      json["formation"] = formation ? json_of(*formation) : nlohmann::ordered_json(nullptr);
      console.print_json(json);
      return;
    }
    if (formation) console.print(formation->text + "\n");
    if (last.validation) console.print(validation_text(*last.validation) + "\n");
    console.print(fmt::format("saved {} (step {}, {})\n", folder, trainer.step_number(), duration(last.seconds)));
    console.print(
        fmt::format("look: headlight heads {0}      report: headlight report {0} --out report.html\n", folder));
  }

  std::string out_, resume_;
  DataChoice data_;
  TrainerOptions training_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> train_command() { return std::make_unique<Train>(); }

}  // namespace headlight::cli
