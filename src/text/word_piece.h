#pragma once
// WordPiece: the longest token that a word begins with, then the longest continuation, and so on (Wu et al. 2016).

#include <cstdint>
#include <memory>
#include <string>

#include "text/piece_model.h"
#include "text/vocabulary.h"

namespace headlight {

struct WordPieceOptions {
  std::string continuation = "##";  // before tokens that go on within a word
  int32_t unknown = 0;              // the whole word, where some part has no token
  std::size_t longest = 100;        // a word of more characters is unknown
};

class WordPiece final : public PieceModel {
 public:
  // The vocabulary must outlive the model.
  WordPiece(const Vocabulary& vocabulary, WordPieceOptions options);

  std::unique_ptr<PieceEncoder> encoder() const override;
  bool keeps_broken_bytes() const override { return false; }

 private:
  friend class WordPieceEncoder;

  const Vocabulary& vocabulary_;
  WordPieceOptions options_;
};

}  // namespace headlight
