#pragma once
// Cross-entropy of logits against target tokens, in nats, with its gradient.

#include <cstdint>

#include "headlight/tensor/view.h"

namespace headlight {

constexpr int32_t kIgnoredTarget = -1;

// loss(i) = log(sum over v of exp(x(i, v))) - x(i, target_i); 0 for an ignored target.
// dlogits(i, v) = scale * (softmax(x_i)(v) - [v = target_i]); 0 in rows with an ignored target.
// Every element of every output is set; dlogits may be logits itself. Throws LogicError when a target is
// neither ignored nor in [0, V).
template <class T>
struct CrossEntropy {
  View<const T, 2> logits;         // (rows, V), rows of unit stride
  View<const int32_t, 1> targets;  // (rows)
  View<T, 1> loss{};               // (rows), optional
  T scale = T(1);                  // usually 1 / number of targets that count
  View<T, 2> dlogits{};            // (rows, V), optional
};
template <class T>
void cross_entropy(const CrossEntropy<T>& args);

}  // namespace headlight
