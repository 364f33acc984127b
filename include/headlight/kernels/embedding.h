#pragma once
// Token and position embeddings: rows of tables, and the sums of gradients back into them.

#include <cstdint>

#include "headlight/tensor/view.h"

namespace headlight {

// y_i = table[index_i], set. index: (rows), each in [0, V); table: (V, D); y: (rows, D), apart from the table;
// rows of unit stride. With `accumulate` y_i += table[index_i]. Throws LogicError when sizes do not fit or an
// index is outside the table.
template <class T>
void embedding_forward(View<const int32_t, 1> index, View<const T, 2> table, View<T, 2> y, bool accumulate = false);

// dtable[index_i] += dy_i, rows in rising order of i whatever the number of threads. Shapes as in the forward,
// dtable apart from dy.
template <class T>
void embedding_backward(View<const int32_t, 1> index, View<const T, 2> dy, View<T, 2> dtable);

}  // namespace headlight
