#include "headlight/formats/llama2c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "headlight/base/error.h"
#include "support/expect_error.h"
#include "support/mutate.h"

namespace headlight {
namespace {

// dim 4, hidden 6, 2 layers, 2 heads, 1 key/value head, 5 tokens, context 3
constexpr int32_t kSizes[7] = {4, 6, 2, 2, 1, 5, 3};

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

// The file's floats are 0, 1, 2, ...
std::vector<std::byte> file(int version, bool shared, int64_t floats) {
  std::vector<std::byte> bytes;
  if (version == 1) {
    const uint32_t start[2] = {0x616b3432, 1};
    append(bytes, start, sizeof(start));
  }
  int32_t sizes[7];
  std::memcpy(sizes, kSizes, sizeof(sizes));
  if (version == 0 && !shared) sizes[5] = -sizes[5];
  append(bytes, sizes, sizeof(sizes));
  if (version == 1) {
    bytes.push_back(static_cast<std::byte>(shared));
    bytes.resize(256);
  }
  for (int64_t i = 0; i < floats; ++i) {
    const auto x = static_cast<float>(i);
    append(bytes, &x, sizeof(x));
  }
  return bytes;
}

// embedding 20; norms 8 + 8 + 4; wq 32, wk 16, wv 16, wo 32; w1, w2, w3 48 each; tables 6; output 20
constexpr int64_t kShared = 20 + 20 + 96 + 144, kTables = 6, kOutput = 20;

float first_of(const Llama2cContent& content, const std::string& name) {
  float x = 0;
  std::memcpy(&x, content.tensor(name).bytes.data(), sizeof(x));
  return x;
}

// Reads every byte that the content hands out, so that a sanitizer sees one that is out of bounds.
unsigned touch(const Llama2cContent& content) {
  unsigned sum = 0;
  for (const StoredTensor& tensor : content.tensors) {
    for (std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
  }
  return sum;
}

TEST(Llama2c, ReadsBothVersionsInTheOrderOfTheirExport) {
  const auto v0 = file(0, true, kShared + kTables);
  const Llama2cContent old = parse_llama2c(v0, "m.bin");
  EXPECT_EQ(old.version, 0);
  EXPECT_TRUE(old.sizes.shared);
  EXPECT_EQ(old.sizes.vocabulary, 5);
  EXPECT_EQ(old.sizes.key_value_heads, 1);
  EXPECT_EQ(old.tensor("wk").shape, (std::vector<int64_t>{2, 2, 4}));
  const std::pair<const char*, float> places0[] = {{"tok_embeddings", 0},
                                                   {"attention_norm", 20},
                                                   {"wq", 28},
                                                   {"wk", 60},
                                                   {"wv", 76},
                                                   {"wo", 92},
                                                   {"ffn_norm", 124},
                                                   {"w1", 132},
                                                   {"w2", 180},
                                                   {"w3", 228},
                                                   {"norm", 276}};
  for (const auto& [name, place] : places0) EXPECT_EQ(first_of(old, name), place) << name;

  const auto v1 = file(1, false, kShared + kOutput);
  const Llama2cContent now = parse_llama2c(v1, "m.bin");
  EXPECT_EQ(now.version, 1);
  EXPECT_FALSE(now.sizes.shared);
  const std::pair<const char*, float> places1[] = {{"attention_norm", 0},
                                                   {"ffn_norm", 8},
                                                   {"norm", 16},
                                                   {"tok_embeddings", 20},
                                                   {"wq", 40},
                                                   {"wk", 72},
                                                   {"wv", 88},
                                                   {"wo", 104},
                                                   {"w1", 136},
                                                   {"w2", 184},
                                                   {"w3", 232},
                                                   {"output", 280}};
  for (const auto& [name, place] : places1) EXPECT_EQ(first_of(now, name), place) << name;
}

TEST(Llama2c, ReadsAClassifierOfItsOwnBehindTheTables) {
  const auto bytes = file(0, false, kShared + kTables + kOutput);
  const Llama2cContent content = parse_llama2c(bytes, "m.bin");
  EXPECT_FALSE(content.sizes.shared);
  EXPECT_EQ(content.sizes.vocabulary, 5);
  EXPECT_EQ(first_of(content, "output"), kShared + kTables);
}

std::string refusal(std::vector<std::byte> bytes, const std::function<void(std::vector<std::byte>&)>& break_it) {
  break_it(bytes);
  try {
    parse_llama2c(bytes, "m.bin");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadData);
    return error.what();
  }
  return "read";
}

void put(std::vector<std::byte>& bytes, std::size_t at, int32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

TEST(Llama2c, RefusesFilesThatAreNotWhatTheySay) {
  const auto good = file(0, true, kShared + kTables), good1 = file(1, true, kShared);
  ASSERT_EQ(refusal(good, [](auto&) {}), "read");
  ASSERT_EQ(refusal(good1, [](auto&) {}), "read");
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find("m.bin"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal(good, [](auto& b) { b.clear(); }), "0 bytes");
  has(refusal(good, [](auto& b) { b.resize(27); }), "27 bytes");
  has(refusal(good1, [](auto& b) { b.resize(255); }), "255 bytes");
  has(refusal(good, [](auto& b) { b.pop_back(); }), "its sizes say");
  has(refusal(good, [](auto& b) { b.push_back(std::byte{0}); }), "its sizes say");
  has(refusal(good1, [](auto& b) { b.resize(b.size() + 4); }), "its sizes say");
  has(refusal(good, [](auto& b) { put(b, 0, 0); }), "dim at byte 0");
  has(refusal(good, [](auto& b) { put(b, 0, -4); }), "dim at byte 0");
  has(refusal(good, [](auto& b) { put(b, 0, 5); }), "dim: 5");
  has(refusal(good, [](auto& b) { put(b, 0, 6); }), "dim: 6");
  has(refusal(good, [](auto& b) { put(b, 4, 0); }), "hidden_dim");
  has(refusal(good, [](auto& b) { put(b, 8, 1000000000); }), "its sizes say");
  has(refusal(good, [](auto& b) { put(b, 12, 0); }), "n_heads");
  has(refusal(good, [](auto& b) { put(b, 16, 3); }), "n_kv_heads");
  has(refusal(good, [](auto& b) { put(b, 20, 0); }), "vocab_size");
  has(refusal(good, [](auto& b) { put(b, 20, INT32_MIN); }), "its sizes say");
  has(refusal(good, [](auto& b) { put(b, 24, 0); }), "max_seq_len");
  has(refusal(good,
              [](auto& b) {
                put(b, 0, 0x7ffffff8);
                put(b, 4, 0x7fffffff);
                put(b, 8, 0x7fffffff);
              }),
      "overflow");
  has(refusal(good1, [](auto& b) { put(b, 4, 2); }), "quantised");
  has(refusal(good1, [](auto& b) { put(b, 4, 7); }), "expected 1");
  has(refusal(good1, [](auto& b) { b[36] = std::byte{2}; }), "shared_classifier");
}

TEST(Llama2c, AdvisesOnAPickle) {
  for (const std::string& text :
       {std::string("PK\3\4\0\0\x08\x08\0\0\0\0", 12), std::string("\x80\x02}q\0X\4\0\0\0", 10)}) {
    expect_error(ErrorKind::kBadData, {"pytorch_model.bin", "pickle", "safetensors.torch.save_file"},
                 [&] { parse_llama2c(std::as_bytes(std::span(text)), "pytorch_model.bin"); });
  }
}

TEST(Llama2c, RefusesAFileCutAtAnyByteAndBearsAnyMutation) {
  for (const auto& bytes : {file(0, true, kShared + kTables), file(1, false, kShared + kOutput)}) {
    const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto parse = [](auto changed) { touch(parse_llama2c(changed, "m.bin")); };
    expect_every_cut_refused(whole, parse);
    // of the sizes, and a little of what follows them
    const auto parse_begin = [&](auto changed) {
      std::vector<std::byte> again(changed.begin(), changed.end());
      again.insert(again.end(), bytes.begin() + 40, bytes.end());
      parse(std::span<const std::byte>(again));
    };
    const Mutations mutations{.seed = 7, .bytes = std::string_view("\0\1\2\3\4\5\6\x7f\x80\xff", 10), .trials = 5000};
    EXPECT_GT(expect_mutations_borne(whole.substr(0, 40), mutations, parse_begin), mutations.trials / 2);
  }
}

}  // namespace
}  // namespace headlight
