#pragma once
// safetensors: named, typed, shaped tensors in one file. Reading checks everything before a byte of a tensor
// is handed out; writing is seen whole or not at all.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/base/file.h"
#include "headlight/tensor/dtype.h"

namespace headlight {

// One tensor of an open file. `bytes` are little-endian, row-major, packed, at any alignment.
struct StoredTensor {
  std::string file;  // where it stands, for messages
  std::string name;
  std::string type;            // the type's name in the file
  std::optional<DType> dtype;  // absent for the types of the format that are listed but not read (F8_E4M3, ...)
  std::vector<int64_t> shape;  // {} is a scalar; any size may be 0
  int64_t count = 0;           // elements
  std::span<const std::byte> bytes;
};

struct SafetensorsContent {
  std::map<std::string, std::string> metadata;  // `__metadata__`
  std::vector<StoredTensor> tensors;            // in the order of their bytes
};

// Parses a whole file held in memory; the result borrows `bytes`. `file` is its name in messages.
// Throws Error (bad data) that names the offset or the key, what was found and what is expected.
SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

// An open model file, or all files of a sharded one, mapped into memory.
class Safetensors {
 public:
  // `path` is a file of the format, or the index of a sharded model (NAME.index.json, whose shards must lie
  // in its folder). Throws Error: missing input, or bad data as parse_safetensors.
  explicit Safetensors(const std::filesystem::path& path);

  const std::string& name() const noexcept { return name_; }
  // of the one file; empty for a sharded model
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  // sorted by name
  const std::vector<StoredTensor>& tensors() const noexcept { return tensors_; }
  // nullptr when there is none
  const StoredTensor* find(std::string_view name) const;
  // Throws Error (bad data) when there is none, or when its shape is another.
  const StoredTensor& tensor(std::string_view name, std::span<const int64_t> shape) const;

 private:
  std::string name_;
  std::vector<MappedFile> files_;
  std::map<std::string, std::string> metadata_;
  std::vector<StoredTensor> tensors_;
};

// out = the tensor's elements as float: F16 and BF16 exactly, F64 rounded to nearest, out.size() == count.
// Throws Error (bad data) when it is not of a float type, LogicError when the sizes differ.
void read_floats(const StoredTensor& tensor, std::span<float> out);

// The rows (runs of the last size) from `first` on, as many as `out` takes. Errors as read_floats; LogicError when
// `out` is no whole number of rows or goes beyond the last.
void read_rows(const StoredTensor& tensor, int64_t first, std::span<float> out);

struct TensorToWrite {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // packed, row-major
};

// Writes through write_file_atomically (errors as there). Tensors stand in the order of their element's size,
// largest first, then of their name, from a multiple of 8 bytes on: each is aligned for its type, and equal
// content gives equal bytes. Throws LogicError when a size does not fit, a name occurs twice or is
// `__metadata__`, or text is not UTF-8.
void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace headlight
