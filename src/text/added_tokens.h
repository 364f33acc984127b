#pragma once
// Tokens that are found in the text before a model sees it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/flow.h"
#include "text/trie.h"

namespace headlight {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // found only when the caller allows it
  bool single_word = false;  // not when a letter, mark or digit is beside it
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;  // and after it
  bool normalized = false;   // found in normalised text
};

// Finds some added tokens, the leftmost first, of those the longest.
class AddedTokenFinder {
 public:
  // contents[i] is what to look for as tokens[i].
  AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& contents);

  bool empty() const { return tokens_.empty(); }
  // Appends text [begin, end) as pieces: tokens, and what is between them. `special`: whether special ones count.
  void find(std::string_view text, bool special, std::vector<Piece>& pieces) const;

 private:
  // The token that begins at `at`, with its end; nullptr: none.
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::size_t& end) const;

  std::vector<AddedToken> tokens_;
  Trie trie_;
};

}  // namespace headlight
