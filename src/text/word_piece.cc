#include "text/word_piece.h"

#include <utility>

#include "text/utf8.h"

namespace headlight {

WordPiece::WordPiece(const Vocabulary& vocabulary, WordPieceOptions options)
    : vocabulary_(vocabulary), options_(std::move(options)) {}

class WordPieceEncoder final : public PieceEncoder {
 public:
  explicit WordPieceEncoder(const WordPiece& model) : model_(model) {}

  void encode(std::string_view word, PieceTokens& out) override {
    const std::size_t first = out.tokens.size();
    bool known = characters(word) <= model_.options_.longest;
    for (std::size_t at = 0; known && at < word.size();) {
      known = add_longest(word, at, out);
      if (known) at = out.tokens.back().end;
    }
    if (known) return;
    out.tokens.resize(first);
    out.tokens.push_back({model_.options_.unknown, 0, word.size()});
  }

 private:
  // Counts no further than is of interest.
  std::size_t characters(std::string_view word) const {
    std::size_t count = 0;
    for (std::size_t at = 0; at < word.size() && count <= model_.options_.longest; ++count) {
      at += character_at(word, at).size;
    }
    return count;
  }

  bool add_longest(std::string_view word, std::size_t at, PieceTokens& out) {
    for (std::size_t end = word.size(); end > at; end = character_before(word, end)) {
      spelling_ = at == 0 ? "" : model_.options_.continuation;
      spelling_ += word.substr(at, end - at);
      const int32_t id = model_.vocabulary_.find(spelling_);
      if (id < 0) continue;
      out.tokens.push_back({id, at, end});
      return true;
    }
    return false;
  }

  const WordPiece& model_;
  std::string spelling_;
};

std::unique_ptr<PieceEncoder> WordPiece::encoder() const { return std::make_unique<WordPieceEncoder>(*this); }

}  // namespace headlight
