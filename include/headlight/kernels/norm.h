#pragma once
// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019) over the last dimension.

#include <cstdint>

#include "headlight/tensor/view.h"

namespace headlight {

enum class NormKind { kNone, kLayerNorm, kRmsNorm };

// LayerNorm: y = (x - mean(x)) / scale * weight + bias, scale = sqrt(mean((x - mean)^2) + epsilon).
// RMSNorm:   y = x / scale * weight,                    scale = sqrt(mean(x^2) + epsilon).
// Sums in at least double the precision's worth of care: two passes over each row. y may be x itself.
// Throws LogicError when sizes do not fit.
template <class T>
struct NormForward {
  NormKind kind = NormKind::kLayerNorm;  // not kNone
  View<const T, 2> x;                    // (rows, D), rows of unit stride
  View<const T, 1> weight{};             // (D), optional: 1
  View<const T, 1> bias{};               // (D), optional: 0; LayerNorm only
  T epsilon = T(1e-5);
  View<T, 2> y;        // (rows, D), set
  View<T, 1> scale{};  // (rows), optional, set
  View<T, 1> mean{};   // (rows), optional, set; 0 for RMSNorm
};
template <class T>
void norm_forward(const NormForward<T>& args);

// With n = (x - mean) / scale and g = dy * weight (LayerNorm; without the mean terms for RMSNorm):
//   dx      = (g - mean(g) - n mean(g n)) / scale      set, or added with `accumulate`
//   dweight += sum over rows of dy n,   dbias += sum over rows of dy
// Rows are summed in an order that depends on their number alone.
template <class T>
struct NormBackward {
  NormKind kind = NormKind::kLayerNorm;
  View<const T, 2> x;         // (rows, D) as in the forward
  View<const T, 1> weight{};  // (D), optional
  View<const T, 1> scale;     // (rows) from the forward
  View<const T, 1> mean{};    // (rows) from the forward; unused for RMSNorm
  View<const T, 2> dy;        // (rows, D)
  View<T, 2> dx;              // (rows, D); may be dy itself when not accumulating
  bool accumulate = false;    // dx += instead of dx =
  View<T, 1> dweight{};       // (D), optional, added to
  View<T, 1> dbias{};         // (D), optional, added to
};
template <class T>
void norm_backward(const NormBackward<T>& args);

}  // namespace headlight
