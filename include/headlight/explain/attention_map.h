#pragma once
// A head's attention weights on one text, one byte each: small enough to put many into a page.

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/explain/attribution.h"
#include "headlight/explain/head.h"
#include "headlight/model/model.h"

namespace headlight {

// P(i, j) = row_max[i] * (byte / 255)^2, byte = round(255 sqrt(P(i, j) / row_max[i])): small weights survive beside
// large ones. The error is at most row_max[i] / 255.
struct AttentionMap {
  HeadId head{};
  int64_t time = 0;              // T
  bool causal = true;            // row i holds keys 0..i, beginning at i (i + 1) / 2; otherwise all T keys
  std::vector<float> row_max{};  // (T), 0 for a row that sees nothing, NaN for one that is not a number
  std::vector<uint8_t> bytes{};
  int64_t top = 0;                    // tokens per position in `writes`
  std::vector<TokenWeight> writes{};  // (T, top) tokens whose logits the head raises most at each position

  // The stored weight of query i and key j.
  float weight(int64_t i, int64_t j) const;
};

struct MapOptions {
  std::vector<HeadId> heads{};  // none: all
  int64_t top = 0;  // tokens to list per position, as in top_writes() without the average; 0 in post-norm models
};

// The weights that a forward of this sequence uses, recomputed by rows. Throws LogicError on an empty sequence or a
// head that is not there; as forward() on tokens and length.
std::vector<AttentionMap> attention_maps(const Model& model, const std::vector<int32_t>& tokens,
                                         const MapOptions& options = {});

}  // namespace headlight
