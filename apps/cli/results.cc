#include "results.h"

#include <fmt/format.h>

#include <cmath>

#include "utf8.h"

namespace headlight::cli {

using nlohmann::ordered_json;

ordered_json json_of(const Evaluation& e) {
  ordered_json classes = ordered_json::array();
  for (const ClassResult& c : e.classes) {
    classes.push_back({{"name", c.name},
                       {"targets", c.targets},
                       {"loss", c.loss},
                       {"perplexity", std::exp(c.loss)},
                       {"accuracy", c.accuracy},
                       {"spans", c.spans},
                       {"span_accuracy", c.span_accuracy}});
  }
  return {{"sequences", e.sequences},       {"targets", e.targets},   {"loss", e.loss},
          {"perplexity", std::exp(e.loss)}, {"accuracy", e.accuracy}, {"classes", classes}};
}

ordered_json json_of(const Formation& f) {
  const auto interval = [](const StepInterval& i) { return ordered_json{{"from", i.from}, {"to", i.to}}; };
  return {{"heads", interval(f.heads)},      {"drop", f.drop ? interval(*f.drop) : ordered_json(nullptr)},
          {"together", f.together},          {"induction", json_of(f.induction)},
          {"previous", json_of(f.previous)}, {"text", f.text}};
}

ordered_json json_of(const Estimate& e) { return {{"mean", e.mean}, {"spread", e.spread}}; }

ordered_json json_of(const std::vector<HeadId>& heads) {
  ordered_json list = ordered_json::array();
  for (const HeadId& head : heads) list.push_back(to_string(head));
  return list;
}

ordered_json json_of(const std::optional<int32_t>& token) {
  return token ? ordered_json(*token) : ordered_json(nullptr);
}

ordered_json json_of(const std::vector<Check>& checks) {
  ordered_json list = ordered_json::array();
  for (const Check& c : checks) {
    list.push_back({{"name", c.name},
                    {"error", c.error},
                    {"bound", c.bound},
                    {"measured", measured(c)},
                    {"passed", c.passed},
                    {"definition", c.definition}});
  }
  return list;
}

ordered_json json_of_text(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  ordered_json list = ordered_json::array();
  for (char c : bytes) list.push_back(static_cast<uint8_t>(c));
  return list;
}

std::string validation_text(const Evaluation& e) {
  std::string text = "validation:";
  if (e.classes.size() < 2) return fmt::format("validation: loss {:.4f} nats", e.loss);
  for (const ClassResult& c : e.classes) {
    if (c.targets > 0) text += fmt::format("{} {} {:.2f}", text.back() == ':' ? "" : ",", c.name, c.loss);
  }
  return text + " nats";
}

}  // namespace headlight::cli
