#pragma once
// The types of GGUF's tensors: how many elements a block holds, in how many bytes, and what they say.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headlight {

struct GgufTensorType {
  uint32_t id;  // in files
  std::string_view name;
  int64_t elements;  // of one block
  int64_t bytes;     // of one block
  // to[0 .. blocks * elements) = the elements of the blocks from `from` on, at any alignment; nullptr for the types
  // that are listed but not read
  void (*decode)(const std::byte* from, int64_t blocks, float* to);
};

// nullptr when no type has the number.
const GgufTensorType* find_gguf_type(uint32_t id);

}  // namespace headlight
