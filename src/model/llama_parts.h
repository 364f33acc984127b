#pragma once
// Llama's arrangement as files from other programs hold it: what is the same in llama2.c's and in GGUF's.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "headlight/model/config.h"

namespace headlight {

// What all of them share: RMSNorm before, SiLU-gated feed-forward, neighbouring coordinates turned, no biases.
inline ModelConfig llama_arrangement() {
  ModelConfig config;
  config.feed_forward = FeedForward::kSiluGated;
  config.norm = NormKind::kRmsNorm;
  config.positions = Positions::kRotary;
  config.rotary_pairs = RotaryPairs::kAdjacent;
  config.biases = false;
  return config;
}

// One parameter, and what files call its tensor.
struct LlamaPart {
  std::string parameter;
  std::string llama2c;  // of all blocks in one, where the parameter belongs to a block
  std::string gguf;
  int64_t block;    // -1: of no block
  bool transposed;  // (out, in) in the file, (in, out) here
};

inline std::vector<LlamaPart> llama_parts(const ModelConfig& config) {
  std::vector<LlamaPart> out{{"embed.W_E", "tok_embeddings", "token_embd.weight", -1, false},
                             {"ln_final.w", "norm", "output_norm.weight", -1, false}};
  if (!config.tied) out.push_back({"unembed.W_U", "output", "output.weight", -1, true});
  for (int64_t block = 0; block < config.blocks; ++block) {
    const auto add = [&](const char* parameter, const char* llama2c, const char* gguf, bool transposed) {
      out.push_back({fmt::format("blocks.{}.{}", block, parameter), llama2c,
                     fmt::format("blk.{}.{}.weight", block, gguf), block, transposed});
    };
    add("ln1.w", "attention_norm", "attn_norm", false);
    add("attn.W_Q", "wq", "attn_q", true);
    add("attn.W_K", "wk", "attn_k", true);
    add("attn.W_V", "wv", "attn_v", true);
    add("attn.W_O", "wo", "attn_output", true);
    add("ln2.w", "ffn_norm", "ffn_norm", false);
    add("mlp.W_gate", "w1", "ffn_gate", true);
    add("mlp.W_in", "w3", "ffn_up", true);
    add("mlp.W_out", "w2", "ffn_down", true);
  }
  return out;
}

}  // namespace headlight
