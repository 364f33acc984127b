#pragma once
// The scalar truth of kernels/rotary.h.

#include "headlight/kernels/rotary.h"

namespace headlight::reference {

void rotary(const Rotary<double>& args);

}  // namespace headlight::reference
