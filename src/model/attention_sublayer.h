#pragma once
// Multi-head self-attention as a sublayer: z = attention(q, k, v) per head, out = z W_O + b_O.

#include <cmath>
#include <memory>
#include <string>

#include "headlight/kernels/attention.h"
#include "model/architecture.h"

namespace headlight {

// Declares parameters `prefix`W_Q, W_K, W_V, W_O (and biases, and norms of queries and keys) and the sites
// `prefix`hook_q ... hook_result.
template <class T>
std::unique_ptr<Sublayer<T>> make_attention(const ModelConfig& config, int64_t block, const std::string& prefix,
                                            Architecture<T>& architecture);

// The slots that attention reads its queries and keys from: after their norm and positions, where there are such.
std::string queries_site(const ModelConfig& config, const std::string& prefix);
std::string keys_site(const ModelConfig& config, const std::string& prefix);

// Who of a block sees whom and how scores are scaled; slopes and sequences are the caller's.
template <class T>
AttentionPattern<T> attention_pattern(const ModelConfig& config, int64_t block) {
  AttentionPattern<T> pattern;
  pattern.scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(config.head_width)));
  if (config.causal) pattern.right = 0;
  if (const int64_t window = window_of(config, block); window > 0) pattern.left = window - 1;
  return pattern;
}

// The weights of chosen rows of the block whose sublayer this is; see pattern_rows().
template <class T>
void attention_sublayer_rows(const Sublayer<T>& sublayer, const Batch& batch, typename BasicRun<T>::State& run,
                             int64_t head_begin, int64_t row_begin, View<T, 4> weights);
// Sums over them; see pattern_sums().
template <class T>
void attention_sublayer_sums(const Sublayer<T>& sublayer, const Batch& batch, typename BasicRun<T>::State& run,
                             const PatternSums<T>& sums);

// ALiBi slopes for any number of heads (Press et al. 2022): 2^(-8 (h + 1) / H) when H is a power of two; otherwise
// those of the largest power of two below, then every second one of twice that.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace headlight
