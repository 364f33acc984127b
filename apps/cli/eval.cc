// headlight eval: how well a model predicts what it was not trained on.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "command.h"
#include "encoded_text.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/explain/in_context.h"
#include "headlight/train/evaluate.h"
#include "numbers.h"
#include "predicted.h"
#include "progress.h"
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
        "is an unbroken run of targets of one kind, such as a part name; it is right when every token of it is the "
        "model's first choice. The in-context score is the mean loss at a late token minus that at an early one: "
        "negative when the context helps."
        "\n\n"
        "With --per-token the JSON object holds each sequence's ids (what the model saw, then the last token that it "
        "predicted), their texts, and their losses: null where a token was not predicted, as the first, or was counted "
        "in the sequence before.",
        {{"headlight eval runs/a", "on the validation part of its own data"},
         {"headlight eval runs/text --data other.txt", "on the whole of another text"},
         {"headlight eval SmolLM2-135M.gguf --data other.txt --context 512", "with the model's own tokenizer"},
         {"headlight eval SmolLM2-135M.gguf --text 'one two three one two' --per-token", "token by token"},
         {"headlight eval runs/repeats --task repeats", "on a task"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    add_data_options(options, data_);
    options.text("--text", "TEXT", text_, "one text instead of a file");
    add_start_option(options, start_);
    options.integer("--windows", windows_, {0, 1 << 30}, "sequences of --data, spread evenly", "all");
    options.group("output");
    options.flag("--per-token", per_token_,
                 "the loss of each token too; without --json of one short text, or the worst");
    options.group("machine");
    add_weights_option(options, model_);
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    const Subject subject = load_subject(model_, console);
    const std::shared_ptr<const DataSource> source = choose(subject);
    if (source->tokenizer() != subject.tokenizer && source->tokenizer()->to_json() != subject.tokenizer->to_json()) {
      throw Error(ErrorKind::kUsage, "", fmt::format("{} knows other tokens than this data has", subject.name));
    }
    const Results results = evaluate(subject.model, source, console);
    if (console.wants_json()) {
      nlohmann::ordered_json json{{"model", subject.name}, {"data", name_of(subject)}};
      if (is_text()) json["start_token"] = cli::json_of(start_token(subject, start_));
      json.update(cli::json_of(results.evaluation));
      if (results.in_context) json["in_context"] = json_of(*results.in_context);
      if (per_token_) json["per_token"] = cli::json_of(results.sequences, *subject.tokenizer);
      console.print_json(json);
    } else {
      print(subject, results.evaluation, results.in_context, console);
      if (per_token_) console.print("\n" + predicted_text(results.sequences, *subject.tokenizer, console.out()));
    }
    return 0;
  }

 private:
  struct Results {
    Evaluation evaluation;
    std::optional<InContextScore> in_context{};
    std::vector<PredictedSequence> sequences{};  // of --per-token
  };

  Results evaluate(const Model& model, const std::shared_ptr<const DataSource>& source, Console& console) const {
    const int64_t count = source->validation_count(), time = source->context();
    Buffer<float> losses(count * time);
    const View<float, 2> all = losses.view<2>({count, time});
    Evaluator evaluator(model, source, sequences_at_once(model.config(), time));
    ProgressLine line(console, "sequence");
    Results results{evaluator.run(
        model, {.losses = all, .progress = [&](int64_t done, int64_t total) { line.show(done, total); }})};
    // one target has nothing later to be compared with
    if (time > 1) {
      const Batch first = validation_batch(*source, kInContextSequences);
      results.in_context = in_context_score(first, all.slice(0, 0, first.size));
    }
    if (per_token_) results.sequences = predicted_sequences(*source, all);
    return results;
  }

  std::string name_of(const Subject& subject) const {
    if (!text_.empty()) return "--text";
    if (!data_.file.empty()) return data_.file;
    if (data_.task == DataChoice::Task::kRepeats) return "task repeats";
    if (data_.task == DataChoice::Task::kCopy) return "task copy";
    return "the validation part of its own data, " + subject.training->data->kind();
  }

  std::shared_ptr<const DataSource> choose(const Subject& subject) {
    if (!text_.empty() && data_.is_made()) {
      throw Error(ErrorKind::kUsage, "", "--text goes with neither --data nor --task");
    }
    if (!is_text() && start_ != kStartOfModel) {
      throw Error(ErrorKind::kUsage, "", "--start-token goes with --data and --text");
    }
    if (!text_.empty()) return source_of_text(subject);
    if (!data_.is_made()) {
      if (subject.training) return subject.training->data;
      throw Error(
          ErrorKind::kUsage, "",
          fmt::format("{} has no training data at hand; give --data FILE or --task repeats|copy", subject.name));
    }
    if (!data_.file.empty()) {
      check_choice(data_);
      return text_source(subject, {data_.file, data_.context, windows_, start_});
    }
    if (!data_.context) data_.context = subject.model.config().context;
    return make_data(data_);
  }

  bool is_text() const { return !text_.empty() || !data_.file.empty(); }

  std::shared_ptr<const DataSource> source_of_text(const Subject& subject) const {
    return encoded_text(subject.tokenizer, {.ids = subject.tokenizer->encode(text_),
                                            .start = start_token(subject, start_),
                                            .context = data_.context.value_or(subject.model.config().context)});
  }

  // as many as keep their logits at 256 MB
  static int64_t sequences_at_once(const ModelConfig& config, int64_t time) {
    constexpr int64_t kUsual = 32, kNumbers = int64_t{1} << 26;
    return std::clamp<int64_t>(kNumbers / (time * config.vocabulary), 1, kUsual);
  }

  static nlohmann::ordered_json json_of(const InContextScore& score) {
    return {{"early_token", score.early},
            {"late_token", score.late},
            {"early_loss", cli::json_of(score.loss_early)},
            {"late_loss", cli::json_of(score.loss_late)},
            {"score", cli::json_of(score.score)}};
  }

  void print(const Subject& subject, const Evaluation& e, const std::optional<InContextScore>& in_context,
             Console& console) const {
    const std::string start = is_text() ? ", " + start_text(subject, start_token(subject, start_)) : "";
    console.print_wrapped(fmt::format("{} on {}{}, {} sequence{}", subject.name, name_of(subject), start,
                                      grouped(e.sequences), e.sequences == 1 ? "" : "s"));
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
    if (!in_context) return;
    const Estimate& score = in_context->score;
    const std::string spread = std::isnan(score.spread) ? "" : fmt::format("±{:.2f}", score.spread);
    console.print_wrapped(fmt::format("in-context score, token {} minus token {}: {}{} nats ({:.2f} - {:.2f})",
                                      in_context->late, in_context->early, signed_number(score.mean, 2), spread,
                                      in_context->loss_late.mean, in_context->loss_early.mean));
  }

  ModelChoice model_;
  std::string text_, start_ = kStartOfModel;
  int64_t windows_ = 0;
  bool per_token_ = false;
  DataChoice data_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> eval_command() { return std::make_unique<Eval>(); }

}  // namespace headlight::cli
