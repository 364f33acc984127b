#pragma once
// llama2.c's model files (`.bin`, versions 0 and 1): sizes, then 32-bit floats in a fixed order and without names.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/formats/safetensors.h"

namespace headlight {

struct Llama2cSizes {
  int64_t width = 0;            // dim, D
  int64_t hidden = 0;           // hidden_dim, F
  int64_t blocks = 0;           // n_layers, L
  int64_t heads = 0;            // n_heads, H; a head is D / H wide
  int64_t key_value_heads = 0;  // n_kv_heads, Hkv
  int64_t vocabulary = 0;       // V
  int64_t context = 0;          // max_seq_len
  bool shared = false;          // the embedding is the classifier, too
};

struct Llama2cContent {
  int64_t version = 0;
  Llama2cSizes sizes;
  // By the names of llama2.c's export script, all layers of a kind in one: tok_embeddings (V, D), attention_norm and
  // ffn_norm (L, D), wq (L, D, D), wk and wv (L, D Hkv / H, D), wo (L, D, D), w1 and w3 (L, F, D), w2 (L, D, F),
  // norm (D), output (V, D) unless shared. Linear maps are (out, in).
  std::vector<StoredTensor> tensors;

  // Throws LogicError when there is none.
  const StoredTensor& tensor(const std::string& name) const;
};

// Parses a whole file held in memory; the result borrows `bytes`. `file` is its name in messages. Throws Error (bad
// data) that names the place, what was found and expected: a size that is not positive, heads that do not divide, a
// file that is not exactly as long as its sizes say, quantised files (version 2).
Llama2cContent parse_llama2c(std::span<const std::byte> bytes, const std::string& file);

}  // namespace headlight
