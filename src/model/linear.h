#pragma once
// Linear maps of sublayers, y = x W + b: their declaration, forward and backward.

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <type_traits>

#include "headlight/kernels/matmul.h"
#include "model/sublayer.h"

namespace headlight {

// (in, out) matrix drawn with deviation 0.8 / sqrt(in), so that scores and activations begin near unit size
inline int add_matrix(ParameterTable& table, const std::string& name, int64_t in, int64_t out) {
  return table.add({.name = name,
                    .shape = {in, out},
                    .initial_deviation = 0.8 / std::sqrt(static_cast<double>(in)),
                    .decays = true});
}

// (in, D) matrix that writes to the stream: 2 L of them are added up, so each starts smaller (Radford et al. 2019)
inline int add_writer(ParameterTable& table, const ModelConfig& config, const std::string& name, int64_t in) {
  const double deviation =
      0.8 / std::sqrt(static_cast<double>(in)) / std::sqrt(2.0 * static_cast<double>(config.blocks));
  return table.add({.name = name, .shape = {in, config.width}, .initial_deviation = deviation, .decays = true});
}

// (out), or -1 unless `wanted`
inline int add_bias(ParameterTable& table, bool wanted, const std::string& name, int64_t out) {
  return wanted ? table.add({.name = name, .shape = {out}}) : -1;
}

// A product with b as a model keeps it; args.b is not read.
template <class T>
struct StoredProduct {
  Matmul<T> args;
  StoredMatrix<T> b;
};

// Products whose b are kept in one type, side by side: see matmul_together().
template <class T, std::size_t kCount>
void multiply(const std::array<StoredProduct<T>, kCount>& products) {
  const auto with = [&](auto b_of) {
    using B = std::remove_const_t<std::remove_pointer_t<decltype(b_of(products[0]).data)>>;
    std::array<Matmul<T, B>, kCount> all;
    for (std::size_t i = 0; i < kCount; ++i) {
      const Matmul<T>& args = products[i].args;
      all[i] = {.a = args.a,
                .b = b_of(products[i]),
                .c = args.c,
                .bias = args.bias,
                .residual = args.residual,
                .activation = args.activation,
                .pre = args.pre,
                .accumulate = args.accumulate};
    }
    matmul_together(std::span<const Matmul<T, B>>(all));
  };
  if constexpr (std::is_same_v<T, float>) {
    if (products[0].b.bf16.data != nullptr) return with([](const auto& product) { return product.b.bf16; });
    if (products[0].b.f16.data != nullptr) return with([](const auto& product) { return product.b.f16; });
  }
  with([](const auto& product) { return product.b.wide; });
}

template <class T>
void multiply(const Matmul<T>& args, const StoredMatrix<T>& b) {
  multiply<T>(std::array{StoredProduct<T>{args, b}});
}

// y = x W + b + residual (absent: 0)
template <class T>
StoredProduct<T> linear(const Pass<T>& pass, int weight, int bias, View<const T, 2> x, View<const T, 2> residual,
                        View<T, 2> y) {
  return {{.a = x, .b = {}, .c = y, .bias = pass.weight_vector(bias), .residual = residual}, pass.weight(weight)};
}
template <class T>
void linear_forward(const Pass<T>& pass, int weight, int bias, View<const T, 2> x, View<const T, 2> residual,
                    View<T, 2> y) {
  multiply<T>(std::array{linear(pass, weight, bias, x, residual, y)});
}

// y = x W + b:  dW += x^T dy,  db += sum over rows of dy
template <class T>
void linear_backward_weights(const Pass<T>& pass, int weight, int bias, View<const T, 2> x, View<const T, 2> dy) {
  matmul<T>({.a = x.swap(0, 1), .b = dy, .c = pass.gradient(weight), .accumulate = true});
  if (bias >= 0) add_column_sums<T>(dy, pass.gradient_vector(bias));
}

// y = x W + b:  dx = dy W^T, or dx += dy W^T
template <class T>
void linear_backward_input(const Pass<T>& pass, int weight, View<const T, 2> dy, View<T, 2> dx, bool accumulate) {
  matmul<T>({.a = dy, .b = pass.weight(weight).wide.swap(0, 1), .c = dx, .accumulate = accumulate});
}

}  // namespace headlight
