// headlight ablate: chosen heads taken away, alone and together.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/explain/ablation.h"
#include "material.h"
#include "numbers.h"
#include "results.h"
#include "sweeps.h"
#include "table.h"

namespace headlight::cli {
namespace {

// "5.1,6.9"
std::vector<HeadId> parse_heads(const std::string& text, const ModelConfig& config) {
  std::vector<HeadId> heads;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const HeadId head = parse_head(text.substr(at, end - at), config);
    if (std::find(heads.begin(), heads.end(), head) != heads.end()) {
      throw Error(ErrorKind::kUsage, "", fmt::format("--heads names {} twice", to_string(head)));
    }
    heads.push_back(head);
    at = end + 1;
  }
  return heads;
}

class Ablate : public Command {
 public:
  Description description() const override {
    return {
        "ablate",
        "explain",
        "takes chosen heads away, alone and together",
        "The output z of each chosen head, before W_O, is set to 0 or to its mean over all positions of the same "
        "sequences; the change of the loss is given with its standard deviation over sequences. Heads back each other "
        "up, so they are also taken away together.",
        {{"headlight ablate runs/repeats --heads 1.0,1.2 --mode zero", "two induction heads"},
         {"headlight ablate runs/text --heads 0.3 --mode mean --data notes.txt", "on a text of your own"},
         {"headlight ablate SmolLM2-135M.gguf --heads 18.6 --text 'one two three one two'", "on one text"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    options.group("ablation");
    options.text("--heads", "B.H,B.H", heads_, "block and head, counted from 0");
    options.choice(
        "--mode", {"zero", "mean"}, "zero", [this](std::size_t i) { mean_ = i == 1; }, "what z becomes");
    add_material_options(options, choice_, true);
    add_sweep_options(options, sweep_);
    options.group("machine");
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    if (heads_.empty()) throw Error(ErrorKind::kUsage, "", "--heads is missing; for example --heads 1.0,1.2");
    const Subject subject = load_subject(model_, console);
    const std::vector<HeadId> heads = parse_heads(heads_, subject.model.config());
    const Material material = make_material(subject, choice_);
    const Ablation ablation = mean_ ? mean_ablation(subject.model, material.sequences()) : zero_ablation();
    std::vector<std::vector<Intervention>> groups;
    for (const HeadId& head : heads) groups.push_back({ablate(head, ablation)});
    if (heads.size() > 1) groups.push_back(ablate(heads, ablation));
    Sweeps sweeps(subject, material, sweep_, "", console);
    sweeps.announce("ablation", groups);
    SweepResult result;
    sweeps.run("ablation", [&](const SweepOptions& options) {
      result = sweep_groups(subject.model, material.sequences(), groups, material.metric, options);
    });
    sweeps.finish();
    if (console.wants_json()) {
      print_json(subject, heads, material, ablation, result, console);
    } else {
      print(subject, heads, material, ablation, result, console);
    }
    demand({result.same_as_naive});
    return 0;
  }

 private:
  static std::string name_of(const std::vector<HeadId>& heads, std::size_t i) {
    return i < heads.size() ? to_string(heads[i]) : "together";
  }

  // one sequence has no spread
  static std::string spread_text(double spread) { return std::isnan(spread) ? "-" : fmt::format("{:.4f}", spread); }

  static void print(const Subject& subject, const std::vector<HeadId>& heads, const Material& material,
                    const Ablation& ablation, const SweepResult& result, Console& console) {
    console.print_wrapped(
        fmt::format("on {}, {}; {}", material.condition, start_text(subject, material.start), ablation.definition));
    Table table({{"heads", Align::kLeft}, {result.metric}, {"change"}, {"spread"}});
    table.row({"none", fmt::format("{:.4f}", result.clean_loss), "", spread_text(result.clean_spread)});
    for (std::size_t i = 0; i < result.effects.size(); ++i) {
      const Effect& effect = result.effects[i];
      table.row({name_of(heads, i), fmt::format("{:.4f}", effect.loss), signed_number(effect.change, 4),
                 spread_text(effect.spread)});
    }
    console.print("\n" + table.text(console.out()));
  }

  static void print_json(const Subject& subject, const std::vector<HeadId>& heads, const Material& material,
                         const Ablation& ablation, const SweepResult& result, Console& console) {
    nlohmann::ordered_json effects = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < result.effects.size(); ++i) {
      const Effect& effect = result.effects[i];
      effects.push_back({{"heads", json_of(i < heads.size() ? std::vector<HeadId>{heads[i]} : heads)},
                         {"loss", effect.loss},
                         {"change", effect.change},
                         {"spread", effect.spread}});
    }
    console.print_json({{"model", subject.name},
                        {"condition", material.condition},
                        {"start_token", json_of(material.start)},
                        {"ids", material.ids()},
                        {"mode", ablation.id},
                        {"definition", ablation.definition},
                        {"metric", result.metric},
                        {"loss", result.clean_loss},
                        {"spread", result.clean_spread},
                        {"effects", effects},
                        {"checks", json_of(std::vector<Check>{result.same_as_naive})}});
  }

  ModelChoice model_;
  std::string heads_;
  bool mean_ = false;
  MaterialChoice choice_;
  SweepChoice sweep_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> ablate_command() { return std::make_unique<Ablate>(); }

}  // namespace headlight::cli
