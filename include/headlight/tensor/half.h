#pragma once
// The short floats as they are stored: widened exactly, narrowed to the nearest, never computed with.

#include <bit>
#include <cstdint>

namespace headlight {

struct BFloat16 {
  uint16_t bits;  // the upper half of a float
};
struct Float16 {
  uint16_t bits;  // IEEE binary16
};

// What numbers stored as T are computed and summed in: float for the short floats, T itself otherwise.
template <class T>
struct AccumulatorOf {
  using Type = T;
};
template <>
struct AccumulatorOf<BFloat16> {
  using Type = float;
};
template <>
struct AccumulatorOf<Float16> {
  using Type = float;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::Type;

// Exact; the payload of a NaN is kept.
inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline float widen(Float16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(x.bits & 0x7fffu) << 13;
  // the exponent's bias differs by 112; the product also normalises what is subnormal in binary16
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  const uint32_t magnitude = rest >= 0x0f800000u ? (rest | 0x7f800000u) : finite;
  return std::bit_cast<float>(sign | magnitude);
}

// The nearest number of type T, of two equally near ones the one whose last bit is 0; infinite where |x| is half
// a unit or more above the largest finite one. NaN stays NaN.
template <class T>
T narrow(Accumulator<T> x) {
  return x;
}
template <>
inline BFloat16 narrow<BFloat16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  // a NaN whose payload is all in the lower half would become infinite
  if (x != x) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}
template <>
inline Float16 narrow<Float16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 2^16
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // below 2^-14 the unit is 2^-24, that of a float at 1/2: the sum rounds
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    // what rounds up beyond the mantissa raises the exponent, up to that of infinity
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
  }
  return {static_cast<uint16_t>(sign | half)};
}

}  // namespace headlight
