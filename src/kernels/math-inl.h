// Functions on vectors, compiled once per instruction set: a kernel file includes this after
// <hwy/highway.h>. `d` is a Highway tag of float or double lanes, of any width.

#if defined(HEADLIGHT_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_MATH_INL_H_
#undef HEADLIGHT_KERNELS_MATH_INL_H_
#else
#define HEADLIGHT_KERNELS_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// c0 + c1 x + c2 x^2 + ..., by Horner's rule
template <class D, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V, hn::TFromD<D> c0) {
  return hn::Set(d, c0);
}
template <class D, class... Rest, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V x, hn::TFromD<D> c0, Rest... rest) {
  return hn::MulAdd(polynomial(d, x, rest...), x, hn::Set(d, c0));
}

template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float kRounder = 0x1.8p23f;  // adding it rounds to a whole number in the low bits
  static constexpr float kBias = 127.0f;
  static constexpr int kMantissaBits = 23;
  static constexpr float kLn2High = 0.693359375f;  // few bits: n * kLn2High is exact
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kLowest = -104.0f;  // exp is 0 at and below
  static constexpr float kHighest = 89.0f;   // exp is infinite at and above
  // (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2, relative error of exp 3.1e-9
  template <class D, class V>
  static HWY_INLINE V tail(D d, V r) {
    return polynomial(d, r, 0.499999934519166f, 0.166665206493123f, 0.0416683871113076f, 0.00836871530095861f,
                      0.00138146467527866f);
  }
};

template <>
struct ExpConstants<double> {
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kBias = 1023.0;
  static constexpr int kMantissaBits = 52;
  static constexpr double kLn2High = 6.93145751953125e-1;
  static constexpr double kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kLowest = -746.0;
  static constexpr double kHighest = 710.0;
  // relative error of exp 3.7e-18
  template <class D, class V>
  static HWY_INLINE V tail(D d, V r) {
    return polynomial(d, r, 0.50000000000000106275, 0.16666666666666412514, 0.041666666666530157119,
                      0.0083333333334944708123, 0.0013888888943630360335, 0.00019841269506555355966,
                      0.000024801493098733353686, 2.7557586396741680802e-6, 2.7630248422432851047e-7,
                      2.5000053878886232513e-8);
  }
};

// The nearest whole number; |x| < 2^22.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V round_small(D d, V x) {
  const V rounder = hn::Set(d, ExpConstants<hn::TFromD<D>>::kRounder);
  return hn::Sub(hn::Add(x, rounder), rounder);
}

// 2^n of a whole number n whose power is a normal number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_of_two(D d, V n) {
  using C = ExpConstants<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const V biased = hn::Add(n, hn::Set(d, C::kRounder + C::kBias));
  return hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(du, biased)));
}

// exp(x) = 2^n p with a whole number n and p in [0.7, 1.42] (Cody and Waite 1980).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V reduced_exp(D d, V x, V& n) {
  using T = hn::TFromD<D>;
  using C = ExpConstants<T>;
  n = round_small(d, hn::Mul(x, hn::Set(d, T(1.4426950408889634))));
  const V r = hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x));
  return hn::Add(hn::MulAdd(C::tail(d, r), hn::Mul(r, r), r), hn::Set(d, T(1)));
}

// exp(x) to 1 unit in the last place, for every x: 0, subnormal, infinite and NaN where they belong.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  using T = hn::TFromD<D>;
  using C = ExpConstants<T>;
  const V inside = hn::Min(hn::Max(x, hn::Set(d, C::kLowest)), hn::Set(d, C::kHighest));
  V n;
  const V p = reduced_exp(d, inside, n);
  // in two factors, as 2^n may be no normal number where the product is one
  const V half = round_small(d, hn::Mul(n, hn::Set(d, T(0.5))));
  const V y = hn::Mul(hn::Mul(p, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// The same where exp(x) is a normal number: -87 <= x <= 88 in float, -708 <= x <= 709 in double.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_moderate(D d, V x) {
  V n;
  const V p = reduced_exp(d, x, n);
  return hn::Mul(p, power_of_two(d, n));
}

// exp(x) for x <= 0, as 0 where it is no normal number: below -87 in float, -708 in double. NaN is kept.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_negative(D d, V x) {
  using T = hn::TFromD<D>;
  const auto vanishes = hn::Lt(x, hn::Set(d, sizeof(T) == 4 ? T(-87) : T(-708)));
  return hn::IfThenZeroElse(vanishes, exp_of_moderate(d, x));
}

// The part of the standard normal distribution above a, by exp(-a^2/2): Q(a) = erfc(a / sqrt 2) / 2.
// For 0 <= a <= kNormalTailEnd; relative error about 1e-7 (a^2 + 1) in float, 2e-16 (a^2 + 4) in double.
template <class T>
inline constexpr T kNormalTailEnd = sizeof(T) == 4 ? T(6) : T(37.5);

template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_tail(D d, V a, V exp_of_minus_half_square) {
  using T = hn::TFromD<D>;
  // Q(a) exp(a^2/2) as a polynomial in (a - k) / (a + k) (Shepherd and Laframboise 1981)
  const V k = hn::Set(d, sizeof(T) == 4 ? T(3.5) : T(5));
  const V t = hn::Div(hn::Sub(a, k), hn::Add(a, k));
  V ratio;
  if constexpr (sizeof(T) == 4) {
    // relative error 6.5e-9
    ratio = polynomial(d, t, 0.106345154193419353f, -0.187139706909127424f, 0.125855169671327488f,
                       -0.0616389941197736873f, 0.0190680679070532124f, -0.00156453898427348103f,
                       -0.00140547952873888555f, 0.00036942887542240343f, 0.000163279826647435624f);
  } else {
    // relative error 1.8e-16
    ratio = polynomial(d, t, 0.076919304975006298, -0.143457555264011654, 0.116068811886002098, -0.0808838772641581683,
                       0.0478553522842493968, -0.0234139004868175604, 0.00899137054881184815, -0.00237884436824118861,
                       0.000219550756323025318, 0.000134276929100706286, -0.0000604275894952311085,
                       9.60912939795707512e-7, 6.64477112700063732e-6, -1.26891149140837525e-6, -6.75727820814678985e-7,
                       2.41104970374851231e-7, 7.76822742684575687e-8, -3.64511889499483548e-8, -1.09793069265466009e-8,
                       3.80546889898555565e-9, 1.39939979465348587e-9);
  }
  return hn::Mul(ratio, exp_of_minus_half_square);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
