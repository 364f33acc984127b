#include "text/decoding.h"

#include <algorithm>

#include "text/byte_tokens.h"

namespace headlight {
namespace {

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

// What BERT's decoder does to each token.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kChanges) replace_all(text, what, by);
}

}  // namespace

Decoding::Decoding(const Vocabulary& vocabulary, const std::vector<AddedToken>& added, DecodingRules rules)
    : rules_(std::move(rules)) {
  std::vector<std::string> spellings;
  spellings.reserve(static_cast<std::size_t>(vocabulary.size()) + added.size());
  for (int32_t id = 0; id < vocabulary.size(); ++id) spellings.push_back(vocabulary.spelling(id));
  for (const AddedToken& token : added) {
    spellings.resize(std::max(spellings.size(), static_cast<std::size_t>(token.id) + 1));
    spellings[static_cast<std::size_t>(token.id)] = token.content;
  }
  std::vector<bool> is_added(spellings.size());
  special_.resize(spellings.size());
  for (const AddedToken& token : added) {
    is_added[static_cast<std::size_t>(token.id)] = true;
    special_[static_cast<std::size_t>(token.id)] = token.special;
  }
  texts_.reserve(spellings.size());
  for (std::size_t id = 0; id < spellings.size(); ++id) {
    texts_.push_back(text_of(spellings[id], is_added[id], false));
    if (rules_.blank_between) first_texts_.push_back(text_of(spellings[id], is_added[id], true));
  }
}

std::string Decoding::text_of(const std::string& spelling, bool is_added, bool is_first) const {
  std::string text = spelling;
  if (rules_.byte_level && !is_added) {
    if (auto bytes = bytes_of_characters(spelling)) text = std::move(*bytes);
  }
  for (const auto& [what, by] : rules_.replacements) replace_all(text, what, by);
  if (rules_.byte_fallback) {
    if (const auto byte = byte_of_spelling(text)) text.assign(1, static_cast<char>(*byte));
  }
  if (rules_.blank_between && !is_first) {
    const std::string& continuation = rules_.continuation;
    if (!continuation.empty() && text.compare(0, continuation.size(), continuation) == 0) {
      text.erase(0, continuation.size());
    } else {
      text.insert(0, " ");
    }
  }
  if (rules_.clean_up) clean_up(text);
  return text;
}

std::string Decoding::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  bool at_start = true, before_text = true;
  std::size_t to_strip = rules_.blanks_to_strip;
  for (int32_t id : ids) {
    if (skip_special && is_special(id)) continue;
    std::string_view text =
        at_start && rules_.blank_between ? first_texts_[static_cast<std::size_t>(id)] : this->text(id);
    at_start = false;
    if (before_text && !is_special(id)) {
      while (to_strip > 0 && !text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
        --to_strip;
      }
      // blanks to leave out may go on in the next token
      before_text = text.empty() && to_strip > 0;
      if (rules_.strip_first_token) {
        std::copy_if(text.begin(), text.end(), std::back_inserter(out), [](char c) { return c != ' '; });
        continue;
      }
    }
    out += text;
  }
  return out;
}

}  // namespace headlight
