#include "text/merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "text/utf8.h"

namespace headlight {

MergePair split_merge(std::string_view text, std::size_t index, const std::string& where) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || blank == 0 || blank + 1 == text.size() ||
      text.find(' ', blank + 1) != std::string_view::npos) {
    throw Error(ErrorKind::kBadData, where, fmt::format("merge {} is {}", index, in_quotes(text)),
                "expected two tokens with a blank between");
  }
  return {std::string(text.substr(0, blank)), std::string(text.substr(blank + 1))};
}

std::vector<MergeRule> merge_rules(const Vocabulary& vocabulary, const std::vector<MergePair>& pairs,
                                   const std::string& where) {
  std::vector<MergeRule> rules;
  rules.reserve(pairs.size());
  for (const MergePair& pair : pairs) {
    const auto id_of = [&](const std::string& spelling) {
      const int32_t id = vocabulary.find(spelling);
      if (id >= 0) return id;
      throw Error(ErrorKind::kBadData, where,
                  fmt::format("merge {} of {} and {}: {} is no token", rules.size(), in_quotes(pair.left),
                              in_quotes(pair.right), in_quotes(spelling)),
                  "expected tokens of the vocabulary");
    };
    rules.push_back({.left = id_of(pair.left),
                     .right = id_of(pair.right),
                     .merged = id_of(pair.left + pair.right),
                     .rank = static_cast<uint32_t>(rules.size())});
  }
  return rules;
}

std::vector<MergeRule> merge_rules_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                                               const std::vector<bool>& usable) {
  std::vector<int32_t> by_score(static_cast<std::size_t>(vocabulary.size()));
  std::iota(by_score.begin(), by_score.end(), 0);
  const auto score_of = [&](int32_t id) { return scores[static_cast<std::size_t>(id)]; };
  std::stable_sort(by_score.begin(), by_score.end(), [&](int32_t a, int32_t b) { return score_of(a) > score_of(b); });
  std::vector<MergeRule> rules;
  uint32_t rank = 0;
  for (std::size_t place = 0; place < by_score.size(); ++place) {
    const int32_t merged = by_score[place];
    // tokens of the same score have the same rank
    if (place > 0 && score_of(merged) < score_of(by_score[place - 1])) rank = static_cast<uint32_t>(place);
    if (!usable[static_cast<std::size_t>(merged)]) continue;
    const std::string_view spelling = vocabulary.spelling(merged);
    for (std::size_t cut = 0; cut < spelling.size();) {
      cut += character_at(spelling, cut).size;
      if (cut == spelling.size()) break;
      const int32_t left = vocabulary.find(spelling.substr(0, cut)), right = vocabulary.find(spelling.substr(cut));
      if (left < 0 || right < 0) continue;
      if (!usable[static_cast<std::size_t>(left)] || !usable[static_cast<std::size_t>(right)]) continue;
      rules.push_back({.left = left, .right = right, .merged = merged, .rank = rank});
    }
  }
  return rules;
}

}  // namespace headlight
