#include "headlight/explain/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headlight {
namespace {

constexpr HeadScore kNaming[] = {HeadScore::kPrevious, HeadScore::kDuplicate, HeadScore::kInduction, HeadScore::kStart,
                                 HeadScore::kCurrent};

struct Name {
  std::optional<HeadScore> role;
  bool partly = false;
};

Name name_head(const HeadScores& scores, const HeadScores* chance, const HeadId& head, const ReadingOptions& options) {
  Name name;
  double best = 0;
  for (HeadScore score : kNaming) {
    if (!scores.has(score)) continue;
    const double mean = scores.at(head, score).mean;
    const double by_chance = chance == nullptr ? 0 : pooled(*chance, score).mean;
    if (!(mean > best) || mean < options.partly || mean < options.times_chance * by_chance) continue;
    best = mean;
    name = {score, mean < options.clear};
  }
  return name;
}

// whether taking such a head away must be felt
bool promises_effect(const Name& name) {
  return !name.partly && (name.role == HeadScore::kPrevious || name.role == HeadScore::kInduction);
}

// the smallest change that is not put down to chance
double noise(const Effect& effect, int64_t sequences, const ReadingOptions& options) {
  const double twice_error = 2 * effect.spread / std::sqrt(static_cast<double>(sequences));
  return twice_error > options.effect ? twice_error : options.effect;
}

// "1.0, 1.1, 1.2 and 14 more"
std::string first_few(const std::vector<HeadId>& heads) {
  constexpr std::size_t kFew = 3;
  if (heads.size() <= kFew + 1) return to_string(heads);
  const std::vector<HeadId> few(heads.begin(), heads.begin() + kFew);
  return fmt::format("{} and {} more", to_string(few), heads.size() - kFew);
}

// What the ablation says against the name; nothing when they agree.
std::string objection(const Name& name, const std::vector<HeadId>& alike, const Effect& effect, int64_t sequences,
                      const ReadingOptions& options) {
  const double least = noise(effect, sequences, options);
  if (promises_effect(name) && std::abs(effect.change) < least) {
    if (alike.empty()) return "alone its removal changes nothing";
    return "alone it is covered by " + first_few(alike);
  }
  if (promises_effect(name) && effect.change < 0) {
    return fmt::format("yet its removal lowers the loss by {:.2f} nats", -effect.change);
  }
  if (!name.role && std::abs(effect.change) >= std::max(least, options.large_effect)) {
    return fmt::format("yet its removal {} the loss by {:.2f} nats", effect.change > 0 ? "raises" : "lowers",
                       std::abs(effect.change));
  }
  return "";
}

void check_parts(const HeadScores& scores, const HeadScores* chance, const SweepResult* alone) {
  const std::size_t heads = static_cast<std::size_t>(scores.blocks * scores.heads);
  if (alone != nullptr && alone->effects.size() != heads) {
    throw LogicError("read_heads",
                     std::to_string(alone->effects.size()) + " effects for " + std::to_string(heads) + " heads");
  }
  for (HeadScore score : kNaming) {
    if (chance != nullptr && scores.has(score) && !chance->has(score)) {
      throw LogicError("read_heads", "the untrained model has no score " + definition_of(score).id);
    }
  }
}

}  // namespace

std::string reading_definition(const ReadingOptions& options) {
  return fmt::format(
      "a head is named by its largest score when that is at least {:g} (\"partly\" from {:g}) and at least {:g} times "
      "that "
      "of an untrained model, else mixed; score and ablation disagree when the removal of a previous-token or "
      "induction "
      "head changes the loss by less than {:g} nats or two standard errors, or lowers it, and when that of a mixed "
      "head "
      "changes it by {:g} nats or more",
      options.clear, options.partly, options.times_chance, options.effect, options.large_effect);
}

std::vector<HeadReading> read_heads(const HeadScores& scores, const HeadScores* chance, const SweepResult* alone,
                                    const ReadingOptions& options) {
  check_parts(scores, chance, alone);
  std::vector<HeadId> heads;
  std::vector<Name> names;
  for (int64_t block = 0; block < scores.blocks; ++block) {
    for (int64_t head = 0; head < scores.heads; ++head) {
      heads.push_back({block, head});
      names.push_back(name_head(scores, chance, heads.back(), options));
    }
  }
  std::vector<HeadReading> readings;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Name& name = names[i];
    HeadReading reading{.head = heads[i], .role = name.role, .reads_as = "mixed"};
    if (name.role) reading.reads_as = (name.partly ? "partly " : "") + definition_of(*name.role).label;
    if (alone != nullptr) {
      std::vector<HeadId> alike;
      for (std::size_t j = 0; j < heads.size(); ++j) {
        if (j != i && names[j].role == name.role) alike.push_back(heads[j]);
      }
      const std::string against = objection(name, alike, alone->effects[i], alone->sequences, options);
      reading.disagrees = !against.empty();
      if (reading.disagrees) reading.reads_as += "; " + against;
    }
    readings.push_back(std::move(reading));
  }
  return readings;
}

}  // namespace headlight
