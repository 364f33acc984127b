#pragma once
// Byte-pair encoding: a piece begins as its bytes or characters; of all neighbours that may merge, those of the
// lowest rank do, the leftmost first, until none are left (Sennrich et al. 2016).

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "text/piece_model.h"
#include "text/vocabulary.h"

namespace headlight {

struct MergeRule {
  int32_t left;
  int32_t right;
  int32_t merged;
  uint32_t rank;  // rules of the same rank: the leftmost place merges first
};

struct BpeOptions {
  bool byte_level = false;     // begins as bytes, spelled by byte_character
  bool whole_first = false;    // a piece that is a token is that token, whatever the rules say
  bool byte_fallback = false;  // characters without a token become "<0xAB>" tokens
  int32_t unknown = -1;        // stands for other characters; -1: they are unspelled
  bool fuse_unknown = false;   // one unknown token for several characters side by side
};

class Bpe final : public PieceModel {
 public:
  // The vocabulary must outlive the model. Of rules for the same pair the last one counts.
  Bpe(const Vocabulary& vocabulary, const std::vector<MergeRule>& rules, const BpeOptions& options);

  std::unique_ptr<PieceEncoder> encoder() const override;
  bool keeps_broken_bytes() const override { return options_.byte_level || options_.byte_fallback; }

 private:
  friend class BpeEncoder;

  struct Merge {
    uint32_t rank;
    int32_t merged;
  };
  static uint64_t pair_key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  // The rule for two neighbours, or none.
  const Merge* find(int32_t left, int32_t right) const;

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  std::array<int32_t, 256> bytes_;  // the token of each byte, -1 where there is none
  // open addressing, a power of two of slots; an empty slot has merged < 0
  std::vector<uint64_t> keys_;
  std::vector<Merge> merges_;
  // Where a piece may be cut beforehand with the same result: before this text when other text is in front of it.
  std::string word_mark_;
};

}  // namespace headlight
