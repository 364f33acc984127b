#include "headlight/kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/activation-inl.h"
#include "kernels/check.h"
#include "kernels/math-inl.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// y = f(x) for rows [begin, end)
template <Activation f, class T>
void activate_rows(const View<const T, 2>& x, const View<T, 2>& y, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  for (int64_t row = begin; row < end; ++row) {
    const T* from = x[row].data;
    T* to = y[row].data;
    for_each_vector(d, x.size(1), [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      part.store(d, activate<f>(d, part.load(d, from + i)), to + i);
    });
  }
}

// y = f(x), dx = f'(x) dy
template <Activation f, class T>
void activate_rows_backward(const View<const T, 2>& x, const View<const T, 2>& dy, const View<T, 2>& dx, int64_t begin,
                            int64_t end) {
  const hn::ScalableTag<T> d;
  for (int64_t row = begin; row < end; ++row) {
    const T* from = x[row].data;
    const T* gradient = dy[row].data;
    T* to = dx[row].data;
    for_each_vector(d, x.size(1), [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      part.store(d, hn::Mul(activation_slope<f>(d, part.load(d, from + i)), part.load(d, gradient + i)), to + i);
    });
  }
}

// sigmoid(g) = 1 / (1 + exp(-g)) and sigmoid(-g), by exp(-|g|), which never overflows
template <class D, class V = hn::Vec<D>>
HWY_INLINE void sigmoids(D d, V g, V& s, V& s_of_minus) {
  const V one = hn::Set(d, hn::TFromD<D>(1));
  const V e = exp_of_negative(d, hn::Neg(hn::Abs(g)));
  const V high = hn::Div(one, hn::Add(one, e));
  const V low = hn::Mul(high, e);
  const auto negative = hn::Lt(g, hn::Zero(d));
  s = hn::IfThenElse(negative, low, high);
  s_of_minus = hn::IfThenElse(negative, high, low);
}

// a b where b falls to 0 faster than a grows: 0 also for an infinite a
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vanishing_product(D d, V a, V b) {
  return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), hn::Mul(a, b));
}

// y = g s(g) l
template <class T>
void silu_gate_rows(const View<const T, 2>& gate, const View<const T, 2>& linear, const View<T, 2>& y, int64_t begin,
                    int64_t end) {
  const hn::ScalableTag<T> d;
  for (int64_t row = begin; row < end; ++row) {
    const T* gates = gate[row].data;
    const T* linears = linear[row].data;
    T* to = y[row].data;
    for_each_vector(d, y.size(1), [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      const auto g = part.load(d, gates + i);
      auto s = g;
      auto s_of_minus = g;
      sigmoids(d, g, s, s_of_minus);
      part.store(d, hn::Mul(vanishing_product(d, g, s), part.load(d, linears + i)), to + i);
    });
  }
}

// y = g s(g) l:  dl = dy g s(g),  dg = dy l s(g) (1 + g s(-g))
template <class T>
void silu_gate_rows_backward(const View<const T, 2>& gate, const View<const T, 2>& linear, const View<const T, 2>& dy,
                             const View<T, 2>& dgate, const View<T, 2>& dlinear, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto one = hn::Set(d, T(1));
  for (int64_t row = begin; row < end; ++row) {
    const T* gates = gate[row].data;
    const T* linears = linear[row].data;
    const T* gradient = dy[row].data;
    T* to_gate = dgate[row].data;
    T* to_linear = dlinear[row].data;
    for_each_vector(d, dy.size(1), [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      const auto g = part.load(d, gates + i);
      const auto v_dy = part.load(d, gradient + i);
      auto s = g;
      auto s_of_minus = g;
      sigmoids(d, g, s, s_of_minus);
      const auto slope = vanishing_product(d, hn::Add(one, vanishing_product(d, g, s_of_minus)), s);
      const auto dg = hn::Mul(hn::Mul(v_dy, part.load(d, linears + i)), slope);
      part.store(d, hn::Mul(v_dy, vanishing_product(d, g, s)), to_linear + i);
      part.store(d, dg, to_gate + i);
    });
  }
}

template <class T>
void activate_rows(Activation f, const View<const T, 2>& x, const View<T, 2>& y, int64_t begin, int64_t end) {
  switch (f) {
    case Activation::kNone:
      return activate_rows<Activation::kNone>(x, y, begin, end);
    case Activation::kRelu:
      return activate_rows<Activation::kRelu>(x, y, begin, end);
    case Activation::kGelu:
      return activate_rows<Activation::kGelu>(x, y, begin, end);
    case Activation::kGeluTanh:
      return activate_rows<Activation::kGeluTanh>(x, y, begin, end);
  }
}

template <class T>
void activate_rows_backward(Activation f, const View<const T, 2>& x, const View<const T, 2>& dy, const View<T, 2>& dx,
                            int64_t begin, int64_t end) {
  switch (f) {
    case Activation::kNone:
      return activate_rows_backward<Activation::kNone>(x, dy, dx, begin, end);
    case Activation::kRelu:
      return activate_rows_backward<Activation::kRelu>(x, dy, dx, begin, end);
    case Activation::kGelu:
      return activate_rows_backward<Activation::kGelu>(x, dy, dx, begin, end);
    case Activation::kGeluTanh:
      return activate_rows_backward<Activation::kGeluTanh>(x, dy, dx, begin, end);
  }
}

using F2 = View<float, 2>;
using CF2 = View<const float, 2>;
using D2 = View<double, 2>;
using CD2 = View<const double, 2>;

void activate_float(Activation f, const CF2& x, const F2& y, int64_t begin, int64_t end) {
  activate_rows(f, x, y, begin, end);
}
void activate_double(Activation f, const CD2& x, const D2& y, int64_t begin, int64_t end) {
  activate_rows(f, x, y, begin, end);
}
void activate_backward_float(Activation f, const CF2& x, const CF2& dy, const F2& dx, int64_t begin, int64_t end) {
  activate_rows_backward(f, x, dy, dx, begin, end);
}
void activate_backward_double(Activation f, const CD2& x, const CD2& dy, const D2& dx, int64_t begin, int64_t end) {
  activate_rows_backward(f, x, dy, dx, begin, end);
}
void silu_gate_float(const CF2& gate, const CF2& linear, const F2& y, int64_t begin, int64_t end) {
  silu_gate_rows(gate, linear, y, begin, end);
}
void silu_gate_double(const CD2& gate, const CD2& linear, const D2& y, int64_t begin, int64_t end) {
  silu_gate_rows(gate, linear, y, begin, end);
}
void silu_gate_backward_float(const CF2& gate, const CF2& linear, const CF2& dy, const F2& dgate, const F2& dlinear,
                              int64_t begin, int64_t end) {
  silu_gate_rows_backward(gate, linear, dy, dgate, dlinear, begin, end);
}
void silu_gate_backward_double(const CD2& gate, const CD2& linear, const CD2& dy, const D2& dgate, const D2& dlinear,
                               int64_t begin, int64_t end) {
  silu_gate_rows_backward(gate, linear, dy, dgate, dlinear, begin, end);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(activate_float);
HWY_EXPORT(activate_double);
HWY_EXPORT(activate_backward_float);
HWY_EXPORT(activate_backward_double);
HWY_EXPORT(silu_gate_float);
HWY_EXPORT(silu_gate_double);
HWY_EXPORT(silu_gate_backward_float);
HWY_EXPORT(silu_gate_backward_double);

auto activate_kernel(float) { return HEADLIGHT_DISPATCH(activate_float); }
auto activate_kernel(double) { return HEADLIGHT_DISPATCH(activate_double); }
auto activate_backward_kernel(float) { return HEADLIGHT_DISPATCH(activate_backward_float); }
auto activate_backward_kernel(double) { return HEADLIGHT_DISPATCH(activate_backward_double); }
auto silu_gate_kernel(float) { return HEADLIGHT_DISPATCH(silu_gate_float); }
auto silu_gate_kernel(double) { return HEADLIGHT_DISPATCH(silu_gate_double); }
auto silu_gate_backward_kernel(float) { return HEADLIGHT_DISPATCH(silu_gate_backward_float); }
auto silu_gate_backward_kernel(double) { return HEADLIGHT_DISPATCH(silu_gate_backward_double); }

}  // namespace

template <class T>
void activation_forward(Activation f, View<const T, 2> x, View<T, 2> y) {
  const char* const operation = "activation_forward";
  require_unit_stride(operation, "x", x);
  require_output(operation, "y", y, x.sizes);
  require_same_or_apart(operation, "y", y, "x", x);
  const auto kernel = activate_kernel(T());
  for_row_blocks(x.size(0), x.size(1), [&](int64_t begin, int64_t end) { kernel(f, x, y, begin, end); });
}

template <class T>
void activation_backward(Activation f, View<const T, 2> x, View<const T, 2> dy, View<T, 2> dx) {
  const char* const operation = "activation_backward";
  require_unit_stride(operation, "x", x);
  require_rows(operation, "dy", dy, x.sizes);
  require_output(operation, "dx", dx, x.sizes);
  require_same_or_apart(operation, "dx", dx, "x", x);
  require_same_or_apart(operation, "dx", dx, "dy", dy);
  const auto kernel = activate_backward_kernel(T());
  for_row_blocks(x.size(0), x.size(1), [&](int64_t begin, int64_t end) { kernel(f, x, dy, dx, begin, end); });
}

template <class T>
void silu_gate_forward(View<const T, 2> gate, View<const T, 2> linear, View<T, 2> y) {
  const char* const operation = "silu_gate_forward";
  require_unit_stride(operation, "gate", gate);
  require_rows(operation, "linear", linear, gate.sizes);
  require_output(operation, "y", y, gate.sizes);
  require_same_or_apart(operation, "y", y, "gate", gate);
  require_same_or_apart(operation, "y", y, "linear", linear);
  const auto kernel = silu_gate_kernel(T());
  for_row_blocks(y.size(0), y.size(1), [&](int64_t begin, int64_t end) { kernel(gate, linear, y, begin, end); });
}

template <class T>
void silu_gate_backward(View<const T, 2> gate, View<const T, 2> linear, View<const T, 2> dy, View<T, 2> dgate,
                        View<T, 2> dlinear) {
  const char* const operation = "silu_gate_backward";
  require_unit_stride(operation, "gate", gate);
  require_rows(operation, "linear", linear, gate.sizes);
  require_rows(operation, "dy", dy, gate.sizes);
  require_output(operation, "dgate", dgate, gate.sizes);
  require_output(operation, "dlinear", dlinear, gate.sizes);
  require_apart(operation, "dgate", dgate, "dlinear", dlinear);
  for (const View<const T, 2>& input : {gate, linear, dy}) {
    require_same_or_apart(operation, "dgate", dgate, "an input", input);
    require_same_or_apart(operation, "dlinear", dlinear, "an input", input);
  }
  const auto kernel = silu_gate_backward_kernel(T());
  for_row_blocks(dy.size(0), dy.size(1),
                 [&](int64_t begin, int64_t end) { kernel(gate, linear, dy, dgate, dlinear, begin, end); });
}

template void activation_forward(Activation, View<const float, 2>, View<float, 2>);
template void activation_forward(Activation, View<const double, 2>, View<double, 2>);
template void activation_backward(Activation, View<const float, 2>, View<const float, 2>, View<float, 2>);
template void activation_backward(Activation, View<const double, 2>, View<const double, 2>, View<double, 2>);
template void silu_gate_forward(View<const float, 2>, View<const float, 2>, View<float, 2>);
template void silu_gate_forward(View<const double, 2>, View<const double, 2>, View<double, 2>);
template void silu_gate_backward(View<const float, 2>, View<const float, 2>, View<const float, 2>, View<float, 2>,
                                 View<float, 2>);
template void silu_gate_backward(View<const double, 2>, View<const double, 2>, View<const double, 2>, View<double, 2>,
                                 View<double, 2>);

}  // namespace headlight
#endif
