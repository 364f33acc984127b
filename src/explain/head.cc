#include "headlight/explain/head.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "headlight/base/error.h"

namespace headlight {
namespace {

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stopped != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string to_string(const HeadId& head) { return std::to_string(head.block) + "." + std::to_string(head.head); }

std::string to_string(const std::vector<HeadId>& heads) {
  std::string text;
  for (const HeadId& head : heads) text += (text.empty() ? "" : ", ") + to_string(head);
  return text;
}

std::optional<HeadId> read_head(const std::string& text) {
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return std::nullopt;
  const std::optional<int64_t> block = whole_number(text.substr(0, point));
  const std::optional<int64_t> head = whole_number(text.substr(point + 1));
  if (!block || !head) return std::nullopt;
  return HeadId{*block, *head};
}

HeadId parse_head(const std::string& text, const ModelConfig& config) {
  const std::optional<HeadId> head = read_head(text);
  if (!head) throw Error(ErrorKind::kUsage, "head " + text, "is not a head", "expected BLOCK.HEAD, for example 1.0");
  if (head->block < config.blocks && head->head < config.heads) return *head;
  throw Error(ErrorKind::kUsage, "head " + text, "the model has no such head",
              config.blocks == 0 ? "it has no block at all"
                                 : "expected 0.0 to " + to_string(HeadId{config.blocks - 1, config.heads - 1}));
}

std::vector<HeadId> all_heads(const ModelConfig& config) {
  std::vector<HeadId> heads;
  for (int64_t block = 0; block < config.blocks; ++block) {
    for (int64_t head = 0; head < config.heads; ++head) heads.push_back({block, head});
  }
  return heads;
}

Estimate estimate_of(const std::vector<double>& values) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const double count = static_cast<double>(values.size());
  Estimate estimate{.mean = nothing, .spread = nothing, .count = static_cast<int64_t>(values.size())};
  if (values.empty()) return estimate;
  double sum = 0;
  for (double value : values) sum += value;
  estimate.mean = sum / count;
  if (values.size() < 2) return estimate;
  double squares = 0;
  for (double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  estimate.spread = std::sqrt(squares / (count - 1));
  return estimate;
}

}  // namespace headlight
