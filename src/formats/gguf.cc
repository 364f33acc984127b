#include "headlight/formats/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/json_reader.h"
#include "formats/gguf_types.h"
#include "formats/shape.h"
#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"

namespace headlight {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are read in place");

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDimensions = 4;
// the least that one of them takes in a file
constexpr uint64_t kLeastValue = 8 + 4 + 1;
constexpr uint64_t kLeastTensor = 8 + 4 + 4 + 8;
// elements that one thread reads at a time; a multiple of every block
constexpr int64_t kTaskElements = 1 << 16;

struct ValueType {
  std::string_view name;
  uint64_t bytes;  // 0: not of one size
};
// In the order of GgufType.
constexpr ValueType kValueTypes[] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};

const ValueType& value_type(GgufType type) { return kValueTypes[static_cast<uint32_t>(type)]; }

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads a file from its first byte on; whatever would go beyond the last one is an error.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  uint64_t at() const { return at_; }
  uint64_t rest() const { return bytes_.size() - at_; }

  [[noreturn]] void fail(uint64_t at, const std::string& found, const std::string& expected) const {
    bad_file(file_, fmt::format("byte {}: {}", at, found), expected);
  }

  std::span<const std::byte> take_bytes(uint64_t size, const std::string& what) {
    if (size > rest()) {
      fail(at_, fmt::format("{} of {} bytes", what, size),
           fmt::format("expected at most {}; the file is cut short", rest()));
    }
    const auto taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  template <class T>
  T take(const std::string& what) {
    return load<T>(take_bytes(sizeof(T), what).data());
  }

  // How many things of at least `least` bytes follow.
  uint64_t take_count(uint64_t least, const std::string& what) {
    const uint64_t begin = at_;
    const auto count = take<uint64_t>("number of " + what);
    if (count > rest() / least) {
      fail(begin, fmt::format("{} {}", count, what),
           fmt::format("expected at most {} in the {} bytes that follow", rest() / least, rest()));
    }
    return count;
  }

  std::string_view take_text(const std::string& what) {
    const auto length = take<uint64_t>("length of " + what);
    return text_of(take_bytes(length, what));
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  uint64_t at_ = 0;
};

GgufType take_value_type(Cursor& cursor, const std::string& what) {
  const uint64_t begin = cursor.at();
  const auto number = cursor.take<uint32_t>("type of " + what);
  if (number >= std::size(kValueTypes)) {
    cursor.fail(begin, fmt::format("{} has the unknown type {}", what, number), "expected a type from 0 to 12");
  }
  return static_cast<GgufType>(number);
}

GgufValue take_value(Cursor& cursor) {
  GgufValue value;
  value.key = cursor.take_text("a key");
  const std::string what = "key " + in_quotes(value.key);
  value.type = take_value_type(cursor, what);
  value.is_array = value.type == GgufType::kArray;
  if (value.is_array) {
    const uint64_t begin = cursor.at();
    value.type = take_value_type(cursor, what);
    if (value.type == GgufType::kArray) cursor.fail(begin, what + " is an array of arrays", "expected none nested");
    const uint64_t least = value.type == GgufType::kString ? sizeof(uint64_t) : value_type(value.type).bytes;
    value.count = cursor.take_count(least, "elements of " + what);
  }

  const uint64_t begin = cursor.at();
  Cursor start = cursor;
  if (value.type == GgufType::kString) {
    for (uint64_t i = 0; i < value.count; ++i) cursor.take_text("a string of " + what);
  } else {
    cursor.take_bytes(value.count * value_type(value.type).bytes, "value of " + what);
  }
  value.bytes = start.take_bytes(cursor.at() - begin, what);
  if (value.type == GgufType::kBool) {
    const auto wrong =
        std::find_if(value.bytes.begin(), value.bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (wrong != value.bytes.end()) {
      cursor.fail(begin + static_cast<uint64_t>(wrong - value.bytes.begin()),
                  fmt::format("{} is a bool of {}", what, std::to_integer<int>(*wrong)), "expected 0 or 1");
    }
  }
  return value;
}

struct TensorRecord {
  GgufTensor tensor;
  uint64_t offset;  // from the data's start
  uint64_t bytes;
};

// Row-major, the record's sizes in reverse.
std::vector<int64_t> take_shape(Cursor& cursor, const std::string& what) {
  const uint64_t begin = cursor.at();
  const auto dimensions = cursor.take<uint32_t>("number of dimensions of " + what);
  if (dimensions > kMaxDimensions) {
    cursor.fail(begin, fmt::format("{} has {} dimensions", what, dimensions),
                fmt::format("expected at most {}", kMaxDimensions));
  }
  std::vector<int64_t> shape(dimensions);
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint64_t at = cursor.at();
    const auto size = cursor.take<uint64_t>("a dimension of " + what);
    if (!std::in_range<int64_t>(size)) {
      cursor.fail(at, fmt::format("{} has a dimension of {}", what, size), "expected less than 2^63");
    }
    shape[dimensions - 1 - i] = static_cast<int64_t>(size);
  }
  return shape;
}

TensorRecord take_tensor(Cursor& cursor, const std::string& file) {
  TensorRecord record{};
  GgufTensor& tensor = record.tensor;
  tensor.file = file;
  tensor.name = cursor.take_text("a tensor's name");
  const std::string what = "tensor " + in_quotes(tensor.name);
  tensor.shape = take_shape(cursor, what);
  const uint64_t type_at = cursor.at();
  tensor.type_id = cursor.take<uint32_t>("type of " + what);
  const GgufTensorType* type = find_gguf_type(tensor.type_id);
  if (type == nullptr) {
    cursor.fail(type_at, fmt::format("{} has the unknown type {}", what, tensor.type_id),
                "expected a type of the format, such as 1 (F16)");
  }
  tensor.type = type->name;

  if (tensor.columns() % type->elements != 0) {
    cursor.fail(type_at, fmt::format("{} of {} has rows of {}", what, type->name, tensor.columns()),
                fmt::format("expected a multiple of {}", type->elements));
  }
  const std::optional<int64_t> count = element_count(tensor.shape);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count / type->elements, type->bytes, &bytes)) {
    cursor.fail(type_at, fmt::format("{}: shape {} of {}", what, shape_text(tensor.shape), type->name),
                "expected less than 2^63 bytes");
  }
  tensor.count = *count;
  record.bytes = static_cast<uint64_t>(bytes);
  record.offset = cursor.take<uint64_t>("offset of " + what);
  return record;
}

// Sorted by name; throws when one occurs twice.
template <class Named, class Name>
void sort_by_name(std::vector<Named>& items, Name name, const std::string& file, const std::string& kind) {
  std::sort(items.begin(), items.end(), [&](const Named& a, const Named& b) { return name(a) < name(b); });
  const auto twice = std::adjacent_find(items.begin(), items.end(),
                                        [&](const Named& a, const Named& b) { return name(a) == name(b); });
  if (twice != items.end()) {
    bad_file(file, kind + " " + in_quotes(name(*twice)) + " occurs twice", "expected each once");
  }
}

// The item of a sorted list that has the name; nullptr when there is none.
template <class Named, class Name>
const Named* find_by_name(const std::vector<Named>& items, Name name_of, std::string_view name) {
  const auto at = std::lower_bound(items.begin(), items.end(), name,
                                   [&](const Named& item, std::string_view key) { return name_of(item) < key; });
  return at != items.end() && name_of(*at) == name ? &*at : nullptr;
}

const std::string& key_of(const GgufValue& value) { return value.key; }
const std::string& name_of(const GgufTensor& tensor) { return tensor.name; }

uint32_t take_version(Cursor& cursor) {
  const std::string_view magic = text_of(cursor.take_bytes(4, "a first word"));
  if (magic != "GGUF") cursor.fail(0, "found " + in_quotes(magic), "expected a GGUF file, which begins with \"GGUF\"");
  const auto version = cursor.take<uint32_t>("version");
  if (version == 0x02000000 || version == 0x03000000) {
    cursor.fail(4, "the file's bytes are in big-endian order", "expected a little-endian GGUF file");
  }
  if (version != 2 && version != 3) {
    cursor.fail(4, fmt::format("version {}", version), "expected GGUF version 2 or 3");
  }
  return version;
}

// Offsets are the running sum of the tensors' sizes, each padded to the alignment; nothing follows the last one but
// its padding.
std::vector<GgufTensor> place_tensors(std::vector<TensorRecord> records, std::span<const std::byte> bytes,
                                      uint64_t header, uint64_t alignment, const std::string& file) {
  const auto padded = [&](uint64_t size) { return (size + alignment - 1) & ~(alignment - 1); };
  const uint64_t start = padded(header);
  uint64_t next = 0;
  std::vector<GgufTensor> tensors;
  tensors.reserve(records.size());
  for (TensorRecord& record : records) {
    const std::string where = file + ": tensor " + in_quotes(record.tensor.name);
    if (record.offset != next) {
      bad_file(where, fmt::format("data begins at byte {} of the data", record.offset),
               fmt::format("expected {}, where the tensor before it ends, padded to {}", next, alignment));
    }
    if (start + next > bytes.size() || record.bytes > bytes.size() - start - next) {
      bad_file(where, fmt::format("data of {} bytes from byte {} on", record.bytes, start + next),
               fmt::format("expected its end within the file's {} bytes; the file is cut short", bytes.size()));
    }
    record.tensor.bytes = bytes.subspan(start + next, record.bytes);
    next = padded(next + record.bytes);
    tensors.push_back(std::move(record.tensor));
  }
  if (bytes.size() > start + next) {
    bad_file(file, fmt::format("{} bytes after the last tensor", bytes.size() - start - next), "expected none");
  }
  return tensors;
}

}  // namespace

std::string GgufValue::type_name() const {
  const std::string element(value_type(type).name);
  return is_array ? "array of " + element : element;
}

Gguf::Gguf(const std::filesystem::path& path) {
  MappedFile file(path);
  *this = Gguf(file.bytes(), path.string());
  mapped_ = std::move(file);
}

Gguf::Gguf(std::span<const std::byte> bytes, const std::string& file) : name_(file) {
  Cursor cursor(bytes, name_);
  version_ = take_version(cursor);
  const uint64_t tensor_count = cursor.take_count(kLeastTensor, "tensors");
  const uint64_t value_count = cursor.take_count(kLeastValue, "key-values");
  for (uint64_t i = 0; i < value_count; ++i) values_.push_back(take_value(cursor));
  sort_by_name(values_, key_of, name_, "key");

  uint64_t alignment = kDefaultAlignment;
  if (const GgufValue* value = find_value("general.alignment")) {
    const std::string expected = "expected a u32 that is a power of two";
    if (value->is_array || value->type != GgufType::kU32) fail(value->key, "found " + value->type_name(), expected);
    alignment = load<uint32_t>(value->bytes.data());
    if (!std::has_single_bit(alignment)) fail(value->key, fmt::format("found {}", alignment), expected);
  }

  std::vector<TensorRecord> records;
  for (uint64_t i = 0; i < tensor_count; ++i) records.push_back(take_tensor(cursor, name_));
  tensors_ = place_tensors(std::move(records), bytes, cursor.at(), alignment, name_);
  sort_by_name(tensors_, name_of, name_, "tensor");
}

const GgufValue* Gguf::find_value(std::string_view key) const { return find_by_name(values_, key_of, key); }

const GgufTensor* Gguf::find(std::string_view name) const { return find_by_name(tensors_, name_of, name); }

const GgufTensor& Gguf::tensor(std::string_view name, std::span<const int64_t> shape) const {
  return expect_tensor(find(name), name_, in_quotes(name), shape);
}

void Gguf::fail(std::string_view key, const std::string& found, const std::string& expected) const {
  bad_file(name_, "key " + in_quotes(key) + ": " + found, expected);
}

const GgufValue& Gguf::value_of(std::string_view key, bool is_array, const std::string& expected) const {
  const GgufValue* value = find_value(key);
  if (value == nullptr) bad_file(name_, "key " + in_quotes(key) + " is missing", expected);
  if (value->is_array != is_array) fail(key, "found " + value->type_name(), expected);
  return *value;
}

namespace {

// The integer at `at` if it is within the range; otherwise its text, or "" when the type is no integer.
struct Whole {
  std::optional<int64_t> value{};
  std::string text{};
};

template <class T>
Whole whole_at(const std::byte* at, int64_t min, int64_t max) {
  const T value = load<T>(at);
  if (std::cmp_less(value, min) || std::cmp_greater(value, max)) return {std::nullopt, fmt::format("{}", value)};
  return {static_cast<int64_t>(value)};
}

Whole whole_at(GgufType type, const std::byte* at, int64_t min, int64_t max) {
  switch (type) {
    case GgufType::kU8:
      return whole_at<uint8_t>(at, min, max);
    case GgufType::kI8:
      return whole_at<int8_t>(at, min, max);
    case GgufType::kU16:
      return whole_at<uint16_t>(at, min, max);
    case GgufType::kI16:
      return whole_at<int16_t>(at, min, max);
    case GgufType::kU32:
      return whole_at<uint32_t>(at, min, max);
    case GgufType::kI32:
      return whole_at<int32_t>(at, min, max);
    case GgufType::kU64:
      return whole_at<uint64_t>(at, min, max);
    case GgufType::kI64:
      return whole_at<int64_t>(at, min, max);
    default:
      return {};
  }
}

std::string range_text(int64_t min, int64_t max) {
  if (max == std::numeric_limits<int64_t>::max()) return fmt::format("whole numbers >= {}", min);
  return fmt::format("whole numbers from {} to {}", min, max);
}

}  // namespace

int64_t Gguf::whole(std::string_view key, int64_t min, int64_t max) const {
  const std::string expected = "expected one of the " + range_text(min, max);
  const GgufValue& value = value_of(key, false, expected);
  const Whole whole = whole_at(value.type, value.bytes.data(), min, max);
  if (!whole.value) fail(key, "found " + (whole.text.empty() ? value.type_name() : whole.text), expected);
  return *whole.value;
}

std::vector<int64_t> Gguf::wholes(std::string_view key, int64_t min, int64_t max) const {
  const std::string expected = "expected an array of " + range_text(min, max);
  const GgufValue& value = value_of(key, true, expected);
  std::vector<int64_t> wholes;
  for (uint64_t i = 0; i < value.count; ++i) {
    const Whole whole = whole_at(value.type, value.bytes.data() + i * value_type(value.type).bytes, min, max);
    if (!whole.value && whole.text.empty()) fail(key, "found " + value.type_name(), expected);
    if (!whole.value) fail(key, fmt::format("element {}: found {}", i, whole.text), expected);
    wholes.push_back(*whole.value);
  }
  return wholes;
}

double Gguf::number(std::string_view key, double min, double max) const {
  const std::string expected = fmt::format("expected a f32 or f64 from {} to {}", min, max);
  const GgufValue& value = value_of(key, false, expected);
  if (value.type != GgufType::kF32 && value.type != GgufType::kF64) fail(key, "found " + value.type_name(), expected);
  const double number =
      value.type == GgufType::kF32 ? double{load<float>(value.bytes.data())} : load<double>(value.bytes.data());
  if (!std::isfinite(number) || number < min || number > max) fail(key, fmt::format("found {}", number), expected);
  return number;
}

std::vector<float> Gguf::numbers(std::string_view key) const {
  const std::string expected = "expected an array of f32";
  const GgufValue& value = value_of(key, true, expected);
  if (value.type != GgufType::kF32) fail(key, "found " + value.type_name(), expected);
  std::vector<float> numbers(value.count);
  if (!numbers.empty()) std::memcpy(numbers.data(), value.bytes.data(), value.bytes.size());
  return numbers;
}

bool Gguf::boolean(std::string_view key) const {
  const std::string expected = "expected a bool";
  const GgufValue& value = value_of(key, false, expected);
  if (value.type != GgufType::kBool) fail(key, "found " + value.type_name(), expected);
  return value.bytes[0] == std::byte{1};
}

std::string Gguf::text(std::string_view key) const {
  const std::string expected = "expected a string";
  const GgufValue& value = value_of(key, false, expected);
  if (value.type != GgufType::kString) fail(key, "found " + value.type_name(), expected);
  return std::string(Cursor(value.bytes, name_).take_text("a string"));
}

std::vector<std::string> Gguf::texts(std::string_view key) const {
  const std::string expected = "expected an array of string";
  const GgufValue& value = value_of(key, true, expected);
  if (value.type != GgufType::kString) fail(key, "found " + value.type_name(), expected);
  Cursor cursor(value.bytes, name_);
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < value.count; ++i) texts.emplace_back(cursor.take_text("a string"));
  return texts;
}

void read_rows(const GgufTensor& tensor, int64_t first, std::span<float> out) {
  const auto size = static_cast<int64_t>(out.size());
  const int64_t columns = tensor.columns();
  const int64_t rows = columns == 0 ? 0 : size / columns;
  if (rows * columns != size) {
    throw LogicError("read_rows", fmt::format("{} elements are no whole rows of {}", size, columns));
  }
  const int64_t all_rows = columns == 0 ? 0 : tensor.count / columns;
  if (first < 0 || first > all_rows || rows > all_rows - first) {
    throw LogicError("read_rows", fmt::format("{} rows from {} on, of {}", rows, first, all_rows));
  }
  const GgufTensorType* type = find_gguf_type(tensor.type_id);
  if (type == nullptr || type->decode == nullptr) {
    bad_file(tensor.file + ": tensor " + in_quotes(tensor.name), fmt::format("type {}", tensor.type),
             "expected F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or Q6_K");
  }
  // rows are whole blocks, one after the other
  const int64_t begin = first * (columns / type->elements);
  const int64_t blocks = size / type->elements;
  const int64_t step = kTaskElements / type->elements;
  default_pool().run((blocks + step - 1) / step, [&](int64_t task, int) {
    const int64_t block = task * step;
    type->decode(tensor.bytes.data() + (begin + block) * type->bytes, std::min(step, blocks - block),
                 out.data() + block * type->elements);
  });
}

void read_floats(const GgufTensor& tensor, std::span<float> out) {
  if (static_cast<int64_t>(out.size()) != tensor.count) {
    throw LogicError("read_floats", fmt::format("{} elements into {}", tensor.count, out.size()));
  }
  read_rows(tensor, 0, out);
}

}  // namespace headlight
