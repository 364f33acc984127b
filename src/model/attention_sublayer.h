#pragma once
// Multi-head self-attention as a sublayer: z = attention(q, k, v) per head, out = z W_O + b_O.

#include <memory>
#include <string>

#include "model/architecture.h"

namespace headlight {

// Declares parameters `prefix`W_Q, W_K, W_V, W_O (and biases) and the sites `prefix`hook_q ... hook_result.
template <class T>
std::unique_ptr<Sublayer<T>> make_attention(const ModelConfig& config, const std::string& prefix,
                                            Architecture<T>& architecture);

// The weights of chosen rows of the block whose sublayer this is; see pattern_rows().
template <class T>
void attention_sublayer_rows(const Sublayer<T>& sublayer, const Batch& batch, typename BasicRun<T>::State& run,
                             int64_t head_begin, int64_t row_begin, View<T, 4> weights);

// ALiBi slopes for any number of heads (Press et al. 2022): 2^(-8 (h + 1) / H) when H is a power of two; otherwise
// those of the largest power of two below, then every second one of twice that.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace headlight
