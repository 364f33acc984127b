#include "headlight/tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headlight/base/random.h"

namespace headlight {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The formats by their definition: 1 sign, kExponent and kMantissa bits.
template <class T>
struct Format;
template <>
struct Format<BFloat16> {
  static constexpr int kExponent = 8, kMantissa = 7;
};
template <>
struct Format<Float16> {
  static constexpr int kExponent = 5, kMantissa = 10;
};
template <class T>
constexpr int kBias = (1 << (Format<T>::kExponent - 1)) - 1;

template <class T>
double value_of(uint32_t bits) {
  constexpr int m = Format<T>::kMantissa, most = (1 << Format<T>::kExponent) - 1;
  const int exponent = static_cast<int>(bits >> m) & most;
  const int mantissa = static_cast<int>(bits) & ((1 << m) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == most) return mantissa == 0 ? sign * kInf : std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(mantissa, 1 - kBias<T> - m)
                               : std::ldexp((1 << m) + mantissa, exponent - kBias<T> - m));
}

// The value that x is rounded to: the nearest multiple of the unit that holds at its magnitude, in double.
template <class T>
double rounded(float x) {
  constexpr int m = Format<T>::kMantissa;
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::ldexp(1, std::max(std::ilogb(x), 1 - kBias<T>) - m);
  const double nearest = std::nearbyint(x / unit) * unit;
  return std::abs(nearest) >= std::ldexp(1, kBias<T> + 1) ? std::copysign(kInf, nearest) : nearest;
}

template <class T>
class Half : public ::testing::Test {};
using Halves = ::testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(Half, Halves);

void expect_same(float got, double expected, const char* what, double from) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(got)) << what << " of " << from << ": got " << got << ", expected NaN";
  } else {
    ASSERT_EQ(static_cast<double>(got), expected) << what << " of " << from;
    ASSERT_EQ(std::signbit(got), std::signbit(expected)) << what << " of " << from;
  }
}

template <class T>
void expect_rounded(float x) {
  expect_same(widen(narrow<T>(x)), rounded<T>(x), "narrow", x);
}

TYPED_TEST(Half, WidensExactlyFromEveryBitPattern) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const TypeParam x{static_cast<uint16_t>(bits)};
    ASSERT_NO_FATAL_FAILURE(expect_same(widen(x), value_of<TypeParam>(bits), "widen", bits));
  }
}

TYPED_TEST(Half, KeepsEveryBitPatternThatWasWidened) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const TypeParam x{static_cast<uint16_t>(bits)};
    const float wide = widen(x);
    const TypeParam back = narrow<TypeParam>(wide);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(widen(back))) << "bits " << bits << ", got " << back.bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TYPED_TEST(Half, NarrowsToTheNearestAroundEveryMidpoint) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const double here = value_of<TypeParam>(bits), next = value_of<TypeParam>(bits + 1);
    if (!std::isfinite(here) || (bits & 0x7fff) == 0x7fff) continue;
    // beyond the largest finite number is infinity, where the next power of two would be
    const double beyond = std::copysign(std::ldexp(1, kBias<TypeParam> + 1), here);
    const float middle = static_cast<float>((here + (std::isfinite(next) ? next : beyond)) / 2);
    for (const float x :
         {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, std::copysign(static_cast<float>(kInf), middle)),
          std::nextafter(static_cast<float>(here), static_cast<float>(beyond))}) {
      ASSERT_NO_FATAL_FAILURE(expect_rounded<TypeParam>(x));
    }
  }
}

TYPED_TEST(Half, NarrowsRandomFloatsToTheNearest) {
  RandomStream random(1, 0, 0);
  for (int i = 0; i < 1000000; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_rounded<TypeParam>(std::bit_cast<float>(random.next_u32())));
  }
  constexpr float kMax = std::numeric_limits<float>::max(), kTiny = std::numeric_limits<float>::denorm_min();
  for (const float x : {0.0f, -0.0f, kTiny, -kTiny, kMax, -kMax, 65504.0f, 65519.99f, 65520.0f, -65520.0f, 65536.0f,
                        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    ASSERT_NO_FATAL_FAILURE(expect_rounded<TypeParam>(x));
  }
}

TYPED_TEST(Half, KeepsNaNWhateverItsPayload) {
  for (const uint32_t sign : {0u, 0x80000000u}) {
    for (int bit = 0; bit < 23; ++bit) {
      const float x = std::bit_cast<float>(sign | 0x7f800000u | (1u << bit));
      EXPECT_TRUE(std::isnan(widen(narrow<TypeParam>(x)))) << "bit " << bit;
    }
  }
}

TEST(Accumulator, IsFloatForTheShortFloatsAndTheTypeItselfOtherwise) {
  EXPECT_TRUE((std::is_same_v<Accumulator<BFloat16>, float> && std::is_same_v<Accumulator<Float16>, float>));
  EXPECT_TRUE((std::is_same_v<Accumulator<float>, float> && std::is_same_v<Accumulator<double>, double>));
}

}  // namespace
}  // namespace headlight
