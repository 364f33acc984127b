#pragma once
// Attention with the bilinear score of Luong et al. 2015 ("general"): in place of scale * q_i . k_j,
//   score(i,j) = scale * q_i^T W_h k_j.
// Queries are projected head by head, p_i = q_i W_h, and attention runs on them: whatever attention.h says of q holds
// for p, and attention_rows with q = projected gives the weights. (Their "dot" is attention itself with scale 1, their
// "concat" the pattern's `additive`, which here gives additive_h . tanh(q W_h + k).)
//
// T is float or double. Gradients of rows that see nothing are 0 whatever q and W hold.

#include "headlight/kernels/attention.h"

namespace headlight {

// Throws LogicError, before anything is written, where attention does and when the last dimension of `projected` is
// not of unit stride.
template <class T>
struct BilinearForward {
  View<const T, 4> q;  // (B, Tq, H, Kq)
  View<const T, 3> w;  // (H, Kq, K)
  View<const T, 4> k;  // (B, Tk, Hkv, K), H a multiple of Hkv
  View<const T, 4> v;  // (B, Tk, Hkv, M)
  View<T, 4> projected;  // (B, Tq, H, K), set: q W_h, 0 outside the valid rows; the backward reads it
  View<T, 4> o;          // (B, Tq, H, M), set
  View<RowStatistic<T>, 3> statistics{};  // (B, H, Tq), optional, set
  AttentionPattern<T> pattern{};
};

// Given dO and what the forward gave: with dp the gradient of the projected queries,
//   dq_i = W_h dp_i,  dW_h = sum over entries and rows of q_i dp_i^T;  the others as in attention.
// Gradients are set, each optional. Throws LogicError, before anything is written, where attention does, when the last
// dimension of d_projected, dq or dw is not of unit stride, and when dq or dw come without d_projected.
template <class T>
struct BilinearBackward {
  View<const T, 4> q;  // as in the forward
  View<const T, 3> w;
  View<const T, 4> k, v;
  View<const T, 4> projected, o;              // from the forward
  View<const RowStatistic<T>, 3> statistics;  // (B, H, Tq) from the forward
  View<const T, 4> d_o;                       // (B, Tq, H, M)
  View<T, 4> d_projected{};                   // (B, Tq, H, K): dp, needed for dq and dw
  View<T, 4> dq{};                            // (B, Tq, H, Kq)
  View<T, 3> dw{};                            // (H, Kq, K)
  View<T, 4> dk{};                            // (B, Tk, Hkv, K)
  View<T, 4> dv{};                            // (B, Tk, Hkv, M)
  View<T, 4> dbias{};                         // shape of bias
  View<T, 1> dsinks{};                        // (H)
  View<T, 1> dslopes{};                       // (H)
  View<T, 2> d_additive{};                    // (H, K)
  AttentionPattern<T> pattern{};
};

template <class T>
void bilinear_attention_forward(const BilinearForward<T>& args);
template <class T>
void bilinear_attention_backward(const BilinearBackward<T>& args);

// So that `bilinear_attention_forward({.q = q, ...})` needs no template argument.
inline void bilinear_attention_forward(const BilinearForward<float>& args) { bilinear_attention_forward<float>(args); }
inline void bilinear_attention_forward(const BilinearForward<double>& args) {
  bilinear_attention_forward<double>(args);
}
inline void bilinear_attention_backward(const BilinearBackward<float>& args) {
  bilinear_attention_backward<float>(args);
}
inline void bilinear_attention_backward(const BilinearBackward<double>& args) {
  bilinear_attention_backward<double>(args);
}

}  // namespace headlight
