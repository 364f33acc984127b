#pragma once
// Scaled dot-product attention, exact and tiled: no (T, T) matrix is ever stored, and any weight can be
// recomputed, bit for bit, from one statistic per query row.
//
// For a query at row i of batch entry b and head h, with absolute position p = pos0 + i - q_begin[b], and
// key row j with position r = j - k_begin[b], g = h / (H / Hkv):
//   score(i,j)   = cap(scale * f(q_i, k_j)) + bias(i,j) - slope_h * |p - r|     cap(s) = s, or c tanh(s/c)
//   f(q,k)       = q . k, or additive_h . tanh(q + k)
//   visible(i,j) = k_begin <= j < k_begin + k_len,  q_begin <= i < q_begin + q_len,
//                  p - left <= r <= p + right,  mask(i,j) != 0,  bias(i,j) != -inf
//   P(i,j)       = exp(score - max_i) / sum_i over the visible keys   (a sink adds exp(sink_h - max_i) to sum_i)
//   o_i          = sum over j of P(i,j) v_j
//
// Rules (docs/attention.md has them all): an invisible key has no influence whatever K and V hold there; a row
// that sees nothing gives o = 0, statistic {-inf, 0}; a visible NaN makes its own row NaN and no other; every
// element of every output is written; any size may be 0; bits do not depend on threads, batch, or on whether
// queries come all at once.
//
// f is the dot product (with scale 1 the "dot" score of Luong et al. 2015), scaled as in Vaswani et al. 2017; or,
// with `additive`, the score of Bahdanau et al. 2015, v . tanh(W s + U h), where v is additive_h and the caller
// has made q = W s and k = U h.
//
// T, which q, k, v, o and their gradients are stored as, is float, double, BFloat16 or Float16. Everything else is
// held and computed in Accumulator<T>: float for the short floats, T itself otherwise.

#include <cstdint>
#include <optional>

#include "headlight/tensor/half.h"
#include "headlight/tensor/view.h"

namespace headlight {

// The pair that a row's weights are recomputed from. Not a log-sum-exp: that loses the weights of large scores.
template <class T>
struct RowStatistic {
  T max;  // largest visible score; -inf when nothing is visible
  T sum;  // sum of exp(score - max)
};

// What queries and keys see of each other; shared by forward, backward and rows.
// Absent views and absent bounds put no limit. Masks and biases broadcast over leading dimensions of size 1
// and take any strides. T is float or double.
template <class T>
struct AttentionPattern {
  T scale = T(1);                 // explicit: 1/sqrt(d_k) is the caller's choice
  int64_t pos0 = 0;               // position of the first valid query row, counted from the first valid key
  std::optional<int64_t> left{};  // keys before the query that it sees; W - 1 for a window of W
  std::optional<int64_t> right{}; // keys after it: 0 is causal
  View<const int64_t, 1> q_len{};    // (B), optional: valid query rows
  View<const int64_t, 1> k_len{};    // (B), optional: valid key rows
  View<const int64_t, 1> q_begin{};  // (B), optional: first valid query row (left padding); else 0
  View<const int64_t, 1> k_begin{};  // (B), optional: first valid key row; else 0
  View<const uint8_t, 4> mask{};     // (B|1, H|1, Tq|1, Tk|1), optional: nonzero = may attend
  View<const T, 4> bias{};           // (B|1, H|1, Tq|1, Tk|1), optional: added to the score
  View<const T, 1> slopes{};         // (H), optional: ALiBi
  View<const T, 1> sinks{};          // (H), optional
  View<const T, 2> additive{};       // (H, K), optional: scores are scale * additive_h . tanh(q + k)
  std::optional<T> soft_cap{};       // c > 0
};

// Throws LogicError, before anything is written, when sizes do not fit together, lengths leave their rows, or
// outputs overlap inputs or each other.
template <class T>
struct AttentionForward {
  View<const T, 4> q;  // (B, Tq, H, K)
  View<const T, 4> k;  // (B, Tk, Hkv, K), H a multiple of Hkv
  View<const T, 4> v;  // (B, Tk, Hkv, M)
  View<T, 4> o;        // (B, Tq, H, M), set
  View<RowStatistic<Accumulator<T>>, 3> statistics{};  // (B, H, Tq), optional, set
  AttentionPattern<Accumulator<T>> pattern{};
};

// Given dO and the forward's o and statistics: with D_i = do_i . o_i,
//   dP = dO V^T,  dS = P (dP - D),  ds = dS * cap'(s),  dq = scale ds k,  dk = scale ds^T q,  dv = P^T dO;
// and in the additive form, with t_ij = tanh(q_i + k_j) and e_ij = scale ds_ij additive_h (1 - t_ij^2):
//   dq_i = sum over j of e_ij,  dk_j = sum over i of e_ij,  d_additive_h = scale sum over i, j of ds_ij t_ij.
// Gradients are set, each optional; dbias is dS summed over what the bias was broadcast to.
template <class T>
struct AttentionBackward {
  View<const T, 4> q, k, v;  // as in the forward
  View<const T, 4> o;        // (B, Tq, H, M) from the forward
  View<const RowStatistic<Accumulator<T>>, 3> statistics;  // (B, H, Tq) from the forward
  View<const T, 4> d_o;      // (B, Tq, H, M)
  View<T, 4> dq{};           // (B, Tq, H, K)
  View<T, 4> dk{};           // (B, Tk, Hkv, K)
  View<T, 4> dv{};           // (B, Tk, Hkv, M)
  View<Accumulator<T>, 4> dbias{};    // shape of bias
  View<Accumulator<T>, 1> dsinks{};   // (H)
  View<Accumulator<T>, 1> dslopes{};  // (H)
  View<Accumulator<T>, 2> d_additive{};  // (H, K)
  AttentionPattern<Accumulator<T>> pattern{};
};

// The weights that the forward used, bit for bit, for query rows [row_begin, row_begin + R) of all batch
// entries and of heads [head_begin, head_begin + N).
template <class T>
struct AttentionRows {
  View<const T, 4> q, k;                      // as in the forward
  View<const RowStatistic<Accumulator<T>>, 3> statistics;  // (B, H, Tq) from the forward
  int64_t head_begin = 0;
  int64_t row_begin = 0;
  View<Accumulator<T>, 4> weights;  // (B, N, R, Tk), set; 0 where invisible
  AttentionPattern<Accumulator<T>> pattern{};
};

template <class T>
void attention_forward(const AttentionForward<T>& args);
template <class T>
void attention_backward(const AttentionBackward<T>& args);
template <class T>
void attention_rows(const AttentionRows<T>& args);

// So that `attention_forward({.q = q, ...})` needs no template argument.
inline void attention_forward(const AttentionForward<float>& args) { attention_forward<float>(args); }
inline void attention_forward(const AttentionForward<double>& args) { attention_forward<double>(args); }
inline void attention_forward(const AttentionForward<BFloat16>& args) { attention_forward<BFloat16>(args); }
inline void attention_forward(const AttentionForward<Float16>& args) { attention_forward<Float16>(args); }
inline void attention_backward(const AttentionBackward<float>& args) { attention_backward<float>(args); }
inline void attention_backward(const AttentionBackward<double>& args) { attention_backward<double>(args); }
inline void attention_backward(const AttentionBackward<BFloat16>& args) { attention_backward<BFloat16>(args); }
inline void attention_backward(const AttentionBackward<Float16>& args) { attention_backward<Float16>(args); }
inline void attention_rows(const AttentionRows<float>& args) { attention_rows<float>(args); }
inline void attention_rows(const AttentionRows<double>& args) { attention_rows<double>(args); }
inline void attention_rows(const AttentionRows<BFloat16>& args) { attention_rows<BFloat16>(args); }
inline void attention_rows(const AttentionRows<Float16>& args) { attention_rows<Float16>(args); }

}  // namespace headlight
