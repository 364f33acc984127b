#pragma once
// oneDNN as a peer of the matrix product.

#include "headlight/tensor/view.h"
#include "timing.h"

namespace headlight::bench {

// c = a b in the layout given. With `pack_b` b is brought into the layout that oneDNN likes best, before
// anything is timed. Run with OMP_WAIT_POLICY=passive: its threads else spin into the time of the others.
Work onednn_matmul(const std::string& name, View<float, 2> a, View<float, 2> b, View<float, 2> c, bool pack_b);

}  // namespace headlight::bench
