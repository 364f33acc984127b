#pragma once
// Token sequences of unequal length side by side, padded on either side, with the targets of each position.

#include <cstdint>
#include <vector>

#include "headlight/kernels/cross_entropy.h"
#include "headlight/tensor/buffer.h"

namespace headlight {

enum class PadSide { kRight, kLeft };

struct Batch {
  int64_t size = 0;           // B
  int64_t time = 0;           // T, the longest sequence
  Buffer<int32_t> tokens;     // (B, T); padding holds token 0, which nothing reads
  Buffer<int32_t> positions;  // (B, T) counted from the sequence's first token; 0 in padding
  Buffer<int32_t> types;      // (B, T) kind of token, for models with token types; 0 until set
  Buffer<int32_t> targets;    // (B, T) the token to predict at each position, or kIgnoredTarget
  Buffer<int64_t> begins;     // (B) first row of each sequence
  Buffer<int64_t> lengths;    // (B)

  // Row b*T + begins[b] + i holds token i of sequence b.
  int64_t row(int64_t b, int64_t i) const { return b * time + begins[b] + i; }
  int64_t target_count() const;
};

// Next-token targets: position i predicts token i + 1, the last position nothing. Throws LogicError when
// there is no sequence; sequences of length 0 are legal.
Batch make_batch(const std::vector<std::vector<int32_t>>& sequences, PadSide side = PadSide::kRight);

// The same with explicit targets, one per token (kIgnoredTarget where none).
Batch make_batch(const std::vector<std::vector<int32_t>>& sequences, const std::vector<std::vector<int32_t>>& targets,
                 PadSide side = PadSide::kRight);

}  // namespace headlight
