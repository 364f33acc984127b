#include "kernels/reference/matmul.h"

#include "kernels/reference/activation.h"

namespace headlight::reference {

void matmul(const Matmul<double>& args) {
  for (int64_t i = 0; i < args.c.size(0); ++i) {
    for (int64_t j = 0; j < args.c.size(1); ++j) {
      double s = 0;
      for (int64_t l = 0; l < args.a.size(1); ++l) s += args.a(i, l) * args.b(l, j);
      if (args.bias.data != nullptr) s += args.bias(j);
      if (args.pre.data != nullptr) args.pre(i, j) = s;
      s = activate(args.activation, s);
      if (args.residual.data != nullptr) s += args.residual(i, j);
      args.c(i, j) = args.accumulate ? args.c(i, j) + s : s;
    }
  }
}

void add_column_sums(View<const double, 2> x, View<double, 1> sums) {
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) sums(j) += x(i, j);
  }
}

}  // namespace headlight::reference
