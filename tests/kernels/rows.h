#pragma once
// What the tests of the row kernels share: matrices with poisoned surroundings, settings to run under,
// comparisons that print index, got and expected.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/base/thread_pool.h"
#include "headlight/kernels/isa.h"
#include "headlight/tensor/buffer.h"

namespace headlight::testing_rows {

// every length up to two vectors of 16 floats and one more, then typical widths
inline std::vector<int64_t> awkward_lengths() {
  std::vector<int64_t> lengths;
  for (int64_t n = 0; n <= 33; ++n) lengths.push_back(n);
  for (int64_t n : {64, 65, 384, 768}) lengths.push_back(n);
  return lengths;
}

// Where a matrix lies: elements before it, from an aligned start, and elements between its rows.
struct Layout {
  int64_t misaligned = 0;
  int64_t gap = 0;
};
inline std::vector<Layout> awkward_layouts() { return {{0, 0}, {1, 3}, {2, 1}}; }

// Bytes that no kernel writes: a NaN of a payload of its own.
constexpr unsigned char kPoison = 0xff;

// A (rows, n) matrix in poisoned memory: what the kernel does not set is NaN, and what it writes outside shows.
template <class T>
class Matrix {
 public:
  Matrix(int64_t rows, int64_t n, Layout layout = {}) : rows_(rows), n_(n), layout_(layout) {
    buffer_ = Buffer<T>(layout.misaligned + rows * (n + layout.gap) + kAfter);
    std::memset(static_cast<void*>(buffer_.data()), kPoison, static_cast<size_t>(buffer_.count()) * sizeof(T));
  }

  View<T, 2> view() { return {buffer_.data() + layout_.misaligned, {rows_, n_}, {n_ + layout_.gap, 1}}; }
  View<const T, 2> view() const { return {buffer_.data() + layout_.misaligned, {rows_, n_}, {n_ + layout_.gap, 1}}; }
  // the only row as a vector
  View<T, 1> row() { return view()[0]; }
  View<const T, 1> row() const { return view()[0]; }

  T& operator()(int64_t i, int64_t j) { return view()(i, j); }
  const T& operator()(int64_t i, int64_t j) const { return view()(i, j); }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return n_; }

  // normal numbers times `spread` plus `offset`
  Matrix& randomize(RandomStream& random, double spread = 1, double offset = 0) {
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < n_; ++j) (*this)(i, j) = static_cast<T>(random.normal() * spread + offset);
    }
    return *this;
  }
  Matrix& fill(double value) {
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < n_; ++j) (*this)(i, j) = static_cast<T>(value);
    }
    return *this;
  }

  template <class U>
  Matrix<U> as(Layout layout = {}) const {
    Matrix<U> out(rows_, n_, layout);
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < n_; ++j) out(i, j) = static_cast<U>((*this)(i, j));
    }
    return out;
  }

  void expect_surroundings_untouched() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(buffer_.data());
    for (int64_t e = 0; e < buffer_.count(); ++e) {
      const int64_t at = e - layout_.misaligned;
      if (at >= 0 && at < rows_ * (n_ + layout_.gap) && at % (n_ + layout_.gap) < n_) continue;
      for (size_t b = 0; b < sizeof(T); ++b) {
        ASSERT_EQ(bytes[static_cast<size_t>(e) * sizeof(T) + b], kPoison)
            << "element " << at << " outside a (" << rows_ << "," << n_ << ") matrix was written";
      }
    }
  }

 private:
  static constexpr int64_t kAfter = 32;
  int64_t rows_;
  int64_t n_;
  Layout layout_;
  Buffer<T> buffer_;
};

// Runs `body` under each instruction set of this build and processor.
template <class Body>
void on_every_isa(Body body) {
  for (const std::string& isa : supported_isas()) {
    SCOPED_TRACE("instruction set " + isa);
    force_isa(isa);
    body();
  }
  force_isa("");
}

// Runs `body` with 1, 2, 3 and 5 threads.
template <class Body>
void with_every_number_of_threads(Body body) {
  const int before = default_pool().threads();
  for (int threads : {1, 2, 3, 5}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    set_threads(threads);
    body();
  }
  set_threads(before);
}

// |got - wanted| <= tolerance * (1 + |wanted|); NaN equals NaN, an infinity itself.
template <class T>
void expect_close(const char* name, const Matrix<T>& got, const Matrix<double>& wanted, double tolerance) {
  for (int64_t i = 0; i < wanted.rows(); ++i) {
    for (int64_t j = 0; j < wanted.columns(); ++j) {
      const double g = static_cast<double>(got(i, j));
      const double w = wanted(i, j);
      if (g == w || (std::isnan(g) && std::isnan(w))) continue;
      ASSERT_LE(std::abs(g - w), tolerance * (1 + std::abs(w)))
          << name << "(" << i << "," << j << ") of (" << wanted.rows() << "," << wanted.columns() << "): got " << g
          << ", expected " << w;
    }
  }
}

// The same bytes in every element.
template <class T>
void expect_same_bits(const char* name, const View<const T, 2>& got, const View<const T, 2>& wanted) {
  ASSERT_EQ(got.sizes, wanted.sizes) << name;
  for (int64_t i = 0; i < wanted.size(0); ++i) {
    for (int64_t j = 0; j < wanted.size(1); ++j) {
      ASSERT_EQ(std::memcmp(&got(i, j), &wanted(i, j), sizeof(T)), 0)
          << name << "(" << i << "," << j << "): got " << got(i, j) << ", expected " << wanted(i, j);
    }
  }
}

template <class T>
void expect_same_bits(const char* name, const Matrix<T>& got, const Matrix<T>& wanted) {
  expect_same_bits<T>(name, got.view(), wanted.view());
}

// d f / d value by central differences; error about 1e-9 of the third derivative's and rounding's share.
template <class F>
double central_difference(double& value, F f) {
  const double kept = value;
  const double h = 1e-5 * std::max(1.0, std::abs(kept));
  value = kept + h;
  const double above = f();
  value = kept - h;
  const double below = f();
  value = kept;
  return (above - below) / (2 * h);
}

// rounding that a few dozen operations on numbers near 1 gather
template <class T>
constexpr double rounding() {
  return 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
}

}  // namespace headlight::testing_rows
