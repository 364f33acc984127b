#include "headlight/explain/sweep_record.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/kernels/isa.h"

namespace headlight {
namespace {

constexpr const char* kFormat = "headlight-sweep-1";

template <class Numbers>
std::string hash_of(const Numbers& numbers) {
  return content_hash(std::as_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.size()))));
}
std::string hash_of(const Buffer<int32_t>& numbers) {
  return content_hash(std::as_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.count()))));
}
std::string hash_of(const Buffer<int64_t>& numbers) {
  return content_hash(std::as_bytes(std::span(numbers.data(), static_cast<std::size_t>(numbers.count()))));
}

// JSON has no NaN: what is not finished is null, and so is a sum that is no number, which is then computed again.
nlohmann::json json_of(const std::vector<double>& sums) {
  nlohmann::json list = nlohmann::json::array();
  for (double sum : sums) list.push_back(std::isfinite(sum) ? nlohmann::json(sum) : nlohmann::json(nullptr));
  return list;
}

}  // namespace

SweepRecord::SweepRecord(const Model& model, const Batch& batch, const LossMetric& metric, const std::string& version)
    : sequences_(batch.size) {
  const View<const float, 1> weights = model.weights();
  const std::string all =
      version + "\n" + active_isa() + "\n" + to_json(model.config()) + "\n" +
      content_hash(std::as_bytes(std::span(weights.data, static_cast<std::size_t>(weights.count())))) + "\n" +
      std::to_string(batch.size) + " " + std::to_string(batch.time) + "\n" + hash_of(batch.tokens) +
      hash_of(batch.targets) + hash_of(batch.types) + hash_of(batch.begins) + hash_of(batch.lengths) +
      hash_of(metric.chosen);
  key_ = hash_of(all);
}

void SweepRecord::load(const std::filesystem::path& path) {
  const std::string where = path.string();
  const nlohmann::json json = parse_json_file(path);
  JsonReader read(json, where);
  const std::string format = read.text("format");
  if (format != kFormat) read.fail("format", in_quotes(format), std::string("expected ") + kFormat);
  const std::string key = read.text("key");
  const std::string hash = read.text("hash");
  const nlohmann::json& effects = read.value("effects");
  read.finish();
  if (!effects.is_object() || hash_of(effects.dump()) != hash) {
    throw Error(ErrorKind::kBadData, where, "the file is damaged: its content is not what its hash says",
                "remove it to begin anew");
  }
  if (key != key_) {
    throw Error(ErrorKind::kBadData, where,
                "it keeps the runs of another model, text, version of headlight or instruction set",
                "name another file, or remove it to begin anew");
  }
  for (const auto& [name, sums] : effects.items()) {
    if (!sums.is_array() || static_cast<int64_t>(sums.size()) != sequences_) {
      throw Error(ErrorKind::kBadData, where,
                  "effect " + name + " is not a list of " + std::to_string(sequences_) + " numbers",
                  "remove it to begin anew");
    }
    for (int64_t b = 0; b < sequences_; ++b) {
      const nlohmann::json& sum = sums[static_cast<std::size_t>(b)];
      if (sum.is_number()) put(name, b, sum.get<double>());
    }
  }
}

void SweepRecord::save(const std::filesystem::path& path) const {
  nlohmann::json effects = nlohmann::json::object();
  for (const auto& [name, sums] : sums_) effects[name] = json_of(sums);
  const nlohmann::ordered_json json{
      {"format", kFormat}, {"key", key_}, {"hash", hash_of(effects.dump())}, {"effects", effects}};
  write_file_atomically(path, json.dump() + "\n");
}

std::string SweepRecord::name_of(const std::vector<Intervention>& group) {
  std::string all;
  for (const Intervention& x : group) {
    nlohmann::ordered_json json{{"site", x.site},
                                {"kind", static_cast<int>(x.kind)},
                                {"head", x.head.value_or(-1)},
                                {"position", x.position.value_or(-1)},
                                {"entry", x.entry.value_or(-1)},
                                {"factor", x.factor},
                                {"values_batch", x.values_batch},
                                {"values_time", x.values_time}};
    if (x.values) json["values"] = hash_of(*x.values);
    all += json.dump() + "\n";
  }
  return hash_of(all);
}

const std::vector<double>* SweepRecord::find(const std::string& name) const {
  const auto found = sums_.find(name);
  return found == sums_.end() ? nullptr : &found->second;
}

void SweepRecord::put(const std::string& name, int64_t sequence, double sum) {
  const auto [place, is_new] = sums_.try_emplace(name);
  if (is_new) place->second.assign(static_cast<std::size_t>(sequences_), std::numeric_limits<double>::quiet_NaN());
  place->second.at(static_cast<std::size_t>(sequence)) = sum;
}

}  // namespace headlight
