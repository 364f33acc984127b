#pragma once
// The matrix product with its epilogue. It decides the speed of everything, and keeps the promise of the
// same bits: the order in which one element is summed depends on the summed length k alone, not on
// threads, rows, columns, strides or neighbours.

#include <cstdint>
#include <span>

#include "headlight/tensor/half.h"
#include "headlight/tensor/view.h"

namespace headlight {

enum class Activation { kNone, kRelu, kGelu, kGeluTanh };

// s = a b + bias;  pre = s;  c = f(s) + residual, or c += a b with `accumulate`.
// Accumulates in T with fused multiply-adds where the instruction set has them. Outputs are set unless
// `accumulate`. With k = 0 the product is 0. A view without data is absent.
// Throws LogicError when sizes do not fit, when an output overlaps an input or another output (residual may
// be c itself only when equal element for element), or when `accumulate` comes with bias, residual, pre or f.
// B is how b is stored: as T, or short beside float. Its numbers are widened exactly as they are read, so that the
// result has the bits of a product with the widened b.
template <class T, class B = T>
struct Matmul {
  View<const T, 2> a;           // (m, k), any strides: a.swap(0, 1) is the transpose
  View<const B, 2> b;           // (k, n), any strides
  View<T, 2> c;                 // (m, n), rows of unit stride
  View<const T, 1> bias{};      // (n), optional, unit stride
  View<const T, 2> residual{};  // (m, n), optional, rows of unit stride
  Activation activation = Activation::kNone;
  View<T, 2> pre{};         // (m, n), optional: the value before the activation, for the backward
  bool accumulate = false;  // add to c instead of setting it
};

template <class T>
void matmul(const Matmul<T>& args);
void matmul(const Matmul<float, BFloat16>& args);
void matmul(const Matmul<float, Float16>& args);

// The same as one after the other, in this order. Products of few rows that read nothing of each other, such as a
// token's queries, keys and values, are done side by side. Throws LogicError, before any is done, as each alone, and
// when an output overlaps an input or output of another.
template <class T>
void matmul_together(std::span<const Matmul<T>> products);
void matmul_together(std::span<const Matmul<float, BFloat16>> products);
void matmul_together(std::span<const Matmul<float, Float16>> products);

// sums(j) += sum over rows i of x(i, j), in an order that depends on the number of rows alone. The gradient
// of a bias. x: (m, n), rows of unit stride; sums: (n), unit stride, apart from x. Throws LogicError otherwise.
template <class T>
void add_column_sums(View<const T, 2> x, View<T, 1> sums);

}  // namespace headlight
