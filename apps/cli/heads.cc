// headlight heads: what each head does, with what its absence does beside it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis.h"
#include "command.h"
#include "groups.h"
#include "numbers.h"
#include "results.h"
#include "table.h"

namespace headlight::cli {
namespace {

// "0.57", with the spread "0.57±.02" where it is worth reading
std::string score_text(const Estimate& e, bool with_spread) {
  if (std::isnan(e.mean)) return "-";
  std::string text = fmt::format("{:.2f}", e.mean);
  if (with_spread && !std::isnan(e.spread)) text += "±" + fmt::format("{:.2f}", e.spread).substr(e.spread < 1 ? 1 : 0);
  return text;
}

Paint paint_of(const HeadReading& reading, HeadScore score) {
  return reading.role == score ? Paint::kCyan : Paint::kPlain;
}

constexpr std::size_t kMostRows = 64;  // heads of a table that lists all

std::vector<Cell> head_row(const Analysis& a, std::size_t i) {
  const HeadReading& reading = a.readings[i];
  std::vector<Cell> cells{Cell(to_string(reading.head))};
  for (HeadScore score : a.scores.columns) {
    cells.emplace_back(score_text(a.scores.at(reading.head, score), reading.role == score), paint_of(reading, score));
  }
  for (const ReportAblation& ablation : a.ablations) {
    cells.emplace_back(signed_number(ablation.effects.effects[i].change, 2));
  }
  cells.emplace_back(reading.reads_as, reading.disagrees ? Paint::kYellow : Paint::kPlain);
  return cells;
}

// The heads that stand highest under one heading, as places in the readings.
struct Section {
  std::string title;
  std::vector<std::size_t> heads;
};

// Of many heads those with the highest scores, of each kind that names a head, and those whose removal does most.
std::vector<Section> leading_heads(const Analysis& a, std::size_t most) {
  std::vector<Section> sections;
  const auto add = [&](const std::string& title, const std::vector<HeadId>& order) {
    Section section{title, {}};
    for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
      section.heads.push_back(static_cast<std::size_t>(order[i].block * a.scores.heads + order[i].head));
    }
    sections.push_back(std::move(section));
  };
  for (HeadScore score : {HeadScore::kInduction, HeadScore::kDuplicate, HeadScore::kPrevious, HeadScore::kStart,
                          HeadScore::kCurrent, HeadScore::kEntropy}) {
    if (a.scores.has(score)) add("highest " + definition_of(score).label + " score", ranked(a.scores, score));
  }
  add("largest rise of the loss when set to 0", heads_by_effect(a.ablations.front().effects, a.config));
  return sections;
}

// "24 induction (9 partly), 31 previous token (12 partly), ..., 130 mixed"
std::string role_counts(const Analysis& a) {
  std::string text;
  const auto add = [&](const std::string& label, int64_t clear, int64_t partly) {
    if (clear + partly == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", clear + partly, label);
    if (partly > 0) text += fmt::format(" ({} partly)", partly);
  };
  int64_t mixed = 0, disagree = 0;
  for (const HeadReading& r : a.readings) {
    mixed += !r.role;
    disagree += r.disagrees;
  }
  for (HeadScore score : a.scores.columns) {
    int64_t clear = 0, partly = 0;
    for (const HeadReading& r : a.readings) {
      if (r.role == score) ++(r.reads_as.rfind("partly", 0) == 0 ? partly : clear);
    }
    add(definition_of(score).label, clear, partly);
  }
  add("mixed", mixed, 0);
  return fmt::format("{} heads: {}; of {} score and ablation disagree", a.readings.size(), text, disagree);
}

// `top` 0: all heads, in the order of the model.
Table head_table(const Analysis& a, std::size_t top) {
  std::vector<Column> columns{{"head", Align::kLeft}};
  for (HeadScore score : a.scores.columns) columns.push_back({definition_of(score).id});
  for (const ReportAblation& ablation : a.ablations) columns.push_back({ablation.ablation.id});
  columns.push_back({"reads as", Align::kLeft});
  Table table(std::move(columns));
  if (top == 0) {
    for (std::size_t i = 0; i < a.readings.size(); ++i) table.row(head_row(a, i));
  } else {
    for (const Section& section : leading_heads(a, top)) {
      table.row({Cell("\n" + section.title, Paint::kBold)});
      for (std::size_t i : section.heads) table.row(head_row(a, i));
    }
    table.row({Cell("\nby chance", Paint::kBold)});
  }
  std::vector<Cell> chance{Cell("random", Paint::kDim)};
  for (HeadScore score : a.scores.columns)
    chance.emplace_back(score_text(pooled(a.untrained, score), false), Paint::kDim);
  chance.insert(chance.end(), {Cell(""), Cell(""), Cell("same shapes, untrained", Paint::kDim)});
  table.row(std::move(chance));
  return table;
}

// Heads taken away together in the order's turn, beside as many in random order.
Table knockout_table(const Knockout& k) {
  Table table({{"together", Align::kLeft}, {k.order}, {"any as many"}});
  for (std::size_t i = 0; i < k.ordered.size(); ++i) {
    const std::size_t count = k.ordered[i].heads.size();
    table.row({fmt::format("{} head{}", count, count == 1 ? "" : "s"), signed_number(k.ordered[i].change, 2),
               fmt::format("{}±{:.2f}", signed_number(k.random[i].mean, 2), k.random[i].spread)});
  }
  return table;
}

// Of checks of one name the one that came out worst.
std::string checks_text(const std::vector<Check>& checks, const Screen& screen) {
  std::vector<Check> worst;
  for (const Check& c : checks) {
    const auto same = std::find_if(worst.begin(), worst.end(), [&](const Check& w) { return w.name == c.name; });
    if (same == worst.end()) {
      worst.push_back(c);
    } else if (!c.passed || (same->passed && c.error > same->error)) {
      *same = c;
    }
  }
  std::string text = "checks:";
  for (const Check& c : worst) {
    text += fmt::format("{} {} ({})", text.back() == ':' ? "" : ",", c.name,
                        screen.paint(c.passed ? Paint::kGreen : Paint::kRed, measured(c)));
  }
  return text;
}

nlohmann::ordered_json heads_json(const Analysis& a) {
  nlohmann::ordered_json heads = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < a.readings.size(); ++i) {
    const HeadReading& reading = a.readings[i];
    nlohmann::ordered_json scores, ablations;
    for (HeadScore score : a.scores.columns) {
      scores[definition_of(score).id] = json_of(a.scores.at(reading.head, score));
    }
    for (const ReportAblation& ablation : a.ablations) {
      const Effect& effect = ablation.effects.effects[i];
      ablations[ablation.ablation.id] = {{"change", effect.change}, {"spread", effect.spread}};
    }
    heads.push_back({{"head", to_string(reading.head)},
                     {"scores", scores},
                     {"ablations", ablations},
                     {"role", reading.role ? nlohmann::ordered_json(definition_of(*reading.role).id)
                                           : nlohmann::ordered_json(nullptr)},
                     {"reads_as", reading.reads_as},
                     {"disagrees", reading.disagrees}});
  }
  return heads;
}

nlohmann::ordered_json knockout_json(const Knockout& k) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < k.ordered.size(); ++i) {
    points.push_back({{"count", k.ordered[i].heads.size()},
                      {"heads", json_of(k.ordered[i].heads)},
                      {"change", k.ordered[i].change},
                      {"spread", k.ordered[i].spread},
                      {"random", json_of(k.random[i])}});
  }
  return {{"order", k.order}, {"ablation", k.ablation}, {"random_orders", k.orders}, {"points", points}};
}

nlohmann::ordered_json definitions_json(const Analysis& a) {
  nlohmann::ordered_json definitions;
  for (HeadScore score : a.scores.columns) {
    const ScoreDefinition& d = definition_of(score);
    definitions[d.id] = fmt::format("{}; denominator: {}", d.definition, d.denominator);
  }
  for (const ReportAblation& ablation : a.ablations) definitions[ablation.ablation.id] = ablation.ablation.definition;
  definitions["reads_as"] = reading_definition();
  return definitions;
}

class Heads : public Command {
 public:
  Description description() const override {
    return {
        "heads",
        "explain",
        "what each head does, with what its absence does beside it",
        "Scores where every head's attention goes, takes each head away alone (its output before W_O set to 0, and to "
        "its mean) and several together, and says where score and ablation disagree. Scores are means over sequences "
        "with their standard deviation, beside those of an untrained model of the same shapes. The identities that "
        "prove the figures are checked each time; one that fails is an error.",
        {{"headlight heads runs/repeats", "on random tokens and their repetition"},
         {"headlight heads runs/text --data text.txt", "on a text of your own"},
         {"headlight heads SmolLM2-135M.gguf", "of a real model, on some 200 tokens of repeats"},
         {"headlight heads runs/repeats --json | jq '.heads[] | select(.role == \"induction\")'", "for a program"}}};
  }

  void declare(Options& options) override {
    add_model_argument(options, model_);
    add_analysis_options(options, choice_, true);
    options.group("table");
    options.integer("--top", top_, {1, 1 << 20}, "heads under each heading, where the model has more than 64");
    options.flag("--all", all_, "all heads in one table, however many; --json always has all");
    options.group("machine");
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    const Subject subject = load_subject(model_, console);
    const Analysis a = analyse(subject, choice_, "", console);
    if (console.wants_json()) {
      console.print_json(json(subject, a));
    } else {
      print(subject, a, console);
    }
    demand(a.checks);
    return 0;
  }

 private:
  void print(const Subject& subject, const Analysis& a, Console& console) const {
    const SweepResult& zeroed = a.ablations.front().effects;
    console.print(fmt::format("{}\n", summary(subject.model.config())));
    console.print_wrapped(
        fmt::format("on {}, {}; {} {:.2f} nats per token; zero, mean: its change when the output z of a head becomes 0 "
                    "or its mean",
                    a.material.condition, start_text(subject, a.material.start), zeroed.metric, zeroed.clean_loss));
    const bool few = all_ || a.readings.size() <= kMostRows;
    if (!few) console.print_wrapped(role_counts(a));
    console.print("\n" + head_table(a, few ? 0 : static_cast<std::size_t>(top_)).text(console.out()) + "\n");
    for (const HeadSetEffect& effect : a.sets) {
      console.print_wrapped(fmt::format("{} together ({}): {}±{:.2f}", effect.set.name, to_string(effect.set.heads),
                                        signed_number(effect.change, 2), effect.spread));
    }
    console.print("\n" + knockout_table(a.knockout).text(console.out()) + "\n");
    console.print_wrapped(checks_text(a.checks, console.out()));
  }

  static nlohmann::ordered_json json(const Subject& subject, const Analysis& a) {
    nlohmann::ordered_json sets = nlohmann::ordered_json::array(), random;
    for (const HeadSetEffect& effect : a.sets) {
      sets.push_back({{"name", effect.set.name},
                      {"definition", effect.set.definition},
                      {"heads", json_of(effect.set.heads)},
                      {"change", effect.change},
                      {"spread", effect.spread}});
    }
    for (HeadScore score : a.scores.columns) random[definition_of(score).id] = json_of(pooled(a.untrained, score));
    const SweepResult& zeroed = a.ablations.front().effects;
    return {{"model", subject.name},
            {"summary", summary(subject.model.config())},
            {"condition", a.material.condition},
            {"start_token", json_of(a.material.start)},
            {"ids", a.material.ids()},
            {"memory_bytes", a.bytes},
            {"metric", zeroed.metric},
            {"loss", zeroed.clean_loss},
            {"definitions", definitions_json(a)},
            {"heads", heads_json(a)},
            {"untrained", random},
            {"sets", sets},
            {"knockout", knockout_json(a.knockout)},
            {"checks", json_of(a.checks)}};
  }

  ModelChoice model_;
  AnalysisChoice choice_;
  int64_t top_ = 6;
  bool all_ = false;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> heads_command() { return std::make_unique<Heads>(); }

}  // namespace headlight::cli
