#include "headlight/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "base/json_reader.h"
#include "formats/shape.h"
#include "headlight/base/error.h"
#include "headlight/tensor/half.h"

namespace headlight {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are read in place");

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr uint64_t kAlignment = 8;
constexpr char kMetadata[] = "__metadata__";

// Types of the format that are listed and checked, but not read.
struct OtherType {
  std::string_view name;
  int64_t bits;
};
constexpr OtherType kOtherTypes[] = {
    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"C64", 64},
};

// The bits of one element; sets the tensor's dtype when it is one that can be read.
int64_t element_bits(const std::string& where, StoredTensor& tensor) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name != tensor.type) continue;
    tensor.dtype = info.dtype;
    return info.bytes * 8;
  }
  for (const OtherType& other : kOtherTypes) {
    if (other.name == tensor.type) return other.bits;
  }
  bad_file(where, "type " + in_quotes(tensor.type) + " is unknown", "expected a type of the format, such as \"F32\"");
}

int64_t expected_bytes(const std::string& where, StoredTensor& tensor) {
  const int64_t bits = element_bits(where, tensor);
  const std::optional<int64_t> count = element_count(tensor.shape);
  int64_t total = 0;
  if (!count || __builtin_mul_overflow(*count, bits, &total)) {
    bad_file(where, "shape " + shape_text(tensor.shape) + " of " + tensor.type + " overflows 63 bits");
  }
  if (total % 8 != 0) bad_file(where, fmt::format("{} elements of {} are not whole bytes", *count, tensor.type));
  tensor.count = *count;
  return total / 8;
}

StoredTensor parse_tensor(const std::string& name, const json& entry, std::span<const std::byte> data,
                          const std::string& file) {
  const std::string where = file + ": tensor " + in_quotes(name);
  StoredTensor tensor;
  tensor.file = file;
  tensor.name = name;
  JsonReader read(entry, where);
  tensor.type = read.text("dtype");
  tensor.shape = read.wholes("shape", 0);
  const std::vector<int64_t> offsets = read.wholes("data_offsets", 0);
  read.finish();

  if (offsets.size() != 2) bad_file(where, fmt::format("data_offsets has {} numbers", offsets.size()), "expected 2");
  const int64_t begin = offsets[0];
  const int64_t end = offsets[1];
  if (begin > end)
    bad_file(where, fmt::format("data_offsets begin at {} and end at {}", begin, end), "expected begin <= end");
  if (static_cast<uint64_t>(end) > data.size()) {
    bad_file(where, fmt::format("data ends at byte {} of the data", end),
             fmt::format("expected at most {}; the file is cut short", data.size()));
  }
  const int64_t bytes = expected_bytes(where, tensor);
  if (end - begin != bytes) {
    bad_file(where, fmt::format("data_offsets {} to {} hold {} bytes", begin, end, end - begin),
             fmt::format("expected {} for shape {} of {}", bytes, shape_text(tensor.shape), tensor.type));
  }
  tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes));
  return tensor;
}

// The header's text, after the checks of its length.
std::string_view header_text(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < kLengthBytes) {
    bad_file(file, fmt::format("{} bytes long", bytes.size()), "expected a safetensors file: at least 8 bytes");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const char* text = reinterpret_cast<const char*>(bytes.data());
  if (length > kMaxHeader && looks_like_pickle(bytes)) refuse_pickle(file);
  if (length > kMaxHeader) {
    bad_file(file, fmt::format("byte 0: header of {} bytes", length), fmt::format("expected at most {}", kMaxHeader));
  }
  if (length > bytes.size() - kLengthBytes) {
    bad_file(file, fmt::format("byte 0: header of {} bytes in a file of {}", length, bytes.size()),
             fmt::format("expected at most {}; the file is cut short", bytes.size() - kLengthBytes));
  }
  if (length == 0 || text[kLengthBytes] != '{') bad_file(file, "byte 8: header does not begin with {", "expected JSON");
  return {text + kLengthBytes, static_cast<std::size_t>(length)};
}

std::map<std::string, std::string> parse_metadata(const json& entry, const std::string& file) {
  JsonReader read(entry, file + ": " + kMetadata);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : entry.items()) metadata[key] = read.text(key);
  return metadata;
}

// Tensors, sorted by offset, touch without holes from the first byte of the data to the last.
void check_layout(const std::vector<StoredTensor>& tensors, std::span<const std::byte> data, const std::string& file) {
  const std::byte* end = data.data();
  for (const StoredTensor& tensor : tensors) {
    if (tensor.bytes.data() != end) {
      bad_file(
          file + ": tensor " + in_quotes(tensor.name),
          fmt::format("data begins at byte {} of the data", tensor.bytes.data() - data.data()),
          fmt::format("expected {}, where the tensor before it ends: no holes and no overlaps", end - data.data()));
    }
    end += tensor.bytes.size();
  }
  if (end != data.data() + data.size()) {
    bad_file(file, fmt::format("{} bytes after the last tensor", data.data() + data.size() - end), "expected none");
  }
}

}  // namespace

SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view text = header_text(bytes, file);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + text.size());
  const json header = parse_json(text, file, kLengthBytes);
  SafetensorsContent content;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      content.metadata = parse_metadata(entry, file);
    } else {
      content.tensors.push_back(parse_tensor(name, entry, data, file));
    }
  }
  // an empty tensor comes before the one that begins where it stands
  std::stable_sort(content.tensors.begin(), content.tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.bytes.data() != b.bytes.data() ? a.bytes.data() < b.bytes.data() : a.bytes.size() < b.bytes.size();
  });
  check_layout(content.tensors, data, file);
  return content;
}

namespace {

bool is_confined(const std::filesystem::path& shard) {
  return !shard.empty() && !shard.is_absolute() && std::find(shard.begin(), shard.end(), "..") == shard.end();
}

// File name -> the tensors that the index takes from it.
std::map<std::string, std::set<std::string>> parse_index(const std::filesystem::path& path) {
  const json index = parse_json_file(path);
  JsonReader read(index, path.string());
  const json& weight_map = read.value("weight_map");
  JsonReader files = read.object("weight_map");
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [name, value] : weight_map.items()) {
    const std::string file = files.text(name);
    if (!is_confined(file)) {
      files.fail(name, "file " + in_quotes(file) + " is outside the index's folder", "expected a file beside it");
    }
    shards[file].insert(name);
  }
  return shards;
}

MappedFile open_shard(const std::filesystem::path& index, const std::string& file) {
  try {
    return MappedFile(index.parent_path() / file);
  } catch (const Error& error) {
    bad_file(index.string(), "names the file " + in_quotes(file) + ": " + error.found(), error.expected());
  }
}

bool is_index(const std::filesystem::path& path) { return path.extension() == ".json"; }

}  // namespace

Safetensors::Safetensors(const std::filesystem::path& path) : name_(path.string()) {
  if (is_index(path)) {
    for (const auto& [file, names] : parse_index(path)) {
      files_.push_back(open_shard(path, file));
      const MappedFile& shard = files_.back();
      std::size_t taken = 0;
      for (StoredTensor& tensor : parse_safetensors(shard.bytes(), shard.path().string()).tensors) {
        if (names.count(tensor.name) == 0) continue;
        tensors_.push_back(std::move(tensor));
        ++taken;
      }
      if (taken != names.size()) {
        bad_file(name_, fmt::format("file {} holds {} of its {} tensors", in_quotes(file), taken, names.size()),
                 "expected all");
      }
    }
  } else {
    files_.emplace_back(path);
    SafetensorsContent content = parse_safetensors(files_.back().bytes(), name_);
    metadata_ = std::move(content.metadata);
    tensors_ = std::move(content.tensors);
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const StoredTensor& tensor, std::string_view key) { return tensor.name < key; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

const StoredTensor& Safetensors::tensor(std::string_view name, std::span<const int64_t> shape) const {
  return expect_tensor(find(name), name_, in_quotes(name), shape);
}

namespace {

// out[i] = the i-th element, whatever the alignment of the bytes.
template <class Stored>
void convert_all(std::span<const std::byte> bytes, std::span<float> out) {
  const std::byte* from = bytes.data();
  for (float& value : out) {
    Stored stored;
    std::memcpy(&stored, from, sizeof(Stored));
    value = static_cast<float>(widen(stored));
    from += sizeof(Stored);
  }
}

}  // namespace

void read_floats(const StoredTensor& tensor, std::span<float> out) {
  if (static_cast<int64_t>(out.size()) != tensor.count) {
    throw LogicError("read_floats", fmt::format("{} elements into {}", tensor.count, out.size()));
  }
  if (!tensor.dtype || !dtype_info(*tensor.dtype).is_float) {
    bad_file(tensor.file + ": tensor " + in_quotes(tensor.name), "type " + tensor.type,
             "expected F16, BF16, F32 or F64");
  }
  switch (*tensor.dtype) {
    case DType::kF16:
      return convert_all<Float16>(tensor.bytes, out);
    case DType::kBF16:
      return convert_all<BFloat16>(tensor.bytes, out);
    case DType::kF64:
      return convert_all<double>(tensor.bytes, out);
    default:
      if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), out.size_bytes());
  }
}

void read_rows(const StoredTensor& tensor, int64_t first, std::span<float> out) {
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t count = static_cast<int64_t>(out.size());
  if (columns == 0 ? count != 0 : count % columns != 0 || first < 0 || first > (tensor.count - count) / columns) {
    throw LogicError("read_rows", fmt::format("{} elements from row {} of {}", count, first, tensor.name));
  }
  StoredTensor part = tensor;
  part.count = count;
  const std::size_t size = tensor.count == 0 ? 0 : tensor.bytes.size() / static_cast<std::size_t>(tensor.count);
  part.bytes = tensor.bytes.subspan(static_cast<std::size_t>(first * columns) * size, out.size() * size);
  read_floats(part, out);
}

namespace {

void check_to_write(const std::vector<TensorToWrite>& tensors) {
  std::set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    const std::string what = "tensor " + in_quotes(tensor.name);
    if (tensor.name == kMetadata) throw LogicError("write_safetensors", what + " has a reserved name");
    if (!names.insert(tensor.name).second) throw LogicError("write_safetensors", what + " is given twice");
    const bool negative = std::any_of(tensor.shape.begin(), tensor.shape.end(), [](int64_t n) { return n < 0; });
    const std::optional<int64_t> count = element_count(tensor.shape);
    int64_t bytes = 0;
    if (negative || !count || __builtin_mul_overflow(*count, dtype_info(tensor.dtype).bytes, &bytes) ||
        static_cast<uint64_t>(bytes) != tensor.bytes.size()) {
      throw LogicError("write_safetensors", fmt::format("{}: {} bytes for shape {} of {}", what, tensor.bytes.size(),
                                                        shape_text(tensor.shape), dtype_info(tensor.dtype).name));
    }
  }
}

std::string header_of(const std::vector<TensorToWrite>& tensors, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  // the object's members directly: operator[] would search them all for each tensor
  auto& members = header.get_ref<nlohmann::ordered_json::object_t&>();
  uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    nlohmann::ordered_json entry;
    entry["dtype"] = dtype_info(tensor.dtype).name;
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {offset, offset + tensor.bytes.size()};
    members.push_back({tensor.name, std::move(entry)});
    offset += tensor.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw LogicError("write_safetensors", "a name or the metadata is not UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > kMaxHeader) throw LogicError("write_safetensors", "the header exceeds the format's limit");
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_to_write(tensors);
  std::sort(tensors.begin(), tensors.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    const int64_t a_bytes = dtype_info(a.dtype).bytes;
    const int64_t b_bytes = dtype_info(b.dtype).bytes;
    return a_bytes != b_bytes ? a_bytes > b_bytes : a.name < b.name;
  });
  const std::string header = header_of(tensors, metadata);
  const uint64_t length = header.size();
  uint64_t total = kLengthBytes + length;
  for (const TensorToWrite& tensor : tensors) total += tensor.bytes.size();
  write_file_atomically(path, total, [&](FileSink& sink) {
    sink.write(std::as_bytes(std::span(&length, 1)));
    sink.write(header);
    for (const TensorToWrite& tensor : tensors) sink.write(tensor.bytes);
  });
}

}  // namespace headlight
