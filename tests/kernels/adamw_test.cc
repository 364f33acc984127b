#include "headlight/kernels/adamw.h"

#include <gtest/gtest.h>

#include "kernels/reference/adamw.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

template <class T>
struct Case {
  explicit Case(int64_t n, Layout layout = {}) : w(1, n, layout), m(1, n, layout), v(1, n, layout), g(1, n, layout) {
    RandomStream random(16, 1, static_cast<uint64_t>(n));
    w.randomize(random);
    m.randomize(random, 0.1);
    v.randomize(random, 0.1);
    for (int64_t i = 0; i < n; ++i) v(0, i) = std::abs(v(0, i));
    g.randomize(random);
  }
  template <class U>
  Case<U> as() const {
    Case<U> out(w.columns());
    out.w = w.template as<U>();
    out.m = m.template as<U>();
    out.v = v.template as<U>();
    out.g = g.template as<U>();
    return out;
  }
  AdamW<T> args(int64_t step = 7) {
    return {.w = w.row(),
            .m = m.row(),
            .v = v.row(),
            .g = g.row(),
            .step = step,
            .rate = 0.01,
            .decay = 0.1,
            .gradient_scale = 0.5};
  }

  Matrix<T> w, m, v, g;
};

template <class T>
void expect_reference(int64_t n, Layout layout, int64_t step) {
  Case<T> got(n, layout);
  Case<double> wanted = got.template as<double>();
  adamw_step(got.args(step));
  reference::adamw_step(wanted.args(step));
  expect_close("w", got.w, wanted.w, rounding<T>());
  expect_close("m", got.m, wanted.m, rounding<T>());
  expect_close("v", got.v, wanted.v, rounding<T>());
  got.w.expect_surroundings_untouched();
  got.m.expect_surroundings_untouched();
  got.v.expect_surroundings_untouched();
}

TEST(AdamWStep, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (int64_t n : awkward_lengths()) {
      for (const Layout& layout : awkward_layouts()) {
        for (int64_t step : {1, 2, 1000}) {
          expect_reference<float>(n, layout, step);
          expect_reference<double>(n, layout, step);
        }
      }
    }
  });
}

TEST(AdamWStep, MovesByTheRateAgainstTheGradientAtTheFirstStep) {
  Case<double> c(2);
  c.w.fill(1);
  c.m.fill(0);
  c.v.fill(0);
  c.g(0, 0) = 1e-3;
  c.g(0, 1) = -40;
  AdamW<double> args = c.args(1);
  args.decay = 0;
  adamw_step(args);
  // the mean over the root of the mean square is the gradient's sign, but for epsilon
  EXPECT_NEAR(c.w(0, 0), 1 - 0.01, 1e-6);
  EXPECT_NEAR(c.w(0, 1), 1 + 0.01, 1e-9);
}

TEST(AdamWStep, KeepsAWeightWithoutGradientAndDecay) {
  Case<float> c(40);
  const Matrix<float> before = c.w.as<float>();
  c.m.fill(0);
  c.v.fill(0);
  c.g.fill(0);
  AdamW<float> args = c.args();
  args.decay = 0;
  adamw_step(args);
  expect_same_bits("w", c.w, before);
}

TEST(AdamWStep, GivesTheSameBitsHoweverTheRunIsSplitAndWithAnyNumberOfThreads) {
  on_every_isa([] {
    constexpr int64_t kCount = 40000;
    Case<float> wanted(kCount);
    adamw_step(wanted.args());
    with_every_number_of_threads([&] {
      Case<float> whole(kCount, {1, 0});
      adamw_step(whole.args());
      expect_same_bits("w", whole.w, wanted.w);
      expect_same_bits("v", whole.v, wanted.v);
    });
    for (int64_t step : {1, 7, 33, 20011}) {
      Case<float> parts(kCount);
      for (int64_t begin = 0; begin < kCount; begin += step) {
        AdamW<float> args = parts.args();
        const int64_t end = std::min(kCount, begin + step);
        args.w = args.w.slice(0, begin, end);
        args.m = args.m.slice(0, begin, end);
        args.v = args.v.slice(0, begin, end);
        args.g = args.g.slice(0, begin, end);
        adamw_step(args);
      }
      expect_same_bits("w", parts.w, wanted.w);
      expect_same_bits("m", parts.m, wanted.m);
      expect_same_bits("v", parts.v, wanted.v);
    }
  });
}

template <class Change>
void expect_refused(Change change) {
  Case<float> c(4);
  AdamW<float> args = c.args();
  const Matrix<float> w = c.w.as<float>();
  change(args, c);
  EXPECT_THROW(adamw_step(args), LogicError);
  expect_same_bits("w", c.w, w);
}

TEST(AdamWStep, RefusesWhatDoesNotFit) {
  Matrix<float> wide(1, 5);
  expect_refused([](auto& args, auto&) { args.step = 0; });
  expect_refused([](auto& args, auto&) { args.beta1 = 1; });
  expect_refused([](auto& args, auto&) { args.beta2 = -0.1; });
  expect_refused([](auto& args, auto&) { args.beta2 = std::nan(""); });
  expect_refused([](auto& args, auto&) { args.epsilon = -1; });
  expect_refused([&](auto& args, auto&) { args.m = wide.row(); });
  expect_refused([&](auto& args, auto&) { args.v = wide.row(); });
  expect_refused([&](auto& args, auto&) { args.g = wide.row(); });
  expect_refused([](auto& args, auto& c) { args.v = c.m.row(); });
  expect_refused([](auto& args, auto& c) { args.g = c.w.row(); });
  expect_refused([](auto& args, auto&) { args.w.strides[0] = 2; });
}

TEST(SumOfSquares, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    std::vector<int64_t> lengths = awkward_lengths();
    lengths.push_back(100001);
    for (int64_t n : lengths) {
      for (const Layout& layout : awkward_layouts()) {
        RandomStream random(17, 1, static_cast<uint64_t>(n));
        Matrix<float> x(1, n, layout);
        Matrix<double> y(1, n, layout);
        x.randomize(random);
        y.randomize(random);
        // double sums of some 100,000 squares: the orders differ by a few hundred roundings at most
        const double x_wanted = reference::sum_of_squares(x.as<double>().row());
        const double y_wanted = reference::sum_of_squares(y.row());
        EXPECT_NEAR(sum_of_squares<float>(x.row()), x_wanted, 1e-13 * (1 + x_wanted)) << n;
        EXPECT_NEAR(sum_of_squares<double>(y.row()), y_wanted, 1e-13 * (1 + y_wanted)) << n;
      }
    }
  });
}

TEST(SumOfSquares, GivesTheSameBitsWithAnyNumberOfThreadsAndAnyAlignment) {
  on_every_isa([] {
    std::vector<double> sums;
    with_every_number_of_threads([&] {
      for (const Layout& layout : awkward_layouts()) {
        RandomStream random(18, 1, 0);
        Matrix<float> x(1, 100001, layout);
        x.randomize(random);
        sums.push_back(sum_of_squares<float>(x.row()));
        EXPECT_EQ(sums.back(), sums.front());
      }
    });
  });
}

TEST(SumOfSquares, TakesSquaresThatOverflowAFloat) {
  Matrix<float> x(1, 20);
  x.fill(1e30);
  EXPECT_NEAR(sum_of_squares<float>(x.row()), 20 * std::pow(static_cast<double>(1e30f), 2), 1e46);
}

}  // namespace
}  // namespace headlight
