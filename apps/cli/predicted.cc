#include "predicted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "headlight/base/error.h"
#include "numbers.h"
#include "results.h"
#include "table.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

constexpr std::size_t kShort = 64;  // tokens of a sequence shown whole
constexpr std::size_t kWorst = 20;  // tokens shown of longer ones
constexpr std::size_t kBefore = 6;  // tokens shown before one of them

PredictedSequence sequence_of(const Samples& samples, int64_t i, View<const float, 2> losses) {
  PredictedSequence sequence;
  const auto first = static_cast<std::size_t>(i * samples.time);
  const auto time = static_cast<std::size_t>(samples.time);
  const int32_t* const tokens = samples.tokens.data() + first;
  const int32_t* const targets = samples.targets.data() + first;
  sequence.ids.assign(tokens, tokens + time);
  if (targets[time - 1] != kNoTarget) sequence.ids.push_back(targets[time - 1]);
  sequence.losses.resize(sequence.ids.size());
  for (std::size_t t = 0; t < time; ++t) {
    if (targets[t] == kNoTarget) continue;
    if (targets[t] != sequence.ids[t + 1]) throw LogicError("predicted_sequences", "a target is not the next token");
    sequence.losses[t + 1] = losses(i, static_cast<int64_t>(t));
  }
  return sequence;
}

std::vector<Cell> row_of(const PredictedSequence& sequence, std::size_t t, const Tokenizer& tokenizer) {
  const std::optional<float>& loss = sequence.losses[t];
  return {grouped(static_cast<int64_t>(t)), fmt::format("{}", sequence.ids[t]),
          loss ? fmt::format("{:.4f}", *loss) : "", visible(tokenizer.token_text(sequence.ids[t]))};
}

const std::vector<Column> kColumns{{"place"}, {"id"}, {"loss"}, {"token", Align::kLeft}};

std::string whole_text(const PredictedSequence& sequence, const Tokenizer& tokenizer, const Screen& screen) {
  Table table(kColumns);
  for (std::size_t t = 0; t < sequence.ids.size(); ++t) table.row(row_of(sequence, t, tokenizer));
  return table.text(screen);
}

struct Place {
  std::size_t sequence, token;
  float loss;
};

// the highest losses, the highest first, and of equal ones the first
std::vector<Place> worst_places(const std::vector<PredictedSequence>& sequences) {
  std::vector<Place> places;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t t = 0; t < sequences[s].losses.size(); ++t) {
      if (const std::optional<float>& loss = sequences[s].losses[t]) places.push_back({s, t, *loss});
    }
  }
  // a loss that is no number is the worst of all
  const auto size_of = [](const Place& p) { return std::isnan(p.loss) ? HUGE_VALF : p.loss; };
  std::stable_sort(places.begin(), places.end(),
                   [&](const Place& a, const Place& b) { return size_of(a) > size_of(b); });
  places.resize(std::min(places.size(), kWorst));
  return places;
}

std::string worst_text(const std::vector<PredictedSequence>& sequences, const Tokenizer& tokenizer,
                       const Screen& screen) {
  std::vector<Column> columns{{"sequence"}};
  columns.insert(columns.end(), kColumns.begin(), kColumns.end());
  columns.push_back({"after", Align::kLeft});
  Table table(columns);
  table.heading("the highest losses");
  for (const Place& place : worst_places(sequences)) {
    const PredictedSequence& sequence = sequences[place.sequence];
    std::vector<Cell> row = row_of(sequence, place.token, tokenizer);
    row.insert(row.begin(), grouped(static_cast<int64_t>(place.sequence)));
    std::string before;
    for (std::size_t t = place.token - std::min(place.token, kBefore); t < place.token; ++t) {
      before += tokenizer.token_text(sequence.ids[t]);
    }
    row.emplace_back(visible(before), Paint::kDim);
    table.row(std::move(row));
  }
  return table.text(screen);
}

}  // namespace

std::vector<PredictedSequence> predicted_sequences(const DataSource& source, View<const float, 2> losses) {
  Samples samples;
  source.validation(0, source.validation_count(), samples);
  std::vector<PredictedSequence> sequences;
  for (int64_t i = 0; i < samples.size; ++i) sequences.push_back(sequence_of(samples, i, losses));
  return sequences;
}

nlohmann::ordered_json json_of(const std::vector<PredictedSequence>& sequences, const Tokenizer& tokenizer) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PredictedSequence& sequence : sequences) {
    nlohmann::ordered_json tokens = nlohmann::ordered_json::array(), losses = nlohmann::ordered_json::array();
    for (int32_t id : sequence.ids) tokens.push_back(json_of_text(tokenizer.token_text(id)));
    for (const std::optional<float>& loss : sequence.losses) {
      losses.push_back(loss ? nlohmann::ordered_json(*loss) : nlohmann::ordered_json(nullptr));
    }
    list.push_back({{"ids", sequence.ids}, {"tokens", std::move(tokens)}, {"losses", std::move(losses)}});
  }
  return list;
}

std::string predicted_text(const std::vector<PredictedSequence>& sequences, const Tokenizer& tokenizer,
                           const Screen& screen) {
  if (sequences.size() == 1 && sequences.front().ids.size() <= kShort) {
    return whole_text(sequences.front(), tokenizer, screen);
  }
  return worst_text(sequences, tokenizer, screen);
}

}  // namespace headlight::cli
