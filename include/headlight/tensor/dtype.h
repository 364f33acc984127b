#pragma once
// Element types of stored tensors, their names and sizes.

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

}  // namespace headlight
