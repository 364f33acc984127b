#pragma once
// The scalar truth of kernels/norm.h.

#include "headlight/kernels/norm.h"

namespace headlight::reference {

void norm_forward(const NormForward<double>& args);
void norm_backward(const NormBackward<double>& args);

}  // namespace headlight::reference
