#pragma once
// How text is cut into the pieces that a model turns into tokens one by one.

#include <string>
#include <variant>
#include <vector>

#include "text/flow.h"
#include "text/pattern.h"

namespace headlight {

enum class CharacterClass { kWhiteSpace, kPunctuation, kNumber };
enum class SplitBehaviour { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Cuts every piece at what matches. `invert`: what lies between the matches counts as the match.
struct Split {
  std::variant<Pattern, CharacterClass> at;
  SplitBehaviour behaviour;
  bool invert = false;
};
// A blank before every piece that does not begin with one.
struct PrefixBlank {};
// Blanks become `mark`, which is put before pieces that do not begin with it.
struct Metaspace {
  enum class Prefix { kNever, kFirst, kAlways };  // kFirst: only where the whole text begins
  std::string mark;
  Prefix prefix;
  bool split;  // before each mark
  Pattern mark_pattern;
};

using PreTokenizerStep = std::variant<Split, PrefixBlank, Metaspace>;

// Replaces the flow's pieces by finer ones. Pieces that are tokens already stay as they are.
void pre_tokenize(const std::vector<PreTokenizerStep>& steps, Flow& flow);

}  // namespace headlight
