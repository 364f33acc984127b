#pragma once
// Element types of stored tensors, their names and sizes, and the widening of the short floats.

#include <bit>
#include <cstdint>
#include <string_view>

namespace headlight {

enum class DType { kBool, kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kF16, kBF16, kF32, kF64 };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as files and messages write it
  int64_t bytes;          // of one element
  bool is_float;
};

// In the order of DType.
inline constexpr DTypeInfo kDTypes[] = {
    {DType::kBool, "BOOL", 1, false}, {DType::kU8, "U8", 1, false},    {DType::kI8, "I8", 1, false},
    {DType::kU16, "U16", 2, false},   {DType::kI16, "I16", 2, false},  {DType::kU32, "U32", 4, false},
    {DType::kI32, "I32", 4, false},   {DType::kU64, "U64", 8, false},  {DType::kI64, "I64", 8, false},
    {DType::kF16, "F16", 2, true},    {DType::kBF16, "BF16", 2, true}, {DType::kF32, "F32", 4, true},
    {DType::kF64, "F64", 8, true},
};

constexpr const DTypeInfo& dtype_info(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }

// IEEE binary16 to float, exact; the payload of a NaN is kept.
inline float widen_f16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7fffu) << 13;
  // the exponent's bias differs by 112; the product also normalises what is subnormal in binary16
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  const uint32_t magnitude = rest >= 0x0f800000u ? (rest | 0x7f800000u) : finite;
  return std::bit_cast<float>(sign | magnitude);
}

// bfloat16 to float, exact.
inline float widen_bf16(uint16_t brain) { return std::bit_cast<float>(static_cast<uint32_t>(brain) << 16); }

}  // namespace headlight
