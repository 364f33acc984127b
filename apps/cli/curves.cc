#include "curves.h"

#include <algorithm>
#include <limits>

#include "headlight/text/tasks.h"

namespace headlight::cli {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// Series by name, made when first met; every one gets a value for each step.
class Curves {
 public:
  explicit Curves(const std::vector<LogEntry>& entries) {
    for (const LogEntry& entry : entries) log_.steps.push_back(entry.step);
  }
  TrainingSeries& series(const std::string& name, const std::string& unit, const std::string& definition) {
    for (TrainingSeries& each : log_.series) {
      if (each.name == name) return each;
    }
    TrainingSeries made;
    made.name = name;
    made.unit = unit;
    made.definition = definition;
    made.values.assign(log_.steps.size(), kNothing);
    log_.series.push_back(std::move(made));
    return log_.series.back();
  }
  TrainingLog take() { return std::move(log_); }

 private:
  TrainingLog log_;
};

void add_losses(const LogEntry& entry, std::size_t at, Curves& curves) {
  const std::string training = "mean over the steps since the entry before, of the batches trained on";
  const std::string validation = "mean over sequences that are never trained on";
  for (const auto& [name, value] : entry.losses) curves.series(name, "nats", training).values[at] = value;
  if (!entry.validation) return;
  for (const ClassResult& c : entry.validation->classes) {
    curves.series(c.name + ", validation", "nats", validation).values[at] = c.loss;
  }
}

void add_scores(const LogEntry& entry, std::size_t at, Curves& curves) {
  for (const auto& [name, value] : entry.observed) {
    const std::optional<ScoreName> parsed = parse_score_name(name);
    if (!parsed) continue;
    TrainingSeries& series = curves.series(name, "", definition_of(parsed->score).definition);
    series.score = parsed->score;
    series.head = parsed->head;
    series.values[at] = value;
  }
}

}  // namespace

RepeatOptions scoring_repeats(const ModelConfig& config, const DataSource& data) {
  RepeatOptions options = scoring_repeats(config, *data.tokenizer());
  const auto* repeated = dynamic_cast<const Repeats*>(&data);
  if (repeated == nullptr) return options;
  // two copies and the start token must fit
  const int64_t room = (config.context - 1) / 2;
  for (int64_t n : repeated->validation_lengths()) {
    if (n >= 2 && n <= room) options.lengths.push_back(n);
  }
  return options;
}

RepeatOptions scoring_repeats(const ModelConfig& config, const Tokenizer& tokenizer) {
  constexpr int32_t kFirstPrintable = 0x20, kLastPrintable = 0x7e;
  RepeatOptions options;
  options.start = tokenizer.start_token();
  if (tokenizer.kind() == "bytes" && config.vocabulary > kLastPrintable) {
    for (int32_t c = kFirstPrintable; c <= kLastPrintable; ++c) options.pool.push_back(c);
    return options;
  }
  // tokens that stand for no text mean something to a model wherever they are
  for (int32_t id = 0; id < config.vocabulary; ++id) {
    if (!tokenizer.is_special(id) && id != options.start) options.pool.push_back(id);
  }
  return options;
}

TrainingLog training_log(const std::vector<LogEntry>& entries) {
  Curves curves(entries);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    add_losses(entries[i], i, curves);
    add_scores(entries[i], i, curves);
  }
  return curves.take();
}

}  // namespace headlight::cli
