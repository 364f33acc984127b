#pragma once
// GGUF, versions 2 and 3: named, typed values and tensors, many of them quantised, in one file. Reading checks
// everything before a value or a byte of a tensor is handed out.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/base/file.h"

namespace headlight {

// The types of values, with the numbers that files write.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// One key and its value, as it stands in the file.
struct GgufValue {
  std::string key;
  GgufType type;                     // of an array, that of its elements; never kArray
  bool is_array = false;             // arrays are not nested
  uint64_t count = 1;                // elements of an array
  std::span<const std::byte> bytes;  // of all elements; a string is u64 length and its bytes

  // as messages write it: "u32", "array of string"
  std::string type_name() const;
};

// One tensor of an open file.
struct GgufTensor {
  std::string file;  // where it stands, for messages
  std::string name;
  uint32_t type_id = 0;
  std::string_view type;       // "F32", "Q4_K", ...
  std::vector<int64_t> shape;  // row-major, the file's sizes reversed; {} is a scalar, any size may be 0
  int64_t count = 0;           // elements
  std::span<const std::byte> bytes;

  // the size that runs fastest; 1 for a scalar
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
};

// An open file, mapped into memory.
class Gguf {
 public:
  // Throws Error: missing input, or bad data that names the file, the byte, key or tensor, what was found and
  // what is expected.
  explicit Gguf(const std::filesystem::path& path);
  // A whole file held in memory, which is borrowed. `file` is its name in messages.
  Gguf(std::span<const std::byte> bytes, const std::string& file);

  const std::string& name() const noexcept { return name_; }
  uint32_t version() const noexcept { return version_; }
  // sorted by key
  const std::vector<GgufValue>& values() const noexcept { return values_; }
  // sorted by name
  const std::vector<GgufTensor>& tensors() const noexcept { return tensors_; }

  // Values by key, type and range. Each throws Error (bad data) that names the file, the key, what was found and
  // what is expected when the key is absent (ask `has` first) or its value another one.
  bool has(std::string_view key) const { return find_value(key) != nullptr; }
  const GgufValue* find_value(std::string_view key) const;  // nullptr when there is none
  // of any integer type
  int64_t whole(std::string_view key, int64_t min, int64_t max = std::numeric_limits<int64_t>::max()) const;
  // f32 or f64, finite, min <= value <= max
  double number(std::string_view key, double min, double max) const;
  bool boolean(std::string_view key) const;
  std::string text(std::string_view key) const;  // any bytes
  // arrays; of any integer type, of f32 (any value, NaN included), of strings
  std::vector<int64_t> wholes(std::string_view key, int64_t min,
                              int64_t max = std::numeric_limits<int64_t>::max()) const;
  std::vector<float> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

  const GgufTensor* find(std::string_view name) const;  // nullptr when there is none
  // Throws Error (bad data) when there is none, or when its shape is another.
  const GgufTensor& tensor(std::string_view name, std::span<const int64_t> shape) const;

 private:
  const GgufValue& value_of(std::string_view key, bool is_array, const std::string& expected) const;
  [[noreturn]] void fail(std::string_view key, const std::string& found, const std::string& expected) const;

  std::string name_;
  std::optional<MappedFile> mapped_;
  uint32_t version_ = 0;
  std::vector<GgufValue> values_;
  std::vector<GgufTensor> tensors_;
};

// out = the tensor's elements as float. F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K: exactly,
// but for one rounding where a type adds a minimum to the scaled integer. Throws Error (bad data) for another type,
// LogicError when out.size() != count.
void read_floats(const GgufTensor& tensor, std::span<float> out);

// The rows (of columns() elements) from `first` on, as many as `out` takes. Errors as read_floats; LogicError when
// `out` is no whole number of rows or goes beyond the last.
void read_rows(const GgufTensor& tensor, int64_t first, std::span<float> out);

}  // namespace headlight
