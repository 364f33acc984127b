#pragma once
// A weight matrix as a model keeps it: in the type that it computes in, or short.

#include <cstdint>

#include "headlight/tensor/half.h"
#include "headlight/tensor/view.h"

namespace headlight {

// One of the three is there.
template <class T>
struct StoredMatrix {
  View<const T, 2> wide{};
  View<const BFloat16, 2> bf16{};
  View<const Float16, 2> f16{};

  bool is_wide() const { return bf16.data == nullptr && f16.data == nullptr; }
  int64_t size(int dimension) const {
    return is_wide() ? wide.size(dimension) : bf16.data != nullptr ? bf16.size(dimension) : f16.size(dimension);
  }
  StoredMatrix swap(int a, int b) const {
    return apply([&](auto view) { return view.swap(a, b); });
  }
  StoredMatrix slice(int dimension, int64_t begin, int64_t end) const {
    return apply([&](auto view) { return view.slice(dimension, begin, end); });
  }

 private:
  template <class F>
  StoredMatrix apply(F f) const {
    StoredMatrix out;
    if (bf16.data != nullptr) {
      out.bf16 = f(bf16);
    } else if (f16.data != nullptr) {
      out.f16 = f(f16);
    } else {
      out.wide = f(wide);
    }
    return out;
  }
};

}  // namespace headlight
