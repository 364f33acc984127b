// headlight eval: how well a model predicts what it was not trained on.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/explain/in_context.h"
#include "headlight/train/evaluate.h"
#include "numbers.h"
#include "results.h"
#include "subject.h"
#include "table.h"

namespace headlight::cli {
namespace {

constexpr int64_t kInContextSequences = 256;

class Eval : public Command {
 public:
  Description description() const override {
    return {
        "eval",
        "work",
        "loss, perplexity and accuracy on sequences never trained on",
        "Of a run without further options: the validation part of its own data. Losses are in nats per target. A span "
        "is "
        "an unbroken run of targets of one kind, such as a part name; it is right when every token of it is the "
        "model's "
        "first choice. The in-context score is the mean loss at a late token minus that at an early one: negative when "
        "the context helps.",
        {{"headlight eval runs/a", "on the validation part of its own data"},
         {"headlight eval runs/text --data other.txt", "on the whole of another text"},
         {"headlight eval runs/repeats --task repeats", "on a task"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    add_data_options(options, data_);
    options.group("machine");
    add_weights_option(options, model_);
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    const Subject subject = load_subject(model_, console);
    const std::shared_ptr<const DataSource> source = choose(subject);
    if (source->tokenizer()->to_json() != subject.tokenizer->to_json()) {
      throw Error(ErrorKind::kUsage, "", fmt::format("{} knows other tokens than this data has", subject.name));
    }
    const Evaluation evaluation = Evaluator(subject.model, source).run(subject.model);
    const InContextScore in_context = in_context_score(subject.model, validation_batch(*source, kInContextSequences));
    if (console.wants_json()) {
      nlohmann::ordered_json json{{"model", subject.name}, {"data", name_of(subject)}};
      json.update(json_of(evaluation));
      json["in_context"] = {{"early_token", in_context.early},
                            {"late_token", in_context.late},
                            {"early_loss", json_of(in_context.loss_early)},
                            {"late_loss", json_of(in_context.loss_late)},
                            {"score", json_of(in_context.score)}};
      console.print_json(json);
    } else {
      print(subject, evaluation, in_context, console);
    }
    return 0;
  }

 private:
  std::string name_of(const Subject& subject) const {
    if (!data_.file.empty()) return data_.file;
    if (data_.task == DataChoice::Task::kRepeats) return "task repeats";
    if (data_.task == DataChoice::Task::kCopy) return "task copy";
    return "the validation part of its own data, " + subject.training->data->kind();
  }

  std::shared_ptr<const DataSource> choose(const Subject& subject) {
    if (!data_.is_made()) {
      if (subject.training) return subject.training->data;
      throw Error(
          ErrorKind::kUsage, "",
          fmt::format("{} has no training data at hand; give --data FILE or --task repeats|copy", subject.name));
    }
    if (!data_.context) data_.context = subject.model.config().context;
    if (data_.file.empty()) return make_data(data_);
    return whole_text(data_);
  }

  void print(const Subject& subject, const Evaluation& e, const InContextScore& in_context, Console& console) const {
    console.print_wrapped(fmt::format("{} on {}, {} sequences", subject.name, name_of(subject), grouped(e.sequences)));
    Table table({{"", Align::kLeft}, {"targets"}, {"loss"}, {"perplexity"}, {"accuracy"}, {"spans right"}});
    const auto row = [&](const std::string& name, int64_t targets, double loss, double accuracy,
                         const std::string& spans) {
      table.row({name, grouped(targets), fmt::format("{:.4f}", loss), fmt::format("{:.3f}", std::exp(loss)),
                 percent(accuracy, 1), spans});
    };
    for (const ClassResult& c : e.classes) {
      if (e.classes.size() == 1 || c.targets == 0) continue;
      row(c.name, c.targets, c.loss, c.accuracy, percent(c.span_accuracy, 1));
    }
    row("all", e.targets, e.loss, e.accuracy, "");
    console.print("\n" + table.text(console.out()) + "\n");
    console.print_wrapped(fmt::format("in-context score, token {} minus token {}: {}±{:.2f} nats ({:.2f} - {:.2f})",
                                      in_context.late, in_context.early, signed_number(in_context.score.mean, 2),
                                      in_context.score.spread, in_context.loss_late.mean, in_context.loss_early.mean));
  }

  ModelChoice model_;
  DataChoice data_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> eval_command() { return std::make_unique<Eval>(); }

}  // namespace headlight::cli
