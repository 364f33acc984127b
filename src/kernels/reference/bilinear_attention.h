#pragma once
// The slow truth of bilinear attention: plain loops around that of attention, in float64.

#include "headlight/kernels/bilinear_attention.h"

namespace headlight::reference {

void bilinear_attention_forward(const BilinearForward<double>& args);
// Also sets d_projected, which must be there.
void bilinear_attention_backward(const BilinearBackward<double>& args);

}  // namespace headlight::reference
