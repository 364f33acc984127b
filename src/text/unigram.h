#pragma once
// Unigram: of all ways to cut a piece into tokens the one of highest probability, the product of its tokens'
// (Kudo 2018).

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "text/piece_model.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace headlight {

struct UnigramOptions {
  std::vector<double> scores;     // natural logarithms of probabilities, one per token
  std::vector<bool> usable;       // tokens that text can become, one per token
  int32_t unknown = -1;           // characters that no token covers; -1: they are unspelled
  bool single_precision = false;  // sums are kept as SentencePiece keeps them, which decides between equals
  bool byte_fallback = false;     // what would be unknown becomes "<0xAB>" tokens where all of them are there
};

class Unigram final : public PieceModel {
 public:
  // The vocabulary must outlive the model.
  Unigram(const Vocabulary& vocabulary, UnigramOptions options);

  std::unique_ptr<PieceEncoder> encoder() const override;
  bool keeps_broken_bytes() const override { return options_.byte_fallback; }

 private:
  friend class UnigramEncoder;

  UnigramOptions options_;
  std::array<int32_t, 256> bytes_;
  double unknown_score_;
  Trie trie_;
};

}  // namespace headlight
