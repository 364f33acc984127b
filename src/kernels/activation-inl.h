// The activation functions and their derivatives on vectors, compiled once per instruction set. The matrix
// product and the elementwise kernels share them, so that both give the same bits.

#if defined(HEADLIGHT_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ACTIVATION_INL_H_
#undef HEADLIGHT_KERNELS_ACTIVATION_INL_H_
#else
#define HEADLIGHT_KERNELS_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "headlight/kernels/matmul.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// max(x, 0), NaN kept
template <class D, class V = hn::Vec<D>>
HWY_INLINE V relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x);
}

// Both forms of GELU are x S(x) with an S that rises from 0 to 1 and S(x) + S(-x) = 1. With the lower tail
// s = S(-a), a = |x|, they are relu(x) - a s: nothing cancels on the negative side, and at infinity the
// limit comes out. Their derivatives are g = s - a S'(a) for x < 0 and 1 - g for x >= 0.

// `tail` is a s or g; beyond `end` it is 0 to the last place
template <class D, class V = hn::Vec<D>>
HWY_INLINE V cut_tail(D d, V a, hn::TFromD<D> end, V tail) {
  return hn::IfThenElseZero(hn::Lt(a, hn::Set(d, end)), tail);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V slope_from_tail(D d, V x, V g) {
  const V slope = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), g, hn::Sub(hn::Set(d, hn::TFromD<D>(1)), g));
  return hn::IfThenElse(hn::Eq(x, x), slope, x);
}

// exp(-a^2/2) of a cut at the end of the normal distribution's tail
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_minus_half_square(D d, V a) {
  return exp_of_moderate(d, hn::Mul(hn::Mul(a, hn::Set(d, hn::TFromD<D>(-0.5))), a));
}

// x/2 (1 + erf(x / sqrt 2))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  constexpr auto kEnd = kNormalTailEnd<hn::TFromD<D>>;
  const V a = hn::Abs(x);
  const V inside = hn::Min(a, hn::Set(d, kEnd));
  const V s = normal_tail(d, inside, exp_of_minus_half_square(d, inside));
  return hn::Sub(relu(d, x), cut_tail(d, a, kEnd, hn::Mul(inside, s)));
}

// S'(a) = exp(-a^2/2) / sqrt(2 pi)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_slope(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr T kEnd = kNormalTailEnd<T>;
  const V a = hn::Abs(x);
  const V inside = hn::Min(a, hn::Set(d, kEnd));
  const V e = exp_of_minus_half_square(d, inside);
  const V s = normal_tail(d, inside, e);
  const V g = hn::NegMulAdd(hn::Mul(inside, hn::Set(d, T(0.398942280401432678))), e, s);
  return slope_from_tail(d, x, cut_tail(d, a, kEnd, g));
}

// The form with tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3), as (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)). At the
// end exp(2u) is still finite and s is below the last place.
template <class T>
inline constexpr T kGeluTanhEnd = sizeof(T) == 4 ? T(9) : T(20);
template <class T>
inline constexpr T kGeluTanhLinear = T(1.59576912160573071);  // 2 sqrt(2/pi)
template <class T>
inline constexpr T kGeluTanhCubic = T(0.0713548162726002527);  // 2 sqrt(2/pi) 0.044715

// s = 1 / (1 + e) with e = exp(2u(a))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh_tail(D d, V a, V& e) {
  using T = hn::TFromD<D>;
  const V inner = hn::MulAdd(hn::Mul(a, a), hn::Set(d, kGeluTanhCubic<T>), hn::Set(d, kGeluTanhLinear<T>));
  e = exp_of_moderate(d, hn::Mul(a, inner));
  const V one = hn::Set(d, T(1));
  return hn::Div(one, hn::Add(one, e));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh(D d, V x) {
  constexpr auto kEnd = kGeluTanhEnd<hn::TFromD<D>>;
  const V a = hn::Abs(x);
  const V inside = hn::Min(a, hn::Set(d, kEnd));
  V e;
  const V s = gelu_tanh_tail(d, inside, e);
  return hn::Sub(relu(d, x), cut_tail(d, a, kEnd, hn::Mul(inside, s)));
}

// S'(a) = 2u'(a) s (1 - s), and 1 - s = e s
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh_slope(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr T kEnd = kGeluTanhEnd<T>;
  const V a = hn::Abs(x);
  const V inside = hn::Min(a, hn::Set(d, kEnd));
  V e;
  const V s = gelu_tanh_tail(d, inside, e);
  const V steepness =
      hn::MulAdd(hn::Mul(inside, inside), hn::Set(d, 3 * kGeluTanhCubic<T>), hn::Set(d, kGeluTanhLinear<T>));
  const V g = hn::NegMulAdd(hn::Mul(inside, steepness), hn::Mul(s, hn::Mul(e, s)), s);
  return slope_from_tail(d, x, cut_tail(d, a, kEnd, g));
}

// f(x)
template <Activation f, class D, class V = hn::Vec<D>>
HWY_INLINE V activate(D d, V x) {
  if constexpr (f == Activation::kRelu) return relu(d, x);
  if constexpr (f == Activation::kGelu) return gelu(d, x);
  if constexpr (f == Activation::kGeluTanh) return gelu_tanh(d, x);
  if constexpr (f == Activation::kNone) return x;
}

// f'(x); relu'(0) = 0; NaN where x is
template <Activation f, class D, class V = hn::Vec<D>>
HWY_INLINE V activation_slope(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>(1));
  if constexpr (f == Activation::kRelu) {
    const V slope = hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), one);
    return hn::IfThenElse(hn::Eq(x, x), slope, x);
  }
  if constexpr (f == Activation::kGelu) return gelu_slope(d, x);
  if constexpr (f == Activation::kGeluTanh) return gelu_tanh_slope(d, x);
  if constexpr (f == Activation::kNone) return one;
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
