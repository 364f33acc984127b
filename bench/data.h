#pragma once
// Inputs and outputs of what is timed.

#include <cstdint>
#include <deque>

#include "headlight/base/random.h"
#include "headlight/tensor/buffer.h"

namespace headlight::bench {

// Matrices and vectors filled with numbers from -1 to 1, kept until the end.
class Data {
 public:
  View<float, 2> matrix(int64_t rows, int64_t n) { return numbers(rows * n).view<2>({rows, n}); }
  View<float, 1> vector(int64_t n) { return numbers(n).view<1>({n}); }
  View<int32_t, 1> indices(int64_t n, int64_t below) {
    Buffer<int32_t>& buffer = indices_.emplace_back(n);
    for (int32_t& i : buffer) i = static_cast<int32_t>(random_.below(static_cast<uint64_t>(below)));
    return buffer.view<1>({n});
  }

 private:
  Buffer<float>& numbers(int64_t n) {
    Buffer<float>& buffer = numbers_.emplace_back(n);
    for (float& x : buffer) x = static_cast<float>(2 * random_.uniform() - 1);
    return buffer;
  }

  RandomStream random_{1, 1, 0};
  std::deque<Buffer<float>> numbers_;
  std::deque<Buffer<int32_t>> indices_;
};

}  // namespace headlight::bench
