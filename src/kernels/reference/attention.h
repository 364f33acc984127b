#pragma once
// The slow truth of attention: plain loops in float64 over the same arguments as the kernels, without their
// tiles, their checks or their use of stored statistics (everything is recomputed from q, k and v).

#include "headlight/kernels/attention.h"
#include "headlight/kernels/attention_sums.h"

namespace headlight::reference {

template <class T>
void attention_forward(const AttentionForward<T>& args);
template <class T>
void attention_backward(const AttentionBackward<T>& args);
template <class T>
void attention_rows(const AttentionRows<T>& args);
template <class T>
void attention_sums(const AttentionSums<T>& args);

}  // namespace headlight::reference
