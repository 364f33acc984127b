#pragma once
// The scalar truth of kernels/matmul.h.

#include "headlight/kernels/matmul.h"

namespace headlight::reference {

void matmul(const Matmul<double>& args);
void add_column_sums(View<const double, 2> x, View<double, 1> sums);

}  // namespace headlight::reference
