#include "text/unigram.h"

#include <algorithm>
#include <utility>

#include "text/byte_tokens.h"
#include "text/utf8.h"

namespace headlight {
namespace {

// how much less likely than the least likely token an unknown character is
constexpr double kUnknownPenalty = 10;

Trie trie_of(const Vocabulary& vocabulary, const UnigramOptions& options) {
  std::vector<std::pair<std::string_view, int32_t>> strings;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (options.usable[static_cast<std::size_t>(id)]) strings.emplace_back(vocabulary.spelling(id), id);
  }
  return Trie(std::move(strings));
}

}  // namespace

Unigram::Unigram(const Vocabulary& vocabulary, UnigramOptions options)
    : options_(std::move(options)),
      bytes_(byte_fallbacks(vocabulary)),
      unknown_score_(*std::min_element(options_.scores.begin(), options_.scores.end()) - kUnknownPenalty),
      trie_(trie_of(vocabulary, options_)) {}

class UnigramEncoder final : public PieceEncoder {
 public:
  explicit UnigramEncoder(const Unigram& model) : model_(model) {}

  void encode(std::string_view piece, PieceTokens& out) override {
    find_best(piece);
    // from the end backwards, unknown neighbours as one
    path_.clear();
    for (std::size_t end = piece.size(); end > 0;) {
      const Best& best = best_[end];
      if (best.id < 0 && !path_.empty() && path_.back().id < 0) {
        path_.back().begin = best.begin;
      } else {
        path_.push_back({best.id, best.begin, end});
      }
      end = best.begin;
    }
    for (auto token = path_.rbegin(); token != path_.rend(); ++token) add(piece, *token, out);
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  // The best way to reach a place of the piece.
  struct Best {
    double score = 0;
    std::size_t begin = kNowhere;  // where its last token begins
    int32_t id = -1;               // that token, -1: an unknown character
  };

  void reach(std::size_t end, double score, std::size_t begin, int32_t id) {
    Best& best = best_[end];
    if (model_.options_.single_precision) score = static_cast<double>(static_cast<float>(score));
    if (best.begin != kNowhere && score <= best.score) return;
    // SentencePiece keeps a rounded sum, which it compares with sums not yet rounded
    if (model_.options_.single_precision) score = static_cast<double>(static_cast<float>(score));
    best = {score, begin, id};
  }

  void find_best(std::string_view piece) {
    best_.assign(piece.size() + 1, {});
    for (std::size_t begin = 0; begin < piece.size();) {
      const double here = best_[begin].score;
      const std::size_t size = character_at(piece, begin).size;
      bool has_single = false;
      int32_t node = Trie::kRoot;
      for (std::size_t end = begin; end < piece.size();) {
        node = model_.trie_.next(node, static_cast<unsigned char>(piece[end++]));
        if (node < 0) break;
        const int32_t id = model_.trie_.value(node);
        if (id < 0) continue;
        reach(end, here + model_.options_.scores[static_cast<std::size_t>(id)], begin,
              id == model_.options_.unknown ? -1 : id);
        has_single = has_single || end - begin == size;
      }
      if (!has_single) reach(begin + size, here + model_.unknown_score_, begin, -1);
      begin += size;
    }
  }

  void add(std::string_view piece, const PieceToken& token, PieceTokens& out) const {
    if (token.id >= 0) return out.tokens.push_back(token);
    if (add_bytes(piece, token, out)) return;
    if (model_.options_.unknown < 0) return out.unspelled.push_back({token.begin, token.end});
    out.tokens.push_back({model_.options_.unknown, token.begin, token.end});
  }

  bool add_bytes(std::string_view piece, const PieceToken& token, PieceTokens& out) const {
    if (!model_.options_.byte_fallback) return false;
    const auto id_of = [&](std::size_t at) { return model_.bytes_[static_cast<unsigned char>(piece[at])]; };
    for (std::size_t at = token.begin; at < token.end; ++at) {
      if (id_of(at) < 0) return false;
    }
    for (std::size_t at = token.begin; at < token.end; ++at) out.tokens.push_back({id_of(at), at, at + 1});
    return true;
  }

  const Unigram& model_;
  std::vector<Best> best_;
  std::vector<PieceToken> path_;
};

std::unique_ptr<PieceEncoder> Unigram::encoder() const { return std::make_unique<UnigramEncoder>(*this); }

}  // namespace headlight
