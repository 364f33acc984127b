#include "text/added_tokens.h"

#include <utility>

#include "text/unicode.h"
#include "text/utf8.h"

namespace headlight {
namespace {

Trie trie_of(const std::vector<std::string>& contents) {
  std::vector<std::pair<std::string_view, int32_t>> strings;
  for (std::size_t i = 0; i < contents.size(); ++i) strings.emplace_back(contents[i], static_cast<int32_t>(i));
  return Trie(std::move(strings));
}

bool is_beside_word(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && is_word(character_at(text.substr(0, begin), character_before(text, begin)).code)) return true;
  return end < text.size() && is_word(character_at(text, end).code);
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& contents)
    : tokens_(std::move(tokens)), trie_(trie_of(contents)) {}

const AddedToken* AddedTokenFinder::longest_at(std::string_view text, std::size_t at, std::size_t& end) const {
  const AddedToken* longest = nullptr;
  int32_t node = Trie::kRoot;
  for (std::size_t next = at; next < text.size();) {
    node = trie_.next(node, static_cast<unsigned char>(text[next++]));
    if (node < 0) break;
    if (trie_.value(node) < 0) continue;
    longest = &tokens_[static_cast<std::size_t>(trie_.value(node))];
    end = next;
  }
  return longest;
}

void AddedTokenFinder::find(std::string_view text, bool special, std::vector<Piece>& pieces) const {
  std::size_t done = 0;  // all before is in pieces
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    const AddedToken* token = longest_at(text, at, end);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    at = end;
    if (token->special && !special) continue;
    if (token->single_word && is_beside_word(text, begin, end)) continue;
    while (token->left_strip && begin > done) {
      const std::size_t before = character_before(text, begin);
      if (!is_white_space(character_at(text, before).code)) break;
      begin = before;
    }
    while (token->right_strip && end < text.size()) {
      const Character character = character_at(text, end);
      if (!is_white_space(character.code)) break;
      end += character.size;
    }
    if (begin > done) pieces.push_back({done, begin});
    pieces.push_back({begin, end, token->id});
    at = done = end;
  }
  if (done < text.size()) pieces.push_back({done, text.size()});
}

}  // namespace headlight
