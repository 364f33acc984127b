#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "headlight/base/random.h"
#include "headlight/base/thread_pool.h"
#include "headlight/formats/gguf.h"
#include "headlight/tensor/half.h"
#include "support/gguf_writer.h"

namespace headlight {
namespace {

using Block = const uint8_t*;

int32_t bit(const uint8_t* bytes, int index) { return (bytes[index / 8] >> (index % 8)) & 1; }

float half(Block from) {
  uint16_t bits;
  std::memcpy(&bits, from, 2);
  return widen(Float16{bits});
}

int signed_byte(uint8_t byte) { return byte < 128 ? byte : byte - 256; }

// The format's table, element by element in double: d, products and sums are exact there, so that one rounding to
// float gives the only right value.
double q4_0(Block b, int i) { return half(b) * ((i < 16 ? b[2 + i] % 16 : b[2 + i - 16] / 16) - 8.0); }
double q4_1(Block b, int i) {
  return double{half(b)} * (i < 16 ? b[4 + i] % 16 : b[4 + i - 16] / 16) + double{half(b + 2)};
}
double q5_0(Block b, int i) {
  return half(b) * ((i < 16 ? b[6 + i] % 16 : b[6 + i - 16] / 16) + 16 * bit(b + 2, i) - 16.0);
}
double q5_1(Block b, int i) {
  return double{half(b)} * ((i < 16 ? b[8 + i] % 16 : b[8 + i - 16] / 16) + 16 * bit(b + 4, i)) + double{half(b + 2)};
}
double q8_0(Block b, int i) { return double{half(b)} * signed_byte(b[2 + i]); }

int six_bits(Block s, int j, bool min) {
  if (j < 4) return s[j + (min ? 4 : 0)] % 64;
  return (min ? s[j + 4] / 16 : s[j + 4] % 16) + s[min ? j : j - 4] / 64 * 16;
}
double k_value(Block b, int i, int integer) {
  return double{half(b)} * six_bits(b + 4, i / 32, false) * integer -
         double{half(b + 2)} * six_bits(b + 4, i / 32, true);
}
int k_four_bits(Block q, int i) {
  const uint8_t byte = q[i / 64 * 32 + i % 32];
  return i % 64 < 32 ? byte % 16 : byte / 16;
}
double q4_k(Block b, int i) { return k_value(b, i, k_four_bits(b + 16, i)); }
double q5_k(Block b, int i) { return k_value(b, i, k_four_bits(b + 48, i) + 16 * ((b[16 + i % 32] >> (i / 32)) & 1)); }
double q6_k(Block b, int i) {
  const int h = i / 128, k = i % 128 / 32, l = i % 32;
  const uint8_t low = b[64 * h + l + 32 * (k % 2)];
  const int q = (k < 2 ? low % 16 : low / 16) + 16 * ((b[128 + 32 * h + l] >> (2 * k)) % 4);
  return double{half(b + 208)} * signed_byte(b[192 + 8 * h + 2 * k + l / 16]) * (q - 32);
}
double f32(Block b, int) {
  float value;
  std::memcpy(&value, b, 4);
  return value;
}
double f16(Block b, int) { return half(b); }
double bf16(Block b, int) {
  return std::bit_cast<float>(static_cast<uint32_t>(b[0]) << 16 | static_cast<uint32_t>(b[1]) << 24);
}

struct Type {
  const char* name;
  uint32_t id;
  int elements, bytes;
  double (*value)(Block, int);
  std::vector<int> halves;  // where a block has them
};

const std::vector<Type>& types() {
  static const std::vector<Type> all{
      {"F32", 0, 1, 4, f32, {}},
      {"F16", 1, 1, 2, f16, {}},
      {"BF16", 30, 1, 2, bf16, {}},
      {"Q4_0", 2, 32, 18, q4_0, {0}},
      {"Q4_1", 3, 32, 20, q4_1, {0, 2}},
      {"Q5_0", 6, 32, 22, q5_0, {0}},
      {"Q5_1", 7, 32, 24, q5_1, {0, 2}},
      {"Q8_0", 8, 32, 34, q8_0, {0}},
      {"Q4_K", 12, 256, 144, q4_k, {0, 2}},
      {"Q5_K", 13, 256, 176, q5_k, {0, 2}},
      {"Q6_K", 14, 256, 210, q6_k, {208}},
  };
  return all;
}

// `rows` rows of `blocks` random blocks, whose halves are finite.
std::string random_blocks(const Type& type, int64_t count, RandomStream& random) {
  std::string bytes(static_cast<std::size_t>(count * type.bytes), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  for (int64_t block = 0; block < count; ++block) {
    for (const int at : type.halves) {
      const auto bits = static_cast<uint16_t>(random.below(0x7c00) | random.below(2) << 15);
      std::memcpy(bytes.data() + block * type.bytes + at, &bits, 2);
    }
  }
  return bytes;
}

void expect_same(float got, float expected, int64_t index) {
  if (std::isnan(expected) && std::isnan(got)) return;
  // -0 and 0 are told apart by no computation that follows
  ASSERT_EQ(got, expected) << "element " << index;
}

TEST(GgufTypes, AreTheFormatsTableElementByElement) {
  const uint64_t seed = 7;
  for (const Type& type : types()) {
    RandomStream random(seed, 0, type.id);
    const int64_t rows = 5, blocks = 3, columns = blocks * type.elements;
    const std::string data = random_blocks(type, rows * blocks, random);
    const std::string bytes =
        gguf_file({}, {gguf_tensor("t", {static_cast<uint64_t>(columns), rows}, type.id, 0)}, data);
    const Gguf gguf(std::as_bytes(std::span(bytes.data(), bytes.size())), type.name);
    const GgufTensor& tensor = gguf.tensor("t", std::array<int64_t, 2>{rows, columns});
    EXPECT_EQ(tensor.type, type.name);
    for (int64_t first = 0; first < rows; ++first) {
      std::vector<float> out(static_cast<std::size_t>((rows - first) * columns));
      read_rows(tensor, first, out);
      for (std::size_t i = 0; i < out.size(); ++i) {
        SCOPED_TRACE(std::string(type.name) + ", seed " + std::to_string(seed) + ", from row " + std::to_string(first));
        const int64_t index = first * columns + static_cast<int64_t>(i);
        const auto* block = reinterpret_cast<Block>(data.data()) + index / type.elements * type.bytes;
        const auto expected = static_cast<float>(type.value(block, static_cast<int>(index % type.elements)));
        ASSERT_NO_FATAL_FAILURE(expect_same(out[i], expected, index));
      }
    }
  }
}

// scripts/fixtures/make_gguf_fixtures.py
const char* const kFixture = HEADLIGHT_SOURCE_DIR "/tests/fixtures/formats/blocks.gguf";

TEST(GgufTypes, GiveTheBitsOfTheReferenceImplementation) {
  const Gguf gguf{std::filesystem::path(kFixture)};
  int compared = 0;
  for (const Type& type : types()) {
    const GgufTensor* tensor = gguf.find(type.name);
    if (tensor == nullptr) continue;  // F32 is what the others are compared with
    ++compared;
    const GgufTensor& values = gguf.tensor(std::string(type.name) + ".values", tensor->shape);
    std::vector<float> got(static_cast<std::size_t>(tensor->count)), expected(got.size());
    read_floats(*tensor, got);
    read_floats(values, expected);
    for (std::size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(type.name);
      ASSERT_NO_FATAL_FAILURE(expect_same(got[i], expected[i], static_cast<int64_t>(i)));
    }
  }
  EXPECT_EQ(compared, 10);
}

TEST(GgufTypes, OfValuesAreThoseOfTheReferenceImplementation) {
  const Gguf gguf{std::filesystem::path(kFixture)};
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(gguf.text("general.architecture"), "fixture");
  EXPECT_EQ(gguf.whole("value.u8", kMin), 255);
  EXPECT_EQ(gguf.whole("value.i8", kMin), -128);
  EXPECT_EQ(gguf.whole("value.u16", kMin), 65535);
  EXPECT_EQ(gguf.whole("value.i16", kMin), -32768);
  EXPECT_EQ(gguf.whole("value.u32", kMin), 4294967295);
  EXPECT_EQ(gguf.whole("value.i32", kMin), -2147483648);
  EXPECT_EQ(gguf.whole("value.u64", kMin), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(gguf.whole("value.i64", kMin), kMin);
  EXPECT_EQ(gguf.number("value.f32", 0, 1), 0.1f);
  EXPECT_EQ(gguf.number("value.f64", 0, 1), 0.1);
  EXPECT_TRUE(gguf.boolean("value.bool"));
  EXPECT_EQ(gguf.text("value.string"), "é\n");
  EXPECT_EQ(gguf.wholes("array.i32", -1), (std::vector<int64_t>{3, -1, 2}));
  EXPECT_EQ(gguf.numbers("array.f32"), (std::vector<float>{0.5f, -2}));
  EXPECT_EQ(gguf.texts("array.string"), (std::vector<std::string>{"a", "bc", "Ġd"}));
  EXPECT_EQ(gguf.find_value("array.bool")->type_name(), "array of bool");
}

TEST(GgufReadRows, GivesTheSameForAnyNumberOfThreads) {
  const Type& type = types()[8];  // Q4_K
  RandomStream random(3, 0, 0);
  // more than one thread's share, and no multiple of it
  const int64_t rows = 701, columns = 256;
  const std::string data = random_blocks(type, rows, random);
  const std::string bytes = gguf_file({}, {gguf_tensor("t", {columns, rows}, type.id, 0)}, data);
  const Gguf gguf(std::as_bytes(std::span(bytes.data(), bytes.size())), "m.gguf");
  std::vector<float> one(static_cast<std::size_t>(rows * columns)), four(one.size());
  const int threads = default_pool().threads();
  set_threads(1);
  read_floats(*gguf.find("t"), one);
  set_threads(4);
  read_floats(*gguf.find("t"), four);
  set_threads(threads);
  EXPECT_EQ(std::memcmp(one.data(), four.data(), one.size() * sizeof(float)), 0);
  std::vector<float> last(columns);
  read_rows(*gguf.find("t"), rows - 1, last);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), one.end() - columns));
}

}  // namespace
}  // namespace headlight
