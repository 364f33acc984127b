#include "headlight/train/options.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/kernels/isa.h"
#include "train/run_folder.h"

namespace headlight {
namespace {

std::string same_name(const std::string& field) { return field; }

class Checker {
 public:
  explicit Checker(std::string (*naming)(const std::string&)) : name_(naming != nullptr ? naming : same_name) {}

  std::string name(const std::string& field) const { return name_(field); }

  template <class Number>
  void refuse_unless(bool fits, const std::string& field, Number found, const std::string& expected) const {
    if (!fits) throw Error(ErrorKind::kUsage, name_(field), fmt::format("found {}", found), expected);
  }

  void at_least(const std::string& field, int64_t found, int64_t least) const {
    refuse_unless(found >= least, field, found, fmt::format("expected a whole number of at least {}", least));
  }

  // least <= found < end
  void in_range(const std::string& field, double found, double least, double end) const {
    const std::string expected = std::isinf(end) ? fmt::format("expected a number of at least {}", least)
                                                 : fmt::format("expected a number from {} to less than {}", least, end);
    refuse_unless(std::isfinite(found) && found >= least && found < end, field, found, expected);
  }

 private:
  std::string (*name_)(const std::string&);
};

// Every option beside model and data, once: `visit(name, member)`.
template <class Options, class Visit>
void for_each_option(Options& options, Visit visit) {
  visit("steps", options.steps);
  visit("batch", options.batch);
  visit("microbatches", options.microbatches);
  visit("seed", options.seed);
  visit("rate", options.rate);
  visit("final_rate", options.final_rate);
  visit("warmup", options.warmup);
  visit("beta1", options.beta1);
  visit("beta2", options.beta2);
  visit("epsilon", options.epsilon);
  visit("decay", options.decay);
  visit("clip", options.clip);
  visit("log_interval", options.log_interval);
  visit("validation_interval", options.validation_interval);
  visit("observe_interval", options.observe_interval);
  visit("checkpoint_interval", options.checkpoint_interval);
}

struct ReadOption {
  JsonReader& read;
  void operator()(const char* name, int64_t& value) const { value = read.whole(name, 0); }
  void operator()(const char* name, double& value) const {
    value = read.number(name, 0, std::numeric_limits<double>::max());
  }
};

}  // namespace

TrainerOptions resolve(const TrainerOptions& options, std::string (*name_of_field)(const std::string& field)) {
  if (!options.data) throw LogicError("TrainerOptions", "there is no data");
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  const Checker check(name_of_field);
  check.at_least("steps", options.steps, 1);
  check.at_least("batch", options.batch, 1);
  check.at_least("microbatches", options.microbatches, 1);
  check.refuse_unless(options.batch % options.microbatches == 0, "microbatches", options.microbatches,
                      fmt::format("expected a divisor of {} {}", check.name("batch"), options.batch));
  check.at_least("seed", options.seed, 0);
  check.in_range("rate", options.rate, 0, kUnbounded);
  check.in_range("final_rate", options.final_rate, 0, kUnbounded);
  check.at_least("warmup", options.warmup, 0);
  check.in_range("beta1", options.beta1, 0, 1);
  check.in_range("beta2", options.beta2, 0, 1);
  check.in_range("epsilon", options.epsilon, 0, kUnbounded);
  check.in_range("decay", options.decay, 0, kUnbounded);
  check.in_range("clip", options.clip, 0, kUnbounded);
  check.at_least("log_interval", options.log_interval, 0);
  check.at_least("validation_interval", options.validation_interval, 0);
  check.at_least("observe_interval", options.observe_interval, 0);
  check.at_least("checkpoint_interval", options.checkpoint_interval, 0);

  TrainerOptions resolved = options;
  resolved.model.vocabulary = options.data->tokenizer()->vocabulary();
  resolved.model.context = options.data->context();
  resolved.model = resolve(resolved.model, name_of_field);
  return resolved;
}

std::string training_json(const TrainerOptions& options) {
  nlohmann::ordered_json training = nlohmann::ordered_json::object();
  for_each_option(options, [&](const char* name, const auto& value) { training[name] = value; });
  return pretty_json({{"format", 1},
                      {"version", HEADLIGHT_VERSION},
                      {"instruction_set", active_isa()},
                      {"training", training},
                      {"model", nlohmann::ordered_json::parse(to_json(options.model))},
                      {"data", nlohmann::ordered_json::parse(options.data->to_json())}});
}

TrainerOptions options_from_training_json(const std::string& text, const std::string& where,
                                          std::vector<std::string>& messages) {
  const nlohmann::json json = parse_json(text, where);
  JsonReader read(json, where);
  read.whole("format", 1, 1);
  read.text("version");
  if (const std::string isa = read.text("instruction_set"); isa != active_isa()) {
    messages.push_back(
        fmt::format("the run began on {} and goes on on {}: its last bits will differ", isa, active_isa()));
  }
  TrainerOptions options;
  JsonReader training = read.object("training");
  for_each_option(options, ReadOption{training});
  training.finish();
  options.model = model_config_from_json(read.value("model").dump(), where + ": model");
  options.data = data_source_from_json(read.value("data").dump(), where + ": data");
  read.finish();
  try {
    return resolve(options);
  } catch (const Error& error) {
    // an option that a person may not give is bad data when a file holds it
    if (error.kind() != ErrorKind::kUsage) throw;
    throw Error(ErrorKind::kBadData, where + ": " + error.where(), error.found(), error.expected());
  }
}

}  // namespace headlight
