// Exponentials for attention: of numbers that are not positive, as after the subtraction of a row's maximum.
// A kernel file includes this after <hwy/highway.h>, once per instruction set.

#if defined(HEADLIGHT_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_EXP_INL_H_
#undef HEADLIGHT_KERNELS_EXP_INL_H_
#else
#define HEADLIGHT_KERNELS_EXP_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// max(a, b) where a NaN in `a` is passed over and a NaN in `b` is kept: the rule of x86's instruction, which
// Highway leaves open.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V max_or_second(D, V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}

template <class T>
struct ExpDown;

// kTail: (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2, highest power first; minimax by Remez's algorithm.
template <>
struct ExpDown<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr int kExponentBias = 127;
  static constexpr float kRounder = 0x1.8p23f;
  static constexpr float kLowest = -88.0f;  // the power of two of all below is 0
  static constexpr float kLog2e = 1.44269504f;
  static constexpr float kLn2High = 0.693359375f;  // few bits: n * kLn2High is exact also without a fused operation
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kTail[] = {0.0013814558f, 0.0083687453f, 0.0416683905f, 0.166665204f, 0.499999934f};
};

template <>
struct ExpDown<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr int kExponentBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kLowest = -709.0;
  static constexpr double kLog2e = 1.4426950408889634074;
  static constexpr double kLn2High = 6.93145751953125e-1;
  static constexpr double kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kTail[] = {2.5000018853083341953e-8,   2.7630306255647857359e-7,  2.7557586803847070697e-6,
                                     0.000024801492949617070769, 0.00019841269505773806997, 0.0013888888943759984011,
                                     0.008333333333494977261,    0.041666666666529728134,   0.16666666666666411508,
                                     0.50000000000000106688};
};

// exp(x) = power (1 + part), power = 2^n, part = exp(r) - 1, x = n ln 2 + r
template <class D>
struct ExpParts {
  hn::Vec<D> power;  // 0 when exp(x) is below the smallest normal number
  hn::Vec<D> part;   // NaN when x is
};

// x <= 0, -inf or NaN
template <class D, class V = hn::Vec<D>>
HWY_INLINE ExpParts<D> exp_parts(D d, V x) {
  using C = ExpDown<hn::TFromD<D>>;
  const hn::Rebind<typename C::Bits, D> bits;
  x = max_or_second(d, hn::Set(d, C::kLowest), x);
  // the rounder leaves n, with the exponent's bias added, in the low bits
  const V rounder = hn::Set(d, C::kRounder + C::kExponentBias);
  const V shifted = hn::MulAdd(x, hn::Set(d, C::kLog2e), rounder);
  const V n = hn::Sub(shifted, rounder);
  V r = hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), r);
  V tail = hn::Set(d, C::kTail[0]);
  for (size_t i = 1; i < sizeof(C::kTail) / sizeof(C::kTail[0]); ++i) {
    tail = hn::MulAdd(tail, r, hn::Set(d, C::kTail[i]));
  }
  const V power = hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(bits, shifted)));
  return {power, hn::MulAdd(hn::Mul(tail, r), r, r)};
}

// exp(x) for x <= 0: exactly 1 at 0; 0 at -inf and wherever the result would be below the smallest normal
// number (or within a factor sqrt(2) above it); NaN at NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_down(D d, V x) {
  const ExpParts<D> e = exp_parts(d, x);
  return hn::MulAdd(e.power, e.part, e.power);
}

// tanh(x) for any x, from exp(y) - 1 at y = -2 |x|, which does not cancel near 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>(1));
  const V y = hn::Mul(hn::Abs(x), hn::Set(d, hn::TFromD<D>(-2)));
  const ExpParts<D> e = exp_parts(d, y);
  const V below_one = hn::MulAdd(e.power, e.part, hn::Sub(e.power, one));
  return hn::CopySignToAbs(hn::Div(hn::Neg(below_one), hn::Add(below_one, hn::Set(d, hn::TFromD<D>(2)))), x);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
