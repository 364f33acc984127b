#include "headlight/formats/llama2c.h"

#include <bit>
#include <cstring>

#include "formats/shape.h"
#include "headlight/base/error.h"
#include "headlight/tensor/view.h"

namespace headlight {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian, and read as they lie");

constexpr uint32_t kMagic = 0x616b3432;  // "ak42", from version 1 on
constexpr std::size_t kHeader0 = 7 * sizeof(int32_t);
constexpr std::size_t kHeader1 = 256;

// Reads a file from its start, and says in errors where it stands.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  [[noreturn]] void refuse(const std::string& what, const std::string& found, const std::string& expected) const {
    throw Error(ErrorKind::kBadData, file_ + ": " + what, found, expected);
  }

  template <class U>
  U number(std::size_t offset) const {
    U value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(U));
    return value;
  }
  int64_t size(std::size_t offset, const char* name) const {
    const auto value = number<int32_t>(offset);
    if (value < 1) {
      refuse(std::string(name) + " at byte " + std::to_string(offset), std::to_string(value),
             "expected a number from 1");
    }
    return value;
  }

  // the next floats; their number is only added up, and compared with the file's length in the end
  void add(std::vector<StoredTensor>& tensors, const std::string& name, const std::vector<int64_t>& shape) {
    StoredTensor tensor{file_, name, "F32", DType::kF32, shape, skip(shape), {}};
    tensors.push_back(tensor);
    begins_.push_back(next_ - static_cast<std::size_t>(tensor.count) * sizeof(float));
  }
  int64_t skip(const std::vector<int64_t>& shape) {
    std::size_t count = 1;
    for (const int64_t n : shape) {
      if (__builtin_mul_overflow(count, static_cast<std::size_t>(n), &count)) too_large();
    }
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(float), &bytes) || __builtin_add_overflow(next_, bytes, &next_)) {
      too_large();
    }
    return static_cast<int64_t>(count);
  }
  void start(std::size_t offset) { next_ = offset; }

  void finish(std::vector<StoredTensor>& tensors) const {
    if (next_ != bytes_.size()) {
      refuse("the file", "has " + std::to_string(bytes_.size()) + " bytes", "its sizes say " + std::to_string(next_));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].bytes = bytes_.subspan(begins_[i], static_cast<std::size_t>(tensors[i].count) * sizeof(float));
    }
  }

 private:
  [[noreturn]] void too_large() const { refuse("the sizes", "their products overflow", "expected a real model"); }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t next_ = 0;
  std::vector<std::size_t> begins_;
};

// The seven numbers at `offset`; of version 0 the vocabulary's sign says whether the classifier is shared.
Llama2cSizes read_sizes(const Reader& reader, std::size_t offset, bool sign_is_sharing) {
  Llama2cSizes sizes;
  sizes.width = reader.size(offset, "dim");
  sizes.hidden = reader.size(offset + 4, "hidden_dim");
  sizes.blocks = reader.size(offset + 8, "n_layers");
  sizes.heads = reader.size(offset + 12, "n_heads");
  sizes.key_value_heads = reader.size(offset + 16, "n_kv_heads");
  sizes.shared = sign_is_sharing && reader.number<int32_t>(offset + 20) > 0;
  sizes.vocabulary =
      sign_is_sharing ? std::abs(int64_t{reader.number<int32_t>(offset + 20)}) : reader.size(offset + 20, "vocab_size");
  if (sizes.vocabulary == 0) reader.refuse("vocab_size at byte " + std::to_string(offset + 20), "0", "expected tokens");
  sizes.context = reader.size(offset + 24, "max_seq_len");
  if (sizes.width % sizes.heads != 0 || sizes.width / sizes.heads % 2 != 0) {
    reader.refuse("dim", std::to_string(sizes.width),
                  "expected a multiple of twice n_heads, " + std::to_string(sizes.heads));
  }
  if (sizes.heads % sizes.key_value_heads != 0) {
    reader.refuse("n_heads", std::to_string(sizes.heads),
                  "expected a multiple of n_kv_heads, " + std::to_string(sizes.key_value_heads));
  }
  return sizes;
}

void add_attention(Reader& reader, const Llama2cSizes& s, std::vector<StoredTensor>& tensors) {
  const int64_t key_width = s.width / s.heads * s.key_value_heads;
  reader.add(tensors, "wq", {s.blocks, s.width, s.width});
  reader.add(tensors, "wk", {s.blocks, key_width, s.width});
  reader.add(tensors, "wv", {s.blocks, key_width, s.width});
  reader.add(tensors, "wo", {s.blocks, s.width, s.width});
}

void add_feed_forward(Reader& reader, const Llama2cSizes& s, std::vector<StoredTensor>& tensors) {
  reader.add(tensors, "w1", {s.blocks, s.hidden, s.width});
  reader.add(tensors, "w2", {s.blocks, s.width, s.hidden});
  reader.add(tensors, "w3", {s.blocks, s.hidden, s.width});
}

void add_version_0(Reader& reader, const Llama2cSizes& s, std::vector<StoredTensor>& tensors) {
  reader.start(kHeader0);
  reader.add(tensors, "tok_embeddings", {s.vocabulary, s.width});
  reader.add(tensors, "attention_norm", {s.blocks, s.width});
  add_attention(reader, s, tensors);
  reader.add(tensors, "ffn_norm", {s.blocks, s.width});
  add_feed_forward(reader, s, tensors);
  reader.add(tensors, "norm", {s.width});
  // cosines and sines, which follow from the sizes
  reader.skip({2, s.context, s.width / s.heads / 2});
  if (!s.shared) reader.add(tensors, "output", {s.vocabulary, s.width});
}

void add_version_1(Reader& reader, const Llama2cSizes& s, std::vector<StoredTensor>& tensors) {
  reader.start(kHeader1);
  reader.add(tensors, "attention_norm", {s.blocks, s.width});
  reader.add(tensors, "ffn_norm", {s.blocks, s.width});
  reader.add(tensors, "norm", {s.width});
  reader.add(tensors, "tok_embeddings", {s.vocabulary, s.width});
  add_attention(reader, s, tensors);
  add_feed_forward(reader, s, tensors);
  if (!s.shared) reader.add(tensors, "output", {s.vocabulary, s.width});
}

}  // namespace

Llama2cContent parse_llama2c(std::span<const std::byte> bytes, const std::string& file) {
  if (looks_like_pickle(bytes)) refuse_pickle(file);
  Reader reader(bytes, file);
  const auto demand = [&](std::size_t header) {
    if (bytes.size() >= header) return;
    reader.refuse("the file", "has " + std::to_string(bytes.size()) + " bytes",
                  "expected a llama2.c model, whose header alone has " + std::to_string(header));
  };
  demand(kHeader0);
  Llama2cContent content;
  if (reader.number<uint32_t>(0) != kMagic) {
    content.sizes = read_sizes(reader, 0, true);
    add_version_0(reader, content.sizes, content.tensors);
  } else {
    demand(kHeader1);
    content.version = reader.number<int32_t>(4);
    if (content.version != 1) {
      reader.refuse("version at byte 4", std::to_string(content.version),
                    content.version == 2 ? "quantised files are not read; export version 0 or 1" : "expected 1");
    }
    content.sizes = read_sizes(reader, 8, false);
    const auto shared = reader.number<uint8_t>(36);
    if (shared > 1) reader.refuse("shared_classifier at byte 36", std::to_string(shared), "expected 0 or 1");
    content.sizes.shared = shared == 1;
    add_version_1(reader, content.sizes, content.tensors);
  }
  reader.finish(content.tensors);
  return content;
}

const StoredTensor& Llama2cContent::tensor(const std::string& name) const {
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  throw LogicError("Llama2cContent", "has no tensor " + name);
}

}  // namespace headlight
