#pragma once
// The merge rules of BPE as files write them.

#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/vocabulary.h"

namespace headlight {

struct MergePair {
  std::string left;
  std::string right;
};

// "left right". Throws Error (bad data) at `where` with the merge's index when it is not two texts and a blank.
MergePair split_merge(std::string_view text, std::size_t index, const std::string& where);

// Each pair's rank is its place. Throws Error (bad data) at `where` when a part or the union is no token.
std::vector<MergeRule> merge_rules(const Vocabulary& vocabulary, const std::vector<MergePair>& pairs,
                                   const std::string& where);

// SentencePiece's: any two tokens merge whose union is a token, those of the highest score first. Only tokens that
// are `usable` take part.
std::vector<MergeRule> merge_rules_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                                               const std::vector<bool>& usable);

}  // namespace headlight
