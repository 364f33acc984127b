// headlight count: parameters, operations and memory of a model, from counting alone.

#include "headlight/model/count.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/model/run.h"
#include "numbers.h"
#include "subject.h"
#include "table.h"

namespace headlight::cli {
namespace {

// Bytes of fp32 training and of running, for batches of B sequences of T tokens.
struct Memory {
  double weights = 0;
  double gradients = 0;
  double optimiser = 0;             // AdamW's two moments
  double training_activations = 0;  // all buffers of a run with gradients
  double running_activations = 0;   // of a run without

  bool can_train = true;  // a model without logits has no loss

  double training() const { return weights + gradients + optimiser + training_activations; }
  double running() const { return weights + running_activations; }
};

Memory count_memory(const ModelConfig& config, int64_t parameters, int64_t batch, int64_t time) {
  Memory m;
  m.weights = 4.0 * static_cast<double>(parameters);
  m.gradients = m.weights;
  m.optimiser = 2 * m.weights;
  m.can_train = config.unembedding;
  RunOptions options;
  options.logits = config.unembedding;
  m.running_activations = static_cast<double>(planned_bytes<float>(config, batch, time, options));
  options.gradients = true;
  if (m.can_train) m.training_activations = static_cast<double>(planned_bytes<float>(config, batch, time, options));
  return m;
}

nlohmann::ordered_json null_unless(bool holds, double value) {
  return holds ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

// Equal parts of consecutive blocks stand in one line: "blocks.0-3.attn".
struct PartLine {
  std::string part, suffix;
  int64_t first = -1, last = -1;
  PartCost each;

  std::string name() const {
    if (first < 0) return part;
    return first == last ? part : fmt::format("blocks.{}-{}.{}", first, last, suffix);
  }
  int64_t count() const { return first < 0 ? 1 : last - first + 1; }
};

std::vector<PartLine> part_lines(const ModelCost& cost) {
  std::vector<PartLine> lines;
  for (const PartCost& p : cost.parts) {
    PartLine line{p.part, "", -1, -1, p};
    const std::string start = "blocks.";
    if (p.part.rfind(start, 0) == 0) {
      const std::size_t dot = p.part.find('.', start.size());
      line.first = line.last = std::stoll(p.part.substr(start.size(), dot - start.size()));
      line.suffix = p.part.substr(dot + 1);
      bool joined = false;
      for (PartLine& earlier : lines) {
        if (earlier.suffix == line.suffix && earlier.last + 1 == line.first &&
            earlier.each.parameters == p.parameters && earlier.each.flops == p.flops) {
          earlier.last = line.last;
          joined = true;
          break;
        }
      }
      if (joined) continue;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

class Count : public Command {
 public:
  Description description() const override {
    return {"count",
            "look",
            "parameters, operations and memory of a model, part by part",
            "Counts without running or allocating anything: from a run's folder, a config.json, or the model options. "
            "A multiply and an add are two operations; norms and activations are not counted (a percent or less). "
            "Attention counts the pairs of tokens that see each other.",
            {{"headlight count --blocks 6 --heads 6 --width 384 --context 256", "of a model described here"},
             {"headlight count runs/a --json", "of a trained one, for a program"}}};
  }

  void declare(Options& options) override {
    options.argument("MODEL", model_, std::string(kModelMeaning) + ", or a config.json", false);
    options.group("sizes");
    options.optional_integer("--time", time_, {1, int64_t{1} << 30}, "tokens of a sequence, T [the context]");
    options.integer("--batch", batch_, {1, 1 << 20}, "sequences side by side, B, for the memory");
    add_model_options(options, config_);
    options.integer("--vocabulary", config_.vocabulary, {1, 1 << 24}, "tokens that the model knows, V");
    options.integer("--context", config_.context, {1, 1 << 30}, "longest sequence");
  }

  int run(const Options& options, Console& console) override {
    const std::vector<std::string> given = options.given_in(kModelGroup);
    if (!model_.empty() && !given.empty()) {
      throw Error(ErrorKind::kUsage, "", given.front() + " does not go with MODEL, which says what the model is");
    }
    const ModelConfig config = model_.empty() ? resolve(config_, option_of_field) : load_config(model_);
    const int64_t time = time_.value_or(config.context);
    if (time > config.context) {
      throw Error(ErrorKind::kUsage, "",
                  fmt::format("--time {} is above the model's context, {}", time, config.context));
    }
    const ModelCost cost = count_cost(config, time);
    const Memory memory = count_memory(config, cost.parameters, batch_, time);
    if (console.wants_json()) {
      print_json(config, cost, memory, console);
    } else {
      print_text(config, cost, memory, console);
    }
    return 0;
  }

 private:
  void print_text(const ModelConfig& config, const ModelCost& cost, const Memory& memory, Console& console) const {
    const double time = static_cast<double>(cost.time);
    console.print(fmt::format("{}, vocabulary {}, sequences of {} tokens\n\n", summary(config),
                              grouped(config.vocabulary), grouped(cost.time)));
    Table parts(
        {{"part", Align::kLeft}, {"parameters"}, {"share"}, {"FLOPs/token"}, {"share"}, {"counted", Align::kLeft}});
    for (const PartLine& line : part_lines(cost)) {
      const double n = static_cast<double>(line.count());
      const double parameters = n * static_cast<double>(line.each.parameters);
      parts.row({line.name(),
                 grouped(line.count() * line.each.parameters),
                 percent(parameters, static_cast<double>(cost.parameters)),
                 rounded(n * line.each.flops / time),
                 percent(n * line.each.flops, cost.forward_flops),
                 {line.each.note, Paint::kDim}});
    }
    parts.row({{"total", Paint::kBold}, grouped(cost.parameters), "", rounded(cost.flops_per_token()), "", ""});
    console.print(parts.text(console.out()) + "\n");

    Table operations({{"operations", Align::kLeft}, {"forward"}, {"backward"}, {"training"}});
    const auto row = [&](const std::string& what, double sequences) {
      operations.row({what, rounded(sequences * cost.forward_flops), rounded(sequences * cost.backward_flops),
                      rounded(sequences * (cost.forward_flops + cost.backward_flops))});
    };
    row("per token", 1 / time);
    row(fmt::format("per sequence of {}", cost.time), 1);
    row(fmt::format("per batch of {} x {}", batch_, cost.time), static_cast<double>(batch_));
    console.print(operations.text(console.out()) +
                  fmt::format("of the forward, {} are scores and values of attention\n\n",
                              percent(cost.attention_flops, cost.forward_flops)));

    Table bytes({{fmt::format("memory, fp32, {} x {}", batch_, cost.time), Align::kLeft}, {"running"}, {"training"}});
    const auto row_of = [&](const Cell& name, const std::string& running, double training) {
      bytes.row({name, running, memory.can_train ? byte_size(training) : "-"});
    };
    row_of("weights", byte_size(memory.weights), memory.weights);
    row_of("gradients", "", memory.gradients);
    row_of("AdamW moments", "", memory.optimiser);
    row_of("activations", byte_size(memory.running_activations), memory.training_activations);
    row_of({"together", Paint::kBold}, byte_size(memory.running()), memory.training());
    console.print(bytes.text(console.out()));
  }

  void print_json(const ModelConfig& config, const ModelCost& cost, const Memory& memory, Console& console) const {
    const double time = static_cast<double>(cost.time);
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const PartCost& p : cost.parts) {
      parts.push_back(
          {{"part", p.part}, {"parameters", p.parameters}, {"forward_flops", p.flops}, {"counted", p.note}});
    }
    console.print_json({{"model", nlohmann::ordered_json::parse(to_json(config))},
                        {"summary", summary(config)},
                        {"time", cost.time},
                        {"batch", batch_},
                        {"parts", parts},
                        {"parameters", cost.parameters},
                        {"forward_flops", cost.forward_flops},
                        {"backward_flops", cost.backward_flops},
                        {"attention_forward_flops", cost.attention_flops},
                        {"forward_flops_per_token", cost.flops_per_token()},
                        {"training_flops_per_token", (cost.forward_flops + cost.backward_flops) / time},
                        {"memory_bytes",
                         {{"weights", memory.weights},
                          {"gradients", memory.gradients},
                          {"optimiser", memory.optimiser},
                          {"activations_running", memory.running_activations},
                          {"activations_training", null_unless(memory.can_train, memory.training_activations)},
                          {"running", memory.running()},
                          {"training", null_unless(memory.can_train, memory.training())}}}});
  }

  std::string model_;
  std::optional<int64_t> time_;
  int64_t batch_ = 1;
  ModelConfig config_;
};

}  // namespace

std::unique_ptr<Command> count_command() { return std::make_unique<Count>(); }

}  // namespace headlight::cli
