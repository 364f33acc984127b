#include "formats/gguf_types.h"

#include <cstring>

#include "headlight/tensor/half.h"

namespace headlight {
namespace {

// Products of a block's scales with its integers are exact in float: 11 bits of d, at most 8 of a scale and 6 of
// an integer, where -128 and -32 count as one bit.

template <class T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

float load_half(const uint8_t* from) { return widen(load<Float16>(from)); }

template <class Stored>
void decode_plain(const uint8_t* from, float* to) {
  *to = widen(load<Stored>(from));
}

// Q4_0, Q4_1, Q5_0, Q5_1: f16 d, f16 m with kMin, u32 fifth bits with kFifth, 16 bytes whose low halves are the
// first 16 elements. x = d q + m, or d (q - the middle)
template <bool kFifth, bool kMin>
void decode_nibbles(const uint8_t* from, float* to) {
  const float d = load_half(from);
  const float m = kMin ? load_half(from + 2) : 0;
  const uint8_t* fifth_at = from + (kMin ? 4 : 2);
  const uint32_t fifth = kFifth ? load<uint32_t>(fifth_at) : 0;
  const uint8_t* q = fifth_at + (kFifth ? 4 : 0);
  constexpr int kMiddle = kFifth ? 16 : 8;
  const auto value = [&](uint32_t integer) {
    const int whole = static_cast<int>(integer);
    return kMin ? d * static_cast<float>(whole) + m : d * static_cast<float>(whole - kMiddle);
  };
  for (int j = 0; j < 16; ++j) {
    to[j] = value((q[j] & 15u) | ((fifth >> j) & 1u) << 4);
    to[j + 16] = value(static_cast<uint32_t>(q[j] >> 4) | ((fifth >> (j + 16)) & 1u) << 4);
  }
}

// f16 d, i8[32]: x = d q
void decode_q8_0(const uint8_t* from, float* to) {
  const float d = load_half(from);
  for (int j = 0; j < 32; ++j) to[j] = d * static_cast<float>(static_cast<int8_t>(from[2 + j]));
}

struct ScaleAndMin {
  int scale, min;
};

// The j-th of 8 pairs of 6 bits in 12 bytes.
ScaleAndMin scale_and_min(const uint8_t* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4};
}

// Q4_K, Q5_K: f16 d, f16 dmin, 12 bytes of scales and minima, 32 bytes of fifth bits with kFifth, 128 bytes of
// halves. Each 32 bytes are 32 low halves, then 32 high ones: x = d scale q - dmin min
template <bool kFifth>
void decode_k(const uint8_t* from, float* to) {
  const float d = load_half(from);
  const float dmin = load_half(from + 2);
  const uint8_t* scales = from + 4;
  const uint8_t* fifth = scales + 12;
  const uint8_t* q = fifth + (kFifth ? 32 : 0);
  for (int part = 0; part < 8; ++part, to += 32) {
    const ScaleAndMin pair = scale_and_min(scales, part);
    const float scale = d * static_cast<float>(pair.scale);
    const float min = dmin * static_cast<float>(pair.min);
    const uint8_t* halves = q + part / 2 * 32;
    for (int j = 0; j < 32; ++j) {
      int integer = part % 2 == 0 ? halves[j] & 15 : halves[j] >> 4;
      if (kFifth) integer |= ((fifth[j] >> part) & 1) << 4;
      to[j] = scale * static_cast<float>(integer) - min;
    }
  }
}

// ql[128], qh[64], i8 scales[16], f16 d. For each half of the block, k = 0..3: four bits of ql[j + 32 (k & 1)], low
// ones for k < 2, two of qh[j] from 2 k on: x[32 k + j] = d scale[2 k + j / 16] (q - 32)
void decode_q6_k(const uint8_t* from, float* to) {
  const float d = load_half(from + 208);
  for (int part = 0; part < 8; ++part, to += 32) {
    const int half = part / 4;
    const int k = part % 4;
    const uint8_t* low = from + 64 * half + 32 * (k & 1);
    const uint8_t* high = from + 128 + 32 * half;
    const uint8_t* scales = from + 192 + 8 * half + 2 * k;
    for (int j = 0; j < 32; ++j) {
      const int four = k < 2 ? low[j] & 15 : low[j] >> 4;
      const int integer = four | ((high[j] >> (2 * k)) & 3) << 4;
      const float scale = d * static_cast<float>(static_cast<int8_t>(scales[j / 16]));
      to[j] = scale * static_cast<float>(integer - 32);
    }
  }
}

template <int64_t kElements, int64_t kBytes, void (*kBlock)(const uint8_t*, float*)>
void decode_all(const std::byte* from, int64_t blocks, float* to) {
  const auto* block = reinterpret_cast<const uint8_t*>(from);
  for (int64_t i = 0; i < blocks; ++i) kBlock(block + i * kBytes, to + i * kElements);
}

template <int64_t kElements, int64_t kBytes, void (*kBlock)(const uint8_t*, float*)>
constexpr GgufTensorType read_type(uint32_t id, std::string_view name) {
  return {id, name, kElements, kBytes, decode_all<kElements, kBytes, kBlock>};
}

// Types that only computations use (Q8_1, Q8_K) are in no file.
constexpr GgufTensorType kTypes[] = {
    read_type<1, 4, decode_plain<float>>(0, "F32"),
    read_type<1, 2, decode_plain<Float16>>(1, "F16"),
    read_type<1, 2, decode_plain<BFloat16>>(30, "BF16"),
    read_type<32, 18, decode_nibbles<false, false>>(2, "Q4_0"),
    read_type<32, 20, decode_nibbles<false, true>>(3, "Q4_1"),
    read_type<32, 22, decode_nibbles<true, false>>(6, "Q5_0"),
    read_type<32, 24, decode_nibbles<true, true>>(7, "Q5_1"),
    read_type<32, 34, decode_q8_0>(8, "Q8_0"),
    read_type<256, 144, decode_k<false>>(12, "Q4_K"),
    read_type<256, 176, decode_k<true>>(13, "Q5_K"),
    read_type<256, 210, decode_q6_k>(14, "Q6_K"),
    {10, "Q2_K", 256, 84, nullptr},
    {11, "Q3_K", 256, 110, nullptr},
    {16, "IQ2_XXS", 256, 66, nullptr},
    {17, "IQ2_XS", 256, 74, nullptr},
    {18, "IQ3_XXS", 256, 98, nullptr},
    {19, "IQ1_S", 256, 50, nullptr},
    {20, "IQ4_NL", 32, 18, nullptr},
    {21, "IQ3_S", 256, 110, nullptr},
    {22, "IQ2_S", 256, 82, nullptr},
    {23, "IQ4_XS", 256, 136, nullptr},
    {24, "I8", 1, 1, nullptr},
    {25, "I16", 1, 2, nullptr},
    {26, "I32", 1, 4, nullptr},
    {27, "I64", 1, 8, nullptr},
    {28, "F64", 1, 8, nullptr},
    {29, "IQ1_M", 256, 56, nullptr},
    {34, "TQ1_0", 256, 54, nullptr},
    {35, "TQ2_0", 256, 66, nullptr},
    {39, "MXFP4", 32, 17, nullptr},
    {40, "NVFP4", 64, 36, nullptr},
    {41, "Q1_0", 128, 18, nullptr},
};

}  // namespace

const GgufTensorType* find_gguf_type(uint32_t id) {
  for (const GgufTensorType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace headlight
