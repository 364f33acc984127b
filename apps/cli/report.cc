// headlight report: everything about a model's heads in one page that opens offline.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis.h"
#include "command.h"
#include "curves.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/train/log.h"
#include "numbers.h"
#include "pages.h"
#include "results.h"

namespace headlight::cli {
namespace {

constexpr int64_t kTopWrites = 5;               // tokens that a head raises most
constexpr double kMostBytes = 4.5 * (1 << 20);  // of the page's maps, so that it opens at once

// What the maps of one head take in the page: weights in base64, a float per row, and the tokens that it writes.
double bytes_of_maps(const std::vector<PageText>& texts, bool causal) {
  constexpr double kBase64 = 4.0 / 3, kWrites = 14.0 * kTopWrites;
  double bytes = 0;
  for (const PageText& text : texts) {
    const auto time = static_cast<double>(text.ids.size());
    bytes += kBase64 * ((causal ? time * (time + 1) / 2 : time * time) + 4 * time) + kWrites * time;
  }
  return bytes;
}

// The heads whose maps the page keeps: all, or of many heads on long texts those that change the loss most when taken
// away, as many as have room.
std::vector<HeadId> heads_to_draw(const Analysis& a, const ModelConfig& config, const std::vector<PageText>& texts) {
  const auto room = static_cast<std::size_t>(std::max(1.0, kMostBytes / bytes_of_maps(texts, config.causal)));
  std::vector<HeadId> heads = heads_by_effect(a.ablations.front().effects, config);
  if (heads.size() > room) heads.resize(room);
  std::sort(heads.begin(), heads.end());
  return heads;
}

class ReportCommand : public Command {
 public:
  Description description() const override {
    return {
        "report",
        "explain",
        "one page with everything, that opens offline",
        "Writes a single HTML file: the model and its cost, loss and head formation over training (when MODEL is a "
        "run's folder), each head's scores beside its ablation, the knock-out curve, and attention maps that can be "
        "pointed at, locked and moved by keyboard. It needs no network.",
        {{"headlight report runs/repeats --out report.html", "of a run"},
         {"headlight report runs/text --data notes.txt --text 'the cat and the cat' --out report.html",
          "scores and ablations on a text of your own, maps of another"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    options.group("page");
    options.text("--out", "FILE.html", out_, "the page");
    options.text("--text", "TEXT", text_,
                 "a text whose maps are shown [random tokens and their repetition; of --data its start]");
    add_analysis_options(options, choice_, false);
    options.group("machine");
    add_compute_options(options, threads_);
  }

  int run(const Options& options, Console& console) override {
    use_threads(threads_);
    const Subject subject = load_subject(model_, console);
    std::vector<PageText> texts;
    if (options.is_given("--text")) texts.push_back(text_of(subject, text_, choice_.material.start));
    const Analysis a = analyse(subject, choice_, std::filesystem::path(out_).parent_path(), console);
    texts.push_back(own_text(a));
    Report page = begin_page(subject, "Heads of " + subject.name, a.material.condition, choice_.material.seed, console);
    add_training(subject, page);
    page.checks = a.checks;
    page.scores = a.scores;
    page.untrained = a.untrained;
    page.ablations = a.ablations;
    page.readings = a.readings;
    page.knockout = a.knockout;
    page.top_writes = top_writes(subject.model, a.material.sequences(), kTopWrites);
    MapOptions maps;
    maps.heads = heads_to_draw(a, subject.model.config(), texts);
    maps.top = kTopWrites;
    for (const PageText& text : texts) {
      page.texts.push_back({text.name, text.ids, text.start_token, attention_maps(subject.model, text.ids, maps)});
    }
    demand(page.checks);
    write_report(out_, page);
    say(page, console);
    return 0;
  }

 private:
  // the first sequence that the heads were scored on
  static PageText own_text(const Analysis& a) {
    const Batch& batch = a.material.sequences();
    PageText text;
    text.name = a.material.repeated ? "repeated random tokens" : "the first window of the text";
    for (int64_t i = 0; i < batch.lengths[0]; ++i) text.ids.push_back(batch.tokens[batch.row(0, i)]);
    text.start_token = a.material.start.has_value();
    return text;
  }

  static void add_training(const Subject& subject, Report& page) {
    if (!std::filesystem::exists(subject.folder / "log.jsonl")) return;
    const std::vector<LogEntry> entries = read_log(subject.folder);
    if (entries.empty()) return;
    page.training = training_log(entries);
    page.formation = find_formation(*page.training);
    page.cost.training_tokens = entries.back().tokens;
    page.cost.training_note = fmt::format("{} steps in {}", entries.back().step, duration(entries.back().seconds));
  }

  void say(const Report& page, Console& console) const {
    const auto size = static_cast<double>(std::filesystem::file_size(out_));
    if (console.wants_json()) {
      console.print_json({{"page", out_},
                          {"bytes", size},
                          {"checks", json_of(page.checks)},
                          {"formation", page.formation ? json_of(*page.formation) : nlohmann::ordered_json(nullptr)}});
      return;
    }
    if (page.formation) console.print_wrapped(page.formation->text);
    console.print(fmt::format("wrote {} ({}); open it in a browser, no network is needed\n", out_, byte_size(size)));
  }

  ModelChoice model_;
  std::string out_ = "report.html", text_;
  AnalysisChoice choice_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> report_command() { return std::make_unique<ReportCommand>(); }

}  // namespace headlight::cli
