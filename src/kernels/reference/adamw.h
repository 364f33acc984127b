#pragma once
// The scalar truth of kernels/adamw.h.

#include "headlight/kernels/adamw.h"

namespace headlight::reference {

void adamw_step(const AdamW<double>& args);
double sum_of_squares(View<const double, 1> x);

}  // namespace headlight::reference
