#include "kernels/reference/activation.h"

#include <cmath>

namespace headlight::reference {
namespace {

const double kSqrtHalf = std::sqrt(0.5);
const double kTanhFactor = std::sqrt(2 / std::acos(-1.0));

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

double activate(Activation f, double x) {
  switch (f) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x <= 0 ? 0 : x;
    case Activation::kGelu:
      return x / 2 * std::erfc(-x * kSqrtHalf);
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(kTanhFactor * (x + 0.044715 * x * x * x)));
  }
  return 0;
}

double activation_slope(Activation f, double x) {
  switch (f) {
    case Activation::kNone:
      return 1;
    case Activation::kRelu:
      return x <= 0 ? 0 : std::isnan(x) ? x : 1;
    case Activation::kGelu:
      // (x/2 erfc(-x / sqrt 2))'
      return std::erfc(-x * kSqrtHalf) / 2 + x * std::exp(-x * x / 2) * kTanhFactor / 2;
    case Activation::kGeluTanh: {
      // (x/2 (1 + t))' with t = tanh(u(x))
      const double t = std::tanh(kTanhFactor * (x + 0.044715 * x * x * x));
      return (1 + t) / 2 + x / 2 * (1 - t * t) * kTanhFactor * (1 + 3 * 0.044715 * x * x);
    }
  }
  return 0;
}

void activation_forward(Activation f, View<const double, 2> x, View<double, 2> y) {
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) y(i, j) = activate(f, x(i, j));
  }
}

void activation_backward(Activation f, View<const double, 2> x, View<const double, 2> dy, View<double, 2> dx) {
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) dx(i, j) = activation_slope(f, x(i, j)) * dy(i, j);
  }
}

void silu_gate_forward(View<const double, 2> gate, View<const double, 2> linear, View<double, 2> y) {
  for (int64_t i = 0; i < y.size(0); ++i) {
    for (int64_t j = 0; j < y.size(1); ++j) y(i, j) = gate(i, j) * sigmoid(gate(i, j)) * linear(i, j);
  }
}

void silu_gate_backward(View<const double, 2> gate, View<const double, 2> linear, View<const double, 2> dy,
                        View<double, 2> dgate, View<double, 2> dlinear) {
  for (int64_t i = 0; i < dy.size(0); ++i) {
    for (int64_t j = 0; j < dy.size(1); ++j) {
      const double g = gate(i, j);
      const double s = sigmoid(g);
      const double gradient = dy(i, j);
      dgate(i, j) = gradient * linear(i, j) * (s + g * s * (1 - s));
      dlinear(i, j) = gradient * g * s;
    }
  }
}

}  // namespace headlight::reference
