#pragma once
// The scalar truth of kernels/cross_entropy.h.

#include "headlight/kernels/cross_entropy.h"

namespace headlight::reference {

void cross_entropy(const CrossEntropy<double>& args);

}  // namespace headlight::reference
