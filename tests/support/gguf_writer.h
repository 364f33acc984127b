#pragma once
// GGUF files byte by byte, right ones and wrong ones.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace headlight {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string gguf_text(const std::string& text) { return raw(uint64_t{text.size()}) + text; }

// `type` as in the file; `value` its bytes.
inline std::string gguf_value(const std::string& key, uint32_t type, const std::string& value) {
  return gguf_text(key) + raw(type) + value;
}

inline std::string gguf_array(const std::string& key, uint32_t type, uint64_t count, const std::string& elements) {
  return gguf_value(key, 9, raw(type) + raw(count) + elements);
}

// `sizes` with the fastest first, as the file has them.
inline std::string gguf_tensor(const std::string& name, const std::vector<uint64_t>& sizes, uint32_t type,
                               uint64_t offset) {
  std::string bytes = gguf_text(name) + raw(static_cast<uint32_t>(sizes.size()));
  for (uint64_t size : sizes) bytes += raw(size);
  return bytes + raw(type) + raw(offset);
}

inline std::string gguf_header(uint64_t tensors, uint64_t values, uint32_t version = 3) {
  return "GGUF" + raw(version) + raw(tensors) + raw(values);
}

// The file; `data` follows the records from a multiple of the alignment on.
inline std::string gguf_file(const std::vector<std::string>& values, const std::vector<std::string>& tensors = {},
                             const std::string& data = "", std::size_t alignment = 32, uint32_t version = 3) {
  std::string bytes = gguf_header(tensors.size(), values.size(), version);
  for (const std::string& value : values) bytes += value;
  for (const std::string& tensor : tensors) bytes += tensor;
  if (!tensors.empty()) bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
  return bytes + data;
}

}  // namespace headlight
