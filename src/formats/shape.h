#pragma once
// What the readers of named tensors share: shapes, and how a bad file is refused.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "headlight/base/error.h"

namespace headlight {

[[noreturn]] inline void bad_file(const std::string& where, const std::string& found,
                                  const std::string& expected = "") {
  throw Error(ErrorKind::kBadData, where, found, expected);
}

// Whether a file begins as PyTorch's own do, a zip or a bare pickle; no size of a model, read as a little-endian number
// from these bytes, is so large.
inline bool looks_like_pickle(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return false;
  const auto at = [&](std::size_t i) { return std::to_integer<int>(bytes[i]); };
  const bool is_zip = at(0) == 'P' && at(1) == 'K' && at(2) == 3 && at(3) == 4;
  return is_zip || (at(0) == 0x80 && at(1) >= 2 && at(1) <= 5 && at(3) != 0);
}

[[noreturn]] inline void refuse_pickle(const std::string& file) {
  bad_file(file, "is a PyTorch pickle, which can run code when it is loaded",
           "expected safetensors; save the weights with safetensors.torch.save_file");
}

inline std::string shape_text(std::span<const int64_t> shape) { return fmt::format("({})", fmt::join(shape, ",")); }

// The product of a shape's sizes, if it fits. A size of 0 does not excuse the others: strides are their products too.
inline std::optional<int64_t> element_count(std::span<const int64_t> shape) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t size : shape) {
    empty = empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return empty ? 0 : product;
}

// Throws Error (bad data) when the tensor is absent or its shape another.
template <class Tensor>
const Tensor& expect_tensor(const Tensor* found, const std::string& file, const std::string& quoted_name,
                            std::span<const int64_t> shape) {
  if (found == nullptr) bad_file(file, "tensor " + quoted_name + " is missing");
  if (!std::equal(shape.begin(), shape.end(), found->shape.begin(), found->shape.end())) {
    bad_file(found->file + ": tensor " + quoted_name, "found shape " + shape_text(found->shape),
             "expected " + shape_text(shape));
  }
  return *found;
}

}  // namespace headlight
