#pragma once
// Sums of equally shaped rows: additions to the residual stream.

#include "headlight/tensor/view.h"

namespace headlight {

// z = x + y elementwise, set. All (rows, n), rows of unit stride; z may be x or y itself.
// Throws LogicError when sizes do not fit.
template <class T>
void add(View<const T, 2> x, View<const T, 2> y, View<T, 2> z);

}  // namespace headlight
