#pragma once
// Weights on their way from a file into a model.

#include <algorithm>
#include <span>

#include "headlight/base/thread_pool.h"
#include "headlight/tensor/buffer.h"

namespace headlight {

// to(in, out) = from(out, in). `read(first, rows)` fills `rows` with rows of the file's (out, in), which are `in` long,
// from row `first` on; the threads of the pool call it side by side.
template <class Read>
void load_transposed(View<float, 2> to, Read read) {
  constexpr int64_t kRows = 64;
  const int64_t ins = to.size(0), outs = to.size(1);
  default_pool().run((outs + kRows - 1) / kRows, [&](int64_t task, int) {
    const int64_t first = task * kRows, count = std::min(kRows, outs - first);
    Buffer<float> rows(count * ins);
    read(first, std::span<float>(rows.data(), static_cast<std::size_t>(rows.count())));
    for (int64_t in = 0; in < ins; ++in) {
      for (int64_t out = 0; out < count; ++out) to(in, first + out) = rows[out * ins + in];
    }
  });
}

// to = the rows of the file, likewise.
template <class Read>
void load_rows(View<float, 2> to, Read read) {
  constexpr int64_t kRows = 256;
  default_pool().run((to.size(0) + kRows - 1) / kRows, [&](int64_t task, int) {
    const View<float, 2> rows = to.slice(0, task * kRows, std::min(to.size(0), (task + 1) * kRows));
    read(task * kRows, std::span<float>(rows.data, static_cast<std::size_t>(rows.count())));
  });
}

}  // namespace headlight
