#include "headlight/kernels/adamw.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/check.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

template <class T>
void adamw_range(const AdamW<T>& a, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  T* const w = a.w.data + begin;
  T* const m = a.m.data + begin;
  T* const v = a.v.data + begin;
  const T* const g = a.g.data + begin;
  // the numbers of the step are worked out in double
  const auto set = [&](double x) HWY_ATTR { return hn::Set(d, static_cast<T>(x)); };
  const double t = static_cast<double>(a.step);
  const auto beta1 = set(a.beta1);
  const auto beta2 = set(a.beta2);
  const auto rest1 = set(1 - a.beta1);
  const auto rest2 = set(1 - a.beta2);
  const auto correction1 = set(1 / (1 - std::pow(a.beta1, t)));
  const auto correction2 = set(1 / (1 - std::pow(a.beta2, t)));
  const auto epsilon = set(a.epsilon);
  const auto decay = set(a.decay);
  const auto rate = set(a.rate);
  const auto scale = set(a.gradient_scale);
  for_each_vector(d, end - begin, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
    const auto gradient = hn::Mul(part.load(d, g + i), scale);
    const auto mean = hn::MulAdd(beta1, part.load(d, m + i), hn::Mul(rest1, gradient));
    const auto square = hn::MulAdd(beta2, part.load(d, v + i), hn::Mul(rest2, hn::Mul(gradient, gradient)));
    const auto size = hn::Add(hn::Sqrt(hn::Mul(square, correction2)), epsilon);
    const auto direction = hn::Div(hn::Mul(mean, correction1), size);
    const auto weight = part.load(d, w + i);
    part.store(d, mean, m + i);
    part.store(d, square, v + i);
    part.store(d, hn::NegMulAdd(rate, hn::MulAdd(decay, weight, direction), weight), w + i);
  });
}

template <class D, class Part>
HWY_INLINE hn::Vec<D> load_double(D d, Part part, const float* p) {
  return hn::PromoteTo(d, part.load(hn::Rebind<float, D>(), p));
}
template <class D, class Part>
HWY_INLINE hn::Vec<D> load_double(D d, Part part, const double* p) {
  return part.load(d, p);
}

template <class T>
double squares_of_range(const T* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const auto sum = reduce(d, n, zero_sums<1>(d), [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY {
    const auto v = load_double(d, part, x + i);
    s.v[0] = hn::MulAdd(v, v, s.v[0]);
  });
  return sum.total(d, 0);
}

void adamw_float(const AdamW<float>& a, int64_t begin, int64_t end) { adamw_range(a, begin, end); }
void adamw_double(const AdamW<double>& a, int64_t begin, int64_t end) { adamw_range(a, begin, end); }
double squares_float(const float* x, int64_t n) { return squares_of_range(x, n); }
double squares_double(const double* x, int64_t n) { return squares_of_range(x, n); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(adamw_float);
HWY_EXPORT(adamw_double);
HWY_EXPORT(squares_float);
HWY_EXPORT(squares_double);

auto adamw_kernel(float) { return HEADLIGHT_DISPATCH(adamw_float); }
auto adamw_kernel(double) { return HEADLIGHT_DISPATCH(adamw_double); }
auto squares_kernel(float) { return HEADLIGHT_DISPATCH(squares_float); }
auto squares_kernel(double) { return HEADLIGHT_DISPATCH(squares_double); }

template <class T>
View<T, 2> as_row(const View<T, 1>& view) {
  return {view.data, {1, view.size(0)}};
}

void require_fraction(const char* name, double value) {
  if (value >= 0 && value < 1) return;
  throw LogicError("adamw_step", std::string(name) + " is " + std::to_string(value) + "; wanted it in [0, 1)");
}

template <class T>
void check(const AdamW<T>& a) {
  const char* const operation = "adamw_step";
  require_unit_stride(operation, "w", a.w);
  require_rows(operation, "m", a.m, a.w.sizes);
  require_rows(operation, "v", a.v, a.w.sizes);
  require_rows(operation, "g", a.g, a.w.sizes);
  require_apart(operation, "m", as_row(a.m), "w", as_row(a.w));
  require_apart(operation, "v", as_row(a.v), "w", as_row(a.w));
  require_apart(operation, "v", as_row(a.v), "m", as_row(a.m));
  require_apart(operation, "w", as_row(a.w), "g", as_row(a.g));
  require_apart(operation, "m", as_row(a.m), "g", as_row(a.g));
  require_apart(operation, "v", as_row(a.v), "g", as_row(a.g));
  if (a.step < 1) throw LogicError(operation, "step is " + std::to_string(a.step) + "; wanted at least 1");
  require_fraction("beta1", a.beta1);
  require_fraction("beta2", a.beta2);
  if (!(a.epsilon >= 0)) throw LogicError(operation, "epsilon is " + std::to_string(a.epsilon) + "; wanted at least 0");
}

}  // namespace

template <class T>
void adamw_step(const AdamW<T>& a) {
  check(a);
  const auto kernel = adamw_kernel(T());
  for_row_blocks(a.w.size(0), 1, [&](int64_t begin, int64_t end) { kernel(a, begin, end); });
}

template <class T>
double sum_of_squares(View<const T, 1> x) {
  require_unit_stride("sum_of_squares", "x", x);
  const auto kernel = squares_kernel(T());
  const int64_t n = x.size(0);
  const int64_t ranges = (n + kElementsPerTask - 1) / kElementsPerTask;
  auto* const sums = reinterpret_cast<double*>(scratch(static_cast<size_t>(ranges) * sizeof(double)));
  for_row_blocks(
      n, 1, [&](int64_t begin, int64_t end) { sums[begin / kElementsPerTask] = kernel(x.data + begin, end - begin); });
  double sum = 0;
  for (int64_t i = 0; i < ranges; ++i) sum += sums[i];
  return sum;
}

template void adamw_step(const AdamW<float>&);
template void adamw_step(const AdamW<double>&);
template double sum_of_squares(View<const float, 1>);
template double sum_of_squares(View<const double, 1>);

}  // namespace headlight
#endif
