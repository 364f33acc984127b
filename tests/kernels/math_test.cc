#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math_test.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/activation-inl.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// out[i] = f(in[i]) for whole vectors and for a last one that is filled up with zeros
template <class T, class F>
void map(const T* in, T* out, int64_t n, F f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T last[hn::MaxLanes(d)] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, in + i)), d, out + i);
  for (int64_t j = i; j < n; ++j) last[j - i] = in[j];
  hn::Store(f(d, hn::Load(d, last)), d, last);
  for (int64_t j = i; j < n; ++j) out[j] = last[j - i];
}

#define HEADLIGHT_MAP(name, expression)                                  \
  void name##_float(const float* in, float* out, int64_t n) {            \
    map(in, out, n, [](auto d, auto x) HWY_ATTR { return expression; }); \
  }                                                                      \
  void name##_double(const double* in, double* out, int64_t n) {         \
    map(in, out, n, [](auto d, auto x) HWY_ATTR { return expression; }); \
  }

HEADLIGHT_MAP(exp, exp(d, x))
HEADLIGHT_MAP(exp_of_moderate, exp_of_moderate(d, x))
HEADLIGHT_MAP(exp_of_negative, exp_of_negative(d, x))
HEADLIGHT_MAP(normal_tail, normal_tail(d, x, exp_of_minus_half_square(d, x)))
HEADLIGHT_MAP(relu, activate<Activation::kRelu>(d, x))
HEADLIGHT_MAP(gelu, activate<Activation::kGelu>(d, x))
HEADLIGHT_MAP(gelu_tanh, activate<Activation::kGeluTanh>(d, x))
HEADLIGHT_MAP(relu_slope, activation_slope<Activation::kRelu>(d, x))
HEADLIGHT_MAP(gelu_slope, activation_slope<Activation::kGelu>(d, x))
HEADLIGHT_MAP(gelu_tanh_slope, activation_slope<Activation::kGeluTanh>(d, x))
#undef HEADLIGHT_MAP

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/kernels/isa.h"

namespace headlight {
namespace {

#define HEADLIGHT_APPLY(name)                                                                    \
  HWY_EXPORT(name##_float);                                                                      \
  HWY_EXPORT(name##_double);                                                                     \
  struct apply_##name {                                                                          \
    static void run(const std::vector<float>& in, std::vector<float>& out) {                     \
      HEADLIGHT_DISPATCH(name##_float)(in.data(), out.data(), static_cast<int64_t>(in.size()));  \
    }                                                                                            \
    static void run(const std::vector<double>& in, std::vector<double>& out) {                   \
      HEADLIGHT_DISPATCH(name##_double)(in.data(), out.data(), static_cast<int64_t>(in.size())); \
    }                                                                                            \
  };

HEADLIGHT_APPLY(exp)
HEADLIGHT_APPLY(exp_of_moderate)
HEADLIGHT_APPLY(exp_of_negative)
HEADLIGHT_APPLY(normal_tail)
HEADLIGHT_APPLY(relu)
HEADLIGHT_APPLY(gelu)
HEADLIGHT_APPLY(gelu_tanh)
HEADLIGHT_APPLY(relu_slope)
HEADLIGHT_APPLY(gelu_slope)
HEADLIGHT_APPLY(gelu_tanh_slope)
#undef HEADLIGHT_APPLY

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class Function, class T>
std::vector<T> apply(const std::vector<T>& in) {
  std::vector<T> out(in.size(), T(kNan));
  Function::run(in, out);
  return out;
}

// Runs `check` on every instruction set, for float and double.
template <class Check>
void on_every_isa(Check check) {
  for (const std::string& isa : supported_isas()) {
    SCOPED_TRACE(isa);
    force_isa(isa);
    ASSERT_EQ(active_isa(), isa);
    check(float{});
    check(double{});
  }
  force_isa("");
}

// evenly spread, with a random place in each step
template <class T>
std::vector<T> points(double low, double high, int count) {
  RandomStream random(7, 1, 0);
  std::vector<T> x;
  for (int i = 0; i < count; ++i) x.push_back(static_cast<T>(low + (high - low) * (i + random.uniform()) / count));
  return x;
}

// the distance of neighbouring numbers of T at |x|
template <class T>
long double spacing(long double x) {
  const T near = static_cast<T>(std::abs(x));
  return std::nextafter(near, std::numeric_limits<T>::infinity()) - static_cast<long double>(near);
}

// |f(x) - want(x)| <= allowed(x), reporting the worst
template <class Function, class T, class Want, class Allowed>
void expect_close(const std::vector<T>& in, Want want, Allowed allowed) {
  const std::vector<T> out = apply<Function>(in);
  std::size_t worst = 0;
  long double worst_share = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const long double w = want(static_cast<long double>(in[i]));
    const long double share = std::abs(out[i] - w) / allowed(static_cast<long double>(in[i]), w);
    if (!(share <= worst_share)) {
      worst = i;
      worst_share = share;
    }
  }
  EXPECT_LE(worst_share, 1) << "at x[" << worst << "] = " << in[worst] << ": got " << out[worst] << ", expected "
                            << want(in[worst]);
}

template <class Function, class T>
void expect_value(double x, double want) {
  const T got = apply<Function>(std::vector<T>{static_cast<T>(x)})[0];
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << "at " << x << ": got " << got << ", expected NaN";
  } else {
    EXPECT_EQ(got, static_cast<T>(want)) << "at " << x;
  }
}

long double density(long double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<long double>); }
long double tail(long double a) { return std::erfc(a / std::sqrt(2.0L)) / 2; }
long double exact_gelu(long double x) { return x * tail(-x); }
long double exact_gelu_slope(long double x) { return tail(-x) + x * density(x); }

constexpr long double kTanhScale = 0.797884560802865355879892119868763737L;  // sqrt(2/pi)
long double tanh_share(long double x) { return 1 / (1 + std::exp(-2 * kTanhScale * (x + 0.044715L * x * x * x))); }
long double exact_gelu_tanh(long double x) { return x * tanh_share(x); }
long double exact_gelu_tanh_slope(long double x) {
  const long double s = tanh_share(x);
  return s + x * s * tanh_share(-x) * 2 * kTanhScale * (1 + 3 * 0.044715L * x * x);
}

TEST(Exp, IsWithinOneUnitInTheLastPlaceOverTheWholeRange) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    const auto one_unit = [](long double, long double want) { return spacing<T>(want); };
    const auto exact = [](long double x) { return std::exp(x); };
    const double low = sizeof(T) == 4 ? -103.5 : -745;
    const double high = sizeof(T) == 4 ? 88.7 : 709.7;
    expect_close<apply_exp>(points<T>(low, high, 100'003), exact, one_unit);
    expect_close<apply_exp>(points<T>(-1, 1, 50'001), exact, one_unit);
    expect_close<apply_exp>(points<T>(-1e-6, 1e-6, 1'001), exact, one_unit);
  });
}

TEST(Exp, OverflowsUnderflowsAndKeepsNan) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    const double most = std::numeric_limits<T>::max();
    for (double x : {-double{kInf}, -most, -800.0, -746.0}) expect_value<apply_exp, T>(x, 0);
    for (double x : {double{kInf}, most, 800.0, 710.0}) expect_value<apply_exp, T>(x, kInf);
    expect_value<apply_exp, T>(0, 1);
    expect_value<apply_exp, T>(-0.0, 1);
    expect_value<apply_exp, T>(kNan, kNan);
  });
}

TEST(Exp, GivesSubnormalNumbers) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    const double x = sizeof(T) == 4 ? -103 : -744;
    const T got = apply<apply_exp>(std::vector<T>{static_cast<T>(x)})[0];
    EXPECT_GT(got, 0);
    EXPECT_LT(got, std::numeric_limits<T>::min());
  });
}

TEST(ExpOfModerate, EqualsExpWhereTheResultIsNormal) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    const std::vector<T> x = points<T>(sizeof(T) == 4 ? -87 : -708, sizeof(T) == 4 ? 88 : 709, 20'001);
    EXPECT_EQ(apply<apply_exp_of_moderate>(x), apply<apply_exp>(x));
  });
}

TEST(ExpOfNegative, EqualsExpWhereTheResultIsNormalAndVanishesBelow) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    const double lowest = sizeof(T) == 4 ? -87 : -708;
    const std::vector<T> x = points<T>(lowest, 0, 20'001);
    EXPECT_EQ(apply<apply_exp_of_negative>(x), apply<apply_exp>(x));
    const double most = std::numeric_limits<T>::max();
    for (double below : {-double{kInf}, -most, -1e6, 1.001 * lowest}) expect_value<apply_exp_of_negative, T>(below, 0);
    expect_value<apply_exp_of_negative, T>(kNan, kNan);
  });
}

TEST(NormalTail, IsAccurateRelativeToItself) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    // Horner's rule without fused steps leaves some units; the rounding of a^2/2 is a relative error of that
    // many units in the exponential
    const auto allowed = [](long double a, long double want) { return spacing<T>(want) * (8 + a * a / 2); };
    expect_close<apply_normal_tail>(points<T>(0, sizeof(T) == 4 ? 6 : 37.5, 50'001), tail, allowed);
    expect_close<apply_normal_tail>(points<T>(0, 1, 50'001), tail, allowed);
  });
}

// Some units, and for x < 0 as many more as the exponential has (see NormalTail);
// beyond the cut at x = -6 (float, GELU) what is left out is below 6e-9.
template <class T>
long double gelu_allowance(long double x, long double want) {
  const long double units = 8 + (x < 0 ? x * x : 0);
  const long double cut = sizeof(T) == 4 && x < -5.9 ? 6e-9L : 0;
  return units * spacing<T>(want) + cut;
}

TEST(Gelu, IsAccurateRelativeToItselfOnBothSides) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    expect_close<apply_gelu>(points<T>(-12, 12, 100'001), exact_gelu, gelu_allowance<T>);
    expect_close<apply_gelu>(points<T>(-1, 1, 50'001), exact_gelu, gelu_allowance<T>);
  });
}

TEST(GeluTanh, IsAccurateRelativeToItselfOnBothSides) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    // the exponent grows as |x|^3 and its rounding with it; the cut leaves out less than 1e-27
    const auto allowed = [](long double x, long double want) {
      return (4 + (x < 0 ? 2 * x * x - x * x * x / 4 : 0)) * spacing<T>(want) + (sizeof(T) == 4 ? 1e-27L : 0);
    };
    expect_close<apply_gelu_tanh>(points<T>(-12, 12, 100'001), exact_gelu_tanh, allowed);
    expect_close<apply_gelu_tanh>(points<T>(-1, 1, 50'001), exact_gelu_tanh, allowed);
  });
}

TEST(ActivationSlope, MatchesTheDerivativesToAFewUnitsOfOne) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    // the two terms of the derivative are below 1.2 and may cancel
    const auto allowed = [](long double, long double) { return 4 * std::numeric_limits<T>::epsilon(); };
    expect_close<apply_gelu_slope>(points<T>(-12, 12, 100'001), exact_gelu_slope, allowed);
    expect_close<apply_gelu_tanh_slope>(points<T>(-12, 12, 100'001), exact_gelu_tanh_slope, allowed);
    const auto step = [](long double x) { return x > 0 ? 1.0L : 0.0L; };
    expect_close<apply_relu_slope>(points<T>(-2, 2, 1'001), step, [](long double, long double) { return 0x1p-200L; });
  });
}

TEST(Activate, HasItsLimitsAtZeroInfinityAndNan) {
  on_every_isa([](auto type) {
    using T = decltype(type);
    const double most = std::numeric_limits<T>::max();
    const auto check = [&]<class Value, class Slope>(Value, Slope) {
      for (double x : {-double{kInf}, -most, -1000.0}) {
        expect_value<Value, T>(x, 0);
        expect_value<Slope, T>(x, 0);
      }
      for (double x : {1000.0, most, double{kInf}}) {
        expect_value<Value, T>(x, x);
        expect_value<Slope, T>(x, 1);
      }
      expect_value<Value, T>(0, 0);
      expect_value<Value, T>(kNan, kNan);
      expect_value<Slope, T>(kNan, kNan);
    };
    check(apply_relu{}, apply_relu_slope{});
    check(apply_gelu{}, apply_gelu_slope{});
    check(apply_gelu_tanh{}, apply_gelu_tanh_slope{});
    expect_value<apply_relu_slope, T>(0, 0);
  });
}

}  // namespace
}  // namespace headlight
#endif
