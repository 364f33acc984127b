// Any bytes: the llama2.c reader either hands out tensors inside them or throws Error.

#include <cstddef>
#include <cstdint>
#include <span>

#include "headlight/base/error.h"
#include "headlight/formats/llama2c.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    const auto content = headlight::parse_llama2c(std::as_bytes(std::span(data, size)), "fuzz");
    volatile unsigned sum = 0;
    for (const headlight::StoredTensor& tensor : content.tensors) {
      for (std::byte byte : tensor.bytes) sum = sum + std::to_integer<unsigned>(byte);
    }
  } catch (const headlight::Error&) {
    return 0;
  }
  return 0;
}
