#pragma once
// The truth of an attention problem, and how far from it a result may be.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/attention_cases.h"
#include "kernels/reference/attention.h"

namespace headlight::testing_attention {

// The true results in float64 of a problem, and for each element the error that a result in T may have.
// u: unit roundoff. A score of magnitude A carries about sqrt(d_k) A of it when errors add up at random, exp
// makes them relative errors of a weight, and the sums over keys add a few more. The allowed error is this
// times the sum of the magnitudes that were added up. Weights below the smallest normal number may be 0.
// The constants are measured: over 2,000 random problems on each instruction set the largest errors of o, dq,
// dk and dv came to 0.8 of what is allowed here.
// Short floats are computed in float and rounded once, when they are stored; the backward reads a rounded o.
template <class T>
struct Truth {
  explicit Truth(const Case<T>& c) : exact(c.template as<double>()), o(exact.o) {
    reference::attention_forward(exact.forward());
    weights = exact.weights();
    reference::attention_rows(exact.rows(weights));
    group = exact.n.Hkv == 0 ? 1 : exact.n.H / exact.n.Hkv;
    factors = Tensor<double, 3>(std::array<int64_t, 3>{exact.n.B, exact.n.H, exact.n.Tq});
    factors.each([&](double& x, const std::array<int64_t, 3>& at) { x = factor(at[0], at[1], at[2]); });
    o.each([&](double& x, const std::array<int64_t, 4>& at) {
      x = 0;
      for (int64_t j = 0; j < exact.n.Tk; ++j) {
        x += weight_error(1, weights(at[0], at[2], at[1], j)) * size(exact.v, at[0], j, at[2], at[3]);
      }
    });
    spread = o;
    o.each([&](double& x, const std::array<int64_t, 4>& at) {
      x = x * factors(at[0], at[2], at[1]) + 4 * double(std::numeric_limits<A>::denorm_min()) +
          storing_error(exact.o.at(at));
    });
  }

  // Also the gradients.
  Truth& with_gradients() {
    reference::attention_backward(exact.backward());
    clear(dq = exact.dq);
    clear(dk = exact.dk);
    clear(dv = exact.dv);
    clear(dbias = exact.dbias);
    clear(dslopes = exact.dslopes);
    clear(dsinks = exact.dsinks);
    clear(d_additive = exact.d_additive);
    for (int64_t b = 0; b < exact.n.B; ++b) {
      for (int64_t h = 0; h < exact.n.H; ++h) {
        for (int64_t i = 0; i < exact.n.Tq; ++i) add_row(b, h, i);
      }
    }
    add_storing_error(dq, exact.dq);
    add_storing_error(dk, exact.dk);
    add_storing_error(dv, exact.dv);
    return *this;
  }

  // A single weight has the errors of two scores and of their difference, which nothing averages: 4 times the
  // error of a row, of which 0.8 was measured.
  Tensor<double, 4> weight_errors() const {
    Tensor<double, 4> out = weights;
    out.each(
        [&](double& x, const std::array<int64_t, 4>& at) { x = weight_error(4 * factors(at[0], at[1], at[2]), x); });
    return out;
  }

  Case<double> exact;
  Tensor<double, 4> weights;
  // allowed errors
  Tensor<double, 4> o, dq, dk, dv, dbias;
  Tensor<double, 1> dslopes, dsinks;
  Tensor<double, 2> d_additive;

 private:
  using A = Accumulator<T>;

  // half a unit of T at x, where T is not what x was computed in
  static double storing_error(double x) {
    if constexpr (std::is_same_v<T, A>) {
      return 0;
    } else {
      constexpr bool kBrain = std::is_same_v<T, BFloat16>;
      return std::max(std::abs(x) * (kBrain ? 0x1p-8 : 0x1p-11), kBrain ? 0x1p-134 : 0x1p-25);
    }
  }
  static void add_storing_error(const Tensor<double, 4>& allowed, const Tensor<double, 4>& gradient) {
    allowed.each([&](double& x, const auto& at) { x += storing_error(gradient.at(at)); });
  }
  double size(const Tensor<double, 4>& kv, int64_t b, int64_t j, int64_t h, int64_t c) const {
    return std::abs(kv(b, j, h / group, c));
  }
  template <int Rank>
  static void clear(const Tensor<double, Rank>& tensor) {
    tensor.each([](double& x, const auto&) { x = 0; });
  }

  // weights below the smallest normal number may be 0
  static double weight_error(double relative, double weight) {
    return weight == 0 ? 0 : relative * weight + 2 * double(std::numeric_limits<A>::min());
  }
  double factor(int64_t b, int64_t h, int64_t i) const {
    // against a result in double the truth errs as much as what is tested
    const double u = std::numeric_limits<A>::epsilon() / 2 * (sizeof(A) == sizeof(double) ? 2 : 1);
    const double tiles = std::ceil(double(exact.n.Tk) / 128);
    // where tanh saturates weights are equal, and the roundings of a chunk's sum go one way
    const double sums = exact.additive.exists() ? std::min(1024.0, double(exact.n.Tk)) / 4 : std::sqrt(tiles);
    return u * (8 + 2 * std::sqrt(std::max(1.0, double(exact.n.K))) * magnitude(b, h, i) + sums);
  }
  // A_i, the largest magnitude that enters a visible score
  double magnitude(int64_t b, int64_t h, int64_t i) const {
    double largest = 0;
    for (int64_t j = 0; j < exact.n.Tk; ++j) {
      if (weights(b, h, i, j) == 0) continue;
      double sum = 0;
      for (int64_t c = 0; c < exact.n.K; ++c) sum += std::abs(exact.scale) * score_term(b, h, i, j, c);
      if (exact.bias.exists()) sum += std::abs(exact.bias.at(broadcast(exact.bias, b, h, i, j)));
      if (exact.slopes.exists()) sum += exact.slopes(h) * distance(b, i, j);
      largest = std::max(largest, sum);
    }
    return largest;
  }
  // The magnitude of what a column adds to a score, and of the derivatives of the score by q and k. tanh errs by two
  // units more than a product, and 1 - tanh^2 is held to be as wrong as 1.
  double score_term(int64_t b, int64_t h, int64_t i, int64_t j, int64_t c) const {
    if (exact.additive.exists()) return 2 * std::abs(exact.additive(h, c));
    return std::abs(exact.q(b, i, h, c)) * size(exact.k, b, j, h, c);
  }
  double by_q(int64_t b, int64_t h, int64_t j, int64_t c) const {
    return exact.additive.exists() ? std::abs(exact.additive(h, c)) : size(exact.k, b, j, h, c);
  }
  double by_k(int64_t b, int64_t h, int64_t i, int64_t c) const {
    return std::abs(exact.additive.exists() ? exact.additive(h, c) : exact.q(b, i, h, c));
  }
  static std::array<int64_t, 4> broadcast(const Tensor<double, 4>& x, int64_t b, int64_t h, int64_t i, int64_t j) {
    std::array<int64_t, 4> at{b, h, i, j};
    for (int d = 0; d < 4; ++d) at[d] = x.sizes()[d] == 1 ? 0 : at[d];
    return at;
  }
  double distance(int64_t b, int64_t i, int64_t j) const {
    const int64_t q_begin = exact.q_begin.exists() ? exact.q_begin(b) : 0;
    const int64_t k_begin = exact.k_begin.exists() ? exact.k_begin(b) : 0;
    return std::abs(double(exact.pos0 + i - q_begin - (j - k_begin)));
  }

  void add_row(int64_t b, int64_t h, int64_t i) {
    const double allowed = factors(b, h, i);
    // D comes from an o whose error is a multiple of P|V|, not of |o|
    double D = 0, D_stored = 0;
    for (int64_t c = 0; c < exact.n.M; ++c) {
      D += std::abs(exact.d_o(b, i, h, c)) * spread(b, i, h, c);
      D_stored += std::abs(exact.d_o(b, i, h, c)) * storing_error(exact.o(b, i, h, c));
    }
    for (int64_t j = 0; j < exact.n.Tk; ++j) {
      const double weight = weights(b, h, i, j);
      if (weight == 0) continue;
      const double error = weight_error(allowed, weight);
      double dP = 0;
      for (int64_t c = 0; c < exact.n.M; ++c) {
        dP += std::abs(exact.d_o(b, i, h, c)) * size(exact.v, b, j, h, c);
        dv(b, j, h / group, c) += error * std::abs(exact.d_o(b, i, h, c));
      }
      const double dS = error * (dP + D) + weight * D_stored, ds = dS * std::abs(exact.scale);
      for (int64_t c = 0; c < exact.n.K; ++c) {
        dq(b, i, h, c) += ds * by_q(b, h, j, c);
        dk(b, j, h / group, c) += ds * by_k(b, h, i, c);
        if (d_additive.exists()) d_additive(h, c) += ds;
      }
      // a single dS, as a single weight
      if (dbias.exists()) dbias.at(broadcast(dbias, b, h, i, j)) += 4 * dS;
      if (dslopes.exists()) dslopes(h) += dS * distance(b, i, j);
    }
    if (dsinks.exists()) {
      const auto& row = exact.statistics(b, h, i);
      const double weight = std::exp(exact.sinks(h) - row.max) / row.sum;
      dsinks(h) += weight_error(allowed, weight) * D + weight * D_stored;
    }
  }

  Tensor<double, 4> spread;   // P |V|
  Tensor<double, 3> factors;  // relative error of a row
  int64_t group = 1;
};

}  // namespace headlight::testing_attention
