#include "headlight/train/log.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "train/log_file.h"

namespace headlight {
namespace {

using nlohmann::ordered_json;

constexpr double kAny = std::numeric_limits<double>::max();

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json numbers(const NamedNumbers& list) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, value] : list) json[name] = number(value);
  return json;
}

ordered_json validation_json(const Evaluation& validation) {
  ordered_json classes = ordered_json::array();
  for (const ClassResult& c : validation.classes) {
    classes.push_back({{"name", c.name},
                       {"targets", c.targets},
                       {"loss", number(c.loss)},
                       {"accuracy", number(c.accuracy)},
                       {"spans", c.spans},
                       {"span_accuracy", number(c.span_accuracy)}});
  }
  return {{"sequences", validation.sequences},
          {"targets", validation.targets},
          {"loss", number(validation.loss)},
          {"accuracy", number(validation.accuracy)},
          {"classes", classes}};
}

double read_number(JsonReader& read, const std::string& key) {
  if (read.value(key).is_null()) return std::numeric_limits<double>::quiet_NaN();
  return read.number(key, -kAny, kAny);
}

// The members keep the order of the line, which nlohmann::json would sort: `ordered` is the same object.
NamedNumbers read_numbers(JsonReader& read, const ordered_json& ordered, const std::string& key) {
  JsonReader object = read.object(key);
  NamedNumbers list;
  for (const auto& [name, value] : ordered.at(key).items()) list.emplace_back(name, read_number(object, name));
  return list;
}

Evaluation read_validation(JsonReader read, const std::string& where) {
  Evaluation validation;
  validation.sequences = read.whole("sequences", 0);
  validation.targets = read.whole("targets", 0);
  validation.loss = read_number(read, "loss");
  validation.accuracy = read_number(read, "accuracy");
  const nlohmann::json& classes = read.value("classes");
  if (!classes.is_array()) read.fail("classes", "found no list", "expected a list");
  for (const nlohmann::json& element : classes) {
    JsonReader c(element, where + ": classes");
    validation.classes.push_back({c.text("name"), c.whole("targets", 0), read_number(c, "loss"),
                                  read_number(c, "accuracy"), c.whole("spans", 0), read_number(c, "span_accuracy")});
    c.finish();
  }
  read.finish();
  return validation;
}

}  // namespace

std::string to_json_line(const LogEntry& entry) {
  ordered_json json{{"step", entry.step}, {"tokens", entry.tokens}, {"seconds", number(entry.seconds)}};
  if (entry.loss) {
    json["loss"] = number(*entry.loss);
    json["losses"] = numbers(entry.losses);
    json["rate"] = number(entry.rate);
    json["gradient_norm"] = number(entry.gradient_norm);
  }
  if (entry.validation) json["validation"] = validation_json(*entry.validation);
  if (!entry.observed.empty()) json["observed"] = numbers(entry.observed);
  return json.dump();
}

LogEntry log_entry_from_json(const std::string& line, const std::string& where) {
  const nlohmann::json json = parse_json(line, where);
  const ordered_json ordered = ordered_json::parse(line);
  JsonReader read(json, where);
  LogEntry entry;
  entry.step = read.whole("step", 0);
  entry.tokens = read.whole("tokens", 0);
  entry.seconds = read_number(read, "seconds");
  if (json.contains("loss")) {
    entry.loss = read_number(read, "loss");
    entry.losses = read_numbers(read, ordered, "losses");
    entry.rate = read_number(read, "rate");
    entry.gradient_norm = read_number(read, "gradient_norm");
  }
  if (read.has("validation")) entry.validation = read_validation(read.object("validation"), where);
  if (read.has("observed")) entry.observed = read_numbers(read, ordered, "observed");
  read.finish();
  return entry;
}

std::vector<std::string> log_lines_of(const std::filesystem::path& file) {
  const std::string content = read_file(file);
  std::vector<std::string> lines;
  for (std::size_t begin = 0;;) {
    const std::size_t end = content.find('\n', begin);
    if (end == std::string::npos) return lines;
    lines.push_back(content.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::vector<LogEntry> read_log(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "log.jsonl";
  std::vector<LogEntry> entries;
  for (const std::string& line : log_lines_of(file)) {
    entries.push_back(log_entry_from_json(line, fmt::format("{}, line {}", file.string(), entries.size() + 1)));
  }
  return entries;
}

}  // namespace headlight
