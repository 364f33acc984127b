// Any bytes: the GGUF reader either hands out values and tensors inside them or throws Error.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/formats/gguf.h"

namespace {

using namespace headlight;

// Every reader on every value: each takes it or refuses it.
template <class Read>
void try_read(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    const Gguf gguf(std::as_bytes(std::span(data, size)), "fuzz");
    for (const GgufValue& value : gguf.values()) {
      try_read([&] { gguf.whole(value.key, -5); });
      try_read([&] { gguf.number(value.key, 0, 1); });
      try_read([&] { gguf.boolean(value.key); });
      try_read([&] { gguf.text(value.key); });
      try_read([&] { gguf.wholes(value.key, -5); });
      try_read([&] { gguf.numbers(value.key); });
      try_read([&] { gguf.texts(value.key); });
    }
    for (const GgufTensor& tensor : gguf.tensors()) {
      std::vector<float> out(static_cast<std::size_t>(tensor.count));
      try_read([&] { read_floats(tensor, out); });
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
