// The report's data as one JSON object; apps/web/SCHEMA.md says what each field means.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "explain/page_text.h"
#include "headlight/explain/report.h"
#include "headlight/model/count.h"

namespace headlight {
namespace {

using Json = nlohmann::ordered_json;

Json text(const std::string& bytes) { return shown_as_utf8(bytes); }

// JSON has no NaN: what could not be computed is null
Json figure(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// a float in as few digits as it is worth
double rounded(float value) { return std::stod(fmt::format("{:.5g}", value)); }

Json estimate(double mean, double spread) { return {{"mean", figure(mean)}, {"spread", figure(spread)}}; }

Json whole_or_text(uint64_t number) {
  constexpr uint64_t kExact = uint64_t{1} << 53;
  return number <= kExact ? Json(number) : Json(std::to_string(number));
}

class ReportWriter {
 public:
  explicit ReportWriter(const Report& report) : report_(report), config_(resolve(report.config)) { check_parts(); }

  Json all() {
    Json json;
    json["format"] = "headlight-report-1";
    json["title"] = text(report_.title);
    json["created"] = text(report_.created);
    json["version"] = text(report_.version);
    json["run"] = run();
    json["checks"] = checks();
    json["model"] = model();
    if (report_.training) json["training"] = training();
    json["heads"] = heads();
    if (report_.knockout) json["knockout"] = knockout(*report_.knockout);
    json["texts"] = texts();
    json["cost"] = cost();
    if (const Json rest = vocabulary(); !rest.empty()) json["vocabulary"] = rest;
    return json;
  }

 private:
  void check_parts() const {
    const auto check = [](std::size_t found, std::size_t wanted, const std::string& what) {
      if (found == wanted) return;
      throw LogicError("report", std::to_string(found) + " " + what + "; wanted " + std::to_string(wanted));
    };
    const std::size_t count = static_cast<std::size_t>(config_.blocks * config_.heads);
    check(static_cast<std::size_t>(report_.scores.blocks * report_.scores.heads), count, "heads with scores");
    check(report_.readings.size(), count, "readings");
    if (!report_.top_writes.empty()) check(report_.top_writes.size(), count, "heads with top writes");
    for (const ReportAblation& one : report_.ablations) check(one.effects.effects.size(), count, "ablated heads");
    for (const ReportText& one : report_.texts) {
      for (const AttentionMap& map : one.maps) {
        check(static_cast<std::size_t>(map.time), one.ids.size(), "rows of a map on " + one.name);
      }
    }
    if (!report_.token_text) throw LogicError("report", "token_text is missing");
  }

  // a string when its bytes are UTF-8 by themselves, else its bytes
  Json token(int32_t id) const {
    const std::string bytes = report_.token_text(id);
    if (is_utf8(bytes)) return bytes;
    Json list = Json::array();
    for (char c : bytes) list.push_back(static_cast<uint8_t>(c));
    return list;
  }

  Json run() const {
    const ReportRun& run = report_.run;
    Json json{{"model", text(run.model)}, {"data", text(run.data)}, {"seed", whole_or_text(run.seed)},
              {"isa", text(run.isa)},     {"threads", run.threads}, {"command", text(run.command)}};
    if (!run.normalisation.empty()) json["normalisation"] = text(run.normalisation);
    return json;
  }

  Json checks() const {
    Json list = Json::array();
    for (const Check& check : report_.checks) {
      Json json{{"name", text(check.name)}, {"value", figure(check.error)}, {"bound", figure(check.bound)}};
      if (check.same_bits) json["text"] = measured(check);
      json["passed"] = check.passed;
      json["definition"] = text(check.definition);
      list.push_back(std::move(json));
    }
    return list;
  }

  // One level: "biases.query_key_value" for what is nested, lists as text.
  static void flatten(const Json& settings, const std::string& prefix, Json& flat) {
    for (const auto& [key, value] : settings.items()) {
      if (value.is_object()) {
        flatten(value, prefix + key + ".", flat);
      } else {
        flat[prefix + key] = value.is_array() ? Json(value.dump()) : value;
      }
    }
  }

  Json model() const {
    Json settings = Json::object();
    flatten(Json::parse(to_json(config_)), "", settings);
    for (const char* shown_apart : {"model_type", "vocabulary", "context", "width", "blocks", "heads"}) {
      settings.erase(shown_apart);
    }
    return {{"summary", summary(config_)},  {"blocks", config_.blocks},   {"heads", config_.heads},
            {"width", config_.width},       {"context", config_.context}, {"vocabulary", config_.vocabulary},
            {"config", std::move(settings)}};
  }

  Json training() const {
    Json list = Json::array();
    for (const TrainingSeries& series : report_.training->series) {
      Json json{{"name", text(series.name)}, {"group", series.score ? "score" : "loss"}, {"unit", text(series.unit)}};
      if (!series.definition.empty()) json["definition"] = text(series.definition);
      if (series.score) {
        json["kind"] = definition_of(*series.score).id;
        json["block"] = series.head.block;
        json["head"] = series.head.head;
      }
      json["values"] = Json::array();
      for (double value : series.values) json["values"].push_back(figure(value));
      list.push_back(std::move(json));
    }
    Json json{{"steps", report_.training->steps}, {"series", std::move(list)}};
    if (report_.formation) {
      json["formation"] = {{"from", report_.formation->heads.from},
                           {"to", report_.formation->heads.to},
                           {"text", text(report_.formation->text)}};
    }
    return json;
  }

  Json heads() const {
    const HeadScores& scores = report_.scores;
    Json columns = Json::array();
    for (HeadScore score : scores.columns) {
      const ScoreDefinition& definition = definition_of(score);
      Json baseline = nullptr;
      if (report_.untrained && report_.untrained->has(score)) {
        const Estimate chance = pooled(*report_.untrained, score);
        baseline = estimate(chance.mean, chance.spread);
      }
      columns.push_back({{"id", definition.id},
                         {"label", definition.label},
                         {"definition", definition.definition + "; denominator: " + definition.denominator},
                         {"baseline", std::move(baseline)}});
    }
    Json ablations = Json::array();
    std::string condition = scores.condition;
    for (const ReportAblation& one : report_.ablations) {
      ablations.push_back(
          {{"id", one.ablation.id},
           {"label", one.ablation.id},
           {"definition", text("change of the " + one.effects.metric + " when " + one.ablation.definition)},
           {"unit", "nats per token"}});
    }
    if (!report_.ablations.empty()) {
      condition += "; one head ablated at a time; " + report_.ablations.front().effects.metric + ", nats per token";
    }
    Json json{{"condition", text(condition)},
              {"spread", "standard deviation over " + std::to_string(scores.sequences) + " sequences"},
              {"scores", std::move(columns)},
              {"ablations", std::move(ablations)},
              {"rows", Json::array()}};
    const std::vector<HeadId> order = all_heads(config_);
    for (std::size_t i = 0; i < order.size(); ++i) json["rows"].push_back(head_row(order[i], i));
    if (!report_.top_writes.empty()) json["writes"] = writes_definition(config_);
    return json;
  }

  Json head_row(const HeadId& head, std::size_t index) const {
    const HeadReading& reading = report_.readings[index];
    Json scores = Json::object();
    for (HeadScore score : report_.scores.columns) {
      const Estimate& value = report_.scores.at(head, score);
      scores[definition_of(score).id] = estimate(value.mean, value.spread);
    }
    Json ablations = Json::object();
    for (const ReportAblation& one : report_.ablations) {
      const Effect& effect = one.effects.effects[index];
      ablations[one.ablation.id] = estimate(effect.change, effect.spread);
    }
    Json json{{"block", head.block},
              {"head", head.head},
              {"scores", std::move(scores)},
              {"ablations", std::move(ablations)},
              {"role", reading.role ? Json(definition_of(*reading.role).id) : Json(nullptr)},
              {"reads_as", text(reading.reads_as)},
              {"disagrees", reading.disagrees}};
    if (!report_.top_writes.empty()) {
      json["top_writes"] = Json::array();
      for (const TokenWeight& write : report_.top_writes[index]) {
        json["top_writes"].push_back(
            {{"id", write.token}, {"token", token(write.token)}, {"value", rounded(write.value)}});
      }
    }
    return json;
  }

  Json knockout(const Knockout& k) const {
    Json ordered = Json::array();
    Json random = Json::array();
    for (std::size_t i = 0; i < k.ordered.size(); ++i) {
      Json names = Json::array();
      for (const HeadId& head : k.ordered[i].heads) names.push_back(to_string(head));
      const std::size_t count = k.ordered[i].heads.size();
      ordered.push_back({{"count", count}, {"heads", std::move(names)}, {"change", figure(k.ordered[i].change)}});
      random.push_back({{"count", count}, {"mean", figure(k.random[i].mean)}, {"spread", figure(k.random[i].spread)}});
    }
    return {{"condition", text(report_.scores.condition)},
            {"order", text(k.order)},
            {"spread", "standard deviation over " + std::to_string(k.orders) + " random orders"},
            {"definition", text("change of the " + k.metric + " with this many heads ablated together (" + k.ablation +
                                " at z): in this order, and as many in random order")},
            {"unit", "nats per token"},
            {"baseline_loss", figure(k.clean_loss)},
            {"ordered", std::move(ordered)},
            {"random", std::move(random)}};
  }

  Json texts() {
    Json list = Json::array();
    for (const ReportText& one : report_.texts) {
      Json tokens = Json::array();
      for (int32_t id : one.ids) {
        tokens.push_back(token(id));
        in_texts_.insert(id);
      }
      Json maps = Json::array();
      for (const AttentionMap& map : one.maps) maps.push_back(attention_map(map));
      list.push_back({{"name", text(one.name)},
                      {"tokens", std::move(tokens)},
                      {"ids", one.ids},
                      {"start_token", one.start_token},
                      {"causal", config_.causal},
                      {"maps", std::move(maps)}});
    }
    return list;
  }

  Json attention_map(const AttentionMap& map) {
    Json json{{"block", map.head.block},
              {"head", map.head.head},
              {"encoding", "u8-square"},
              {"row_max", base64(little_endian(map.row_max))},
              {"data", base64(map.bytes)}};
    if (map.top == 0) return json;
    Json ids = Json::array();
    Json values = Json::array();
    for (const TokenWeight& write : map.writes) {
      ids.push_back(write.token);
      values.push_back(rounded(write.value));
      written_.insert(write.token);
    }
    json["writes"] = {{"top", map.top}, {"ids", std::move(ids)}, {"values", std::move(values)}};
    return json;
  }

  static std::vector<uint8_t> little_endian(const std::vector<float>& values) {
    std::vector<uint8_t> bytes;
    for (float value : values) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(bits >> shift));
    }
    return bytes;
  }

  Json cost() const {
    const ModelCost cost = count_cost(config_, report_.cost.time);
    const double time = static_cast<double>(std::max<int64_t>(1, cost.time));
    Json parts = Json::array();
    for (const PartCost& part : cost.parts) {
      Json json{{"name", part.part}, {"parameters", part.parameters}, {"flops_per_token", part.flops / time}};
      if (!part.note.empty()) json["note"] = text(part.note);
      parts.push_back(std::move(json));
    }
    Json json{{"parts", std::move(parts)},
              {"total", {{"parameters", cost.parameters}, {"flops_per_token", cost.flops_per_token()}}}};
    if (report_.cost.training_tokens) {
      const double tokens = static_cast<double>(*report_.cost.training_tokens);
      json["training"] = {{"tokens", *report_.cost.training_tokens},
                          {"flops", tokens * (cost.forward_flops + cost.backward_flops) / time}};
      if (!report_.cost.training_note.empty()) json["training"]["note"] = text(report_.cost.training_note);
    }
    json["assumptions"] = "a multiply-add is 2 FLOPs; attention on " + std::to_string(report_.cost.time) +
                          " tokens, visible pairs only; norms, activations and the softmax are not counted; the "
                          "backward is 2 times the forward's products and 2.5 times its attention";
    return json;
  }

  // after texts(): tokens that maps name and no text holds
  Json vocabulary() const {
    Json rest = Json::object();
    for (int32_t id : written_) {
      if (in_texts_.count(id) == 0) rest[std::to_string(id)] = token(id);
    }
    return rest;
  }

  const Report& report_;
  const ModelConfig config_;
  std::set<int32_t> in_texts_;  // tokens that a text holds
  std::set<int32_t> written_;   // tokens that a map's writes name
};

}  // namespace

std::string report_json(const Report& report) { return without_tags(ReportWriter(report).all().dump()); }

}  // namespace headlight
