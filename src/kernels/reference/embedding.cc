#include "kernels/reference/embedding.h"

namespace headlight::reference {

void embedding_forward(View<const int32_t, 1> index, View<const double, 2> table, View<double, 2> y, bool accumulate) {
  for (int64_t i = 0; i < y.size(0); ++i) {
    for (int64_t j = 0; j < y.size(1); ++j) y(i, j) = (accumulate ? y(i, j) : 0) + table(index(i), j);
  }
}

void embedding_backward(View<const int32_t, 1> index, View<const double, 2> dy, View<double, 2> dtable) {
  for (int64_t i = 0; i < dy.size(0); ++i) {
    for (int64_t j = 0; j < dy.size(1); ++j) dtable(index(i), j) += dy(i, j);
  }
}

}  // namespace headlight::reference
