#pragma once
// What turns one piece of text into tokens. A model is constant; each call to encode a text makes an encoder, which
// keeps its working memory from piece to piece.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace headlight {

// A token of a piece, with the bytes of the piece that it stands for.
struct PieceToken {
  int32_t id;
  std::size_t begin;
  std::size_t end;
};

// Bytes of a piece that no token spells and no unknown token stands for.
struct Unspelled {
  std::size_t begin;
  std::size_t end;
};

struct PieceTokens {
  std::vector<PieceToken> tokens;
  std::vector<Unspelled> unspelled;

  void clear() {
    tokens.clear();
    unspelled.clear();
  }
};

class PieceEncoder {
 public:
  virtual ~PieceEncoder() = default;
  // Appends the tokens of a piece that is not empty.
  virtual void encode(std::string_view piece, PieceTokens& out) = 0;
};

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  virtual std::unique_ptr<PieceEncoder> encoder() const = 0;
  // Whether any bytes can be tokens; otherwise broken ones must have been replaced before.
  virtual bool keeps_broken_bytes() const = 0;
};

}  // namespace headlight
