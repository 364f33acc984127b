#include "headlight/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headlight {
namespace {

// the value of a binary16 by its definition
double half_value(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(WidenF16, IsExactForEveryBitPattern) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const double expected = half_value(half);
    const float got = widen_f16(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << "bits " << bits << ", got " << got;
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << "bits " << bits;
      ASSERT_EQ(std::signbit(got), std::signbit(expected)) << "bits " << bits;
    }
  }
}

TEST(WidenBf16, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(widen_bf16(0x3f80), 1.0f);
  EXPECT_EQ(widen_bf16(0xc049), -3.140625f);
  EXPECT_EQ(widen_bf16(0x0001), std::ldexp(1.0f, -133));
  EXPECT_EQ(widen_bf16(0xff80), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(widen_bf16(0x7fc0)));
}

TEST(DTypeInfo, StandsInTheOrderOfItsEnumeration) {
  for (const DTypeInfo& info : kDTypes) EXPECT_EQ(dtype_info(info.dtype).name, info.name);
}

}  // namespace
}  // namespace headlight
