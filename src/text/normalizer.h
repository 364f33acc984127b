#pragma once
// What is done to text before it is cut: normal forms, case, accents, replacements.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "text/charsmap.h"
#include "text/flow.h"
#include "text/pattern.h"
#include "text/unicode.h"

namespace headlight {

// Each step is applied to the whole section, in order.
struct UnicodeForm {
  NormalForm form;
};
struct LowerCase {};
// nonspacing marks are left out, or all marks
struct StripMarks {
  bool all;
};
// control characters, zero and U+FFFD are left out; white space becomes a blank
struct CleanText {};
// a blank on both sides of each Chinese character
struct SpaceIdeographs {};
struct Replace {
  Pattern what;
  std::string by;
};
// before a section that is not empty
struct Prepend {
  std::string what;
  bool only_where_text_begins = false;  // or goes on after a special token
};
// white space at the ends
struct Strip {
  bool left;
  bool right;
};
// blanks at both ends are left out, runs of them become one
struct SingleBlanks {};
// as SentencePiece reads the map: the longest prefix that it knows, again and again
struct ApplyCharsmap {
  std::shared_ptr<const Charsmap> map;
};
// as Hugging Face's library reads it: all of a short grapheme, or each character, by its shortest known prefix
struct ApplyCharsmapToGraphemes {
  std::shared_ptr<const Charsmap> map;
};
// each broken sequence of bytes becomes U+FFFD
struct ReplaceBroken {};

using NormalizerStep = std::variant<UnicodeForm, LowerCase, StripMarks, CleanText, SpaceIdeographs, Replace, Prepend,
                                    Strip, SingleBlanks, ApplyCharsmap, ApplyCharsmapToGraphemes, ReplaceBroken>;

// Rewrites the flow; afterwards it is one piece, or none when nothing is left. Broken bytes stay as they are but
// for ReplaceBroken.
void normalize(const std::vector<NormalizerStep>& steps, Flow& flow);

}  // namespace headlight
