#include <fmt/format.h>

#include <cstring>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/text/tokenizer_metadata.h"

namespace headlight {
namespace {

constexpr int64_t kFirstByte = 3, kBytes = 256;

// Little-endian values one after the other.
class Llama2cReader {
 public:
  Llama2cReader(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  bool at_end() const { return at_ == file_.size(); }

  int32_t read_i32(const char* what) {
    int32_t value = 0;
    std::memcpy(&value, take(4, what).data(), 4);
    return value;
  }
  float read_f32(const char* what) {
    float value = 0;
    std::memcpy(&value, take(4, what).data(), 4);
    return value;
  }
  std::string read_text(int32_t longest, int64_t token) {
    const std::size_t place = at_;
    const int32_t size = read_i32("a token's length");
    if (size < 0 || size > longest) {
      fail(place, fmt::format("token {} has length {}", token, size), fmt::format("expected 0 to {}", longest));
    }
    const auto bytes = take(static_cast<std::size_t>(size), "a token");
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[noreturn]] void fail(std::size_t at, const std::string& found, const std::string& expected) const {
    throw Error(ErrorKind::kBadData, where_, fmt::format("byte {}: {}", at, found), expected);
  }
  std::size_t at() const { return at_; }

 private:
  std::span<const std::byte> take(std::size_t count, const char* what) {
    if (count > file_.size() - at_) {
      fail(at_, fmt::format("the file ends {} bytes on", file_.size() - at_),
           fmt::format("expected {} in {}", what, count));
    }
    const auto bytes = file_.subspan(at_, count);
    at_ += count;
    return bytes;
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  std::size_t at_ = 0;
};

int32_t type_of(int64_t token) {
  if (token == 0) return 2;
  if (token < kFirstByte) return 3;
  return token < kFirstByte + kBytes ? 6 : 1;
}

}  // namespace

std::shared_ptr<const Tokenizer> llama2c_tokenizer(std::span<const std::byte> file, int64_t vocabulary,
                                                   const std::string& where) {
  if (vocabulary < 0) throw LogicError("llama2c_tokenizer", fmt::format("a vocabulary of {}", vocabulary));
  Llama2cReader read(file, where);
  TokenizerMetadata metadata;
  metadata.model = "llama2.c";
  const int32_t longest = read.read_i32("the length of the longest token");
  if (longest < 1) read.fail(0, fmt::format("the longest token has length {}", longest), "expected at least 1");
  int64_t count = 0;
  for (; vocabulary == 0 ? !read.at_end() : count < vocabulary; ++count) {
    metadata.scores.push_back(read.read_f32("a token's score"));
    metadata.tokens.push_back(read.read_text(longest, count));
    metadata.token_types.push_back(type_of(count));
  }
  if (!read.at_end()) {
    read.fail(read.at(), fmt::format("the file goes on after {} tokens", count), "expected its end");
  }
  if (count < kFirstByte + kBytes) {
    read.fail(read.at(), fmt::format("{} tokens", count), fmt::format("expected at least {}", kFirstByte + kBytes));
  }
  return tokenizer_from_metadata(metadata, where);
}

}  // namespace headlight
