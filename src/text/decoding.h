#pragma once
// Tokens back to text.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/vocabulary.h"

namespace headlight {

struct DecodingRules {
  bool byte_level = false;                                          // spelled by byte_character
  bool byte_fallback = false;                                       // "<0xAB>" is a byte
  std::vector<std::pair<std::string, std::string>> replacements{};  // in each token, in order
  bool blank_between = false;                                       // a blank before each token but the first
  std::string continuation{};       // no blank before tokens that begin so, and this is left out
  bool clean_up = false;            // no blank before punctuation, as BERT's decoder has it
  std::size_t blanks_to_strip = 0;  // at most, in front of the first token that is not special
  bool strip_first_token = false;   // all blanks of that token
};

// Constant once made.
class Decoding {
 public:
  // Added tokens stand for their content as it is.
  Decoding(const Vocabulary& vocabulary, const std::vector<AddedToken>& added, DecodingRules rules);

  int64_t vocabulary() const { return static_cast<int64_t>(texts_.size()); }
  bool is_special(int32_t id) const { return special_[static_cast<std::size_t>(id)]; }
  // Ids must be in the vocabulary.
  const std::string& text(int32_t id) const { return texts_[static_cast<std::size_t>(id)]; }
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

 private:
  std::string text_of(const std::string& spelling, bool is_added, bool is_first) const;

  DecodingRules rules_;
  std::vector<std::string> first_texts_;  // in front of all others, where blanks come between
  std::vector<std::string> texts_;        // inside a text
  std::vector<bool> special_;
};

}  // namespace headlight
