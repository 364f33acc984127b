#pragma once
// What the attention weights of each query row add up to, and single ones of them, recomputed from the statistics of
// a finished forward; no row of weights is ever stored.

#include <cstdint>

#include "headlight/kernels/attention.h"

namespace headlight {

// With P, p and r as in attention.h, for all query rows i; each output is optional. Rows that see nothing have 0.
// Weights are those of the forward, bit for bit. Up to 128 of them are added up in Accumulator<T>, such sums in double,
// so that a sum is off by at most 128 roundings of Accumulator<T>. Bits depend on neither threads nor batch.
// Throws LogicError, before anything is written, when sizes do not fit together, lengths leave their rows, or
// outputs overlap inputs or each other.
template <class T>
struct AttentionSums {
  View<const T, 4> q, k;                                   // as in the forward
  View<const RowStatistic<Accumulator<T>>, 3> statistics;  // (B, H, Tq) from the forward
  View<double, 3> sum{};                                   // (B, H, Tq), set: sum over j of P(i,j)
  View<double, 3> entropy{};          // (B, H, Tq), set: - sum over j of P(i,j) ln P(i,j) in nats, where 0 ln 0 = 0
  View<double, 3> distance{};         // (B, H, Tq), set: sum over j of P(i,j) |p - r|
  View<const int64_t, 3> chosen{};    // (B, Tq, N), rows of k; those that are not rows of k choose none
  View<Accumulator<T>, 4> weights{};  // (B, H, Tq, N), set: P(i, chosen(b,i,n)); 0 where invisible or none
  AttentionPattern<Accumulator<T>> pattern{};
};

template <class T>
void attention_sums(const AttentionSums<T>& args);

// So that `attention_sums({.q = q, ...})` needs no template argument.
inline void attention_sums(const AttentionSums<float>& args) { attention_sums<float>(args); }
inline void attention_sums(const AttentionSums<double>& args) { attention_sums<double>(args); }
inline void attention_sums(const AttentionSums<BFloat16>& args) { attention_sums<BFloat16>(args); }
inline void attention_sums(const AttentionSums<Float16>& args) { attention_sums<Float16>(args); }

}  // namespace headlight
