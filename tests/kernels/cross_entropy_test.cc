#include "headlight/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include "kernels/reference/cross_entropy.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
struct Case {
  Case(int64_t rows, int64_t n, Layout layout = {})
      : logits(rows, n, layout), targets(rows), loss(1, rows), dlogits(rows, n, layout) {}

  // every fourth target is ignored
  Case& randomize(double spread = 3) {
    RandomStream random(13, 1, static_cast<uint64_t>(logits.columns()));
    logits.randomize(random, spread);
    const int64_t n = logits.columns();
    for (int64_t i = 0; i < targets.count(); ++i) {
      const bool ignored = n == 0 || i % 4 == 3;
      targets[i] = ignored ? kIgnoredTarget : static_cast<int32_t>(random.below(static_cast<uint64_t>(n)));
    }
    return *this;
  }
  template <class U>
  Case<U> as() const {
    Case<U> out(logits.rows(), logits.columns());
    out.logits = logits.template as<U>();
    out.targets = targets.clone();
    return out;
  }
  CrossEntropy<T> args() {
    return {.logits = logits.view(),
            .targets = targets.view<1>({targets.count()}),
            .loss = loss.row(),
            .scale = T(0.25),
            .dlogits = dlogits.view()};
  }

  Matrix<T> logits;
  Buffer<int32_t> targets;
  Matrix<T> loss;
  Matrix<T> dlogits;
};

template <class T>
void expect_reference(int64_t rows, int64_t n, Layout layout) {
  Case<T> got(rows, n, layout);
  Case<double> wanted = got.randomize().template as<double>();
  cross_entropy(got.args());
  reference::cross_entropy(wanted.args());
  expect_close("loss", got.loss, wanted.loss, rounding<T>());
  expect_close("dlogits", got.dlogits, wanted.dlogits, rounding<T>());
  got.dlogits.expect_surroundings_untouched();
  got.loss.expect_surroundings_untouched();
}

TEST(CrossEntropy, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    std::vector<int64_t> lengths = awkward_lengths();
    lengths.push_back(50257);
    for (int64_t n : lengths) {
      for (const Layout& layout : awkward_layouts()) {
        for (int64_t rows : {0, 1, 2, 5}) {
          SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(n));
          expect_reference<float>(rows, n, layout);
          expect_reference<double>(rows, n, layout);
        }
      }
    }
  });
}

TEST(CrossEntropy, KeepsTheDigitsOfSmallLosses) {
  Case<double> c(1, 40);
  c.logits.fill(0);
  c.logits(0, 7) = 20;
  c.targets[0] = 7;
  cross_entropy(c.args());
  // log(1 + 39 exp(-20)); the sum near 1 has an absolute error of one rounding
  EXPECT_NEAR(c.loss(0, 0), std::log1p(39 * std::exp(-20.0)), 1e-15);
}

TEST(CrossEntropy, TakesMinusInfinityAndGivesNanForNan) {
  on_every_isa([] {
    for (int64_t n : {1, 2, 16, 17, 40}) {
      Case<float> c(4, n);
      c.logits.fill(0);
      for (int64_t i = 0; i < 4; ++i) c.targets[i] = static_cast<int32_t>(n - 1);
      // all but the target away, the target away, one NaN, all NaN
      for (int64_t j = 0; j + 1 < n; ++j) c.logits(0, j) = static_cast<float>(-kInfinity);
      c.logits(1, n - 1) = static_cast<float>(-kInfinity);
      c.logits(2, 0) = std::nanf("");
      for (int64_t j = 0; j < n; ++j) c.logits(3, j) = std::nanf("");
      cross_entropy(c.args());
      EXPECT_EQ(c.loss(0, 0), 0) << n;
      EXPECT_EQ(c.dlogits(0, n - 1), 0) << n;
      if (n > 1) {
        EXPECT_EQ(c.loss(0, 1), kInfinity) << n;
        EXPECT_EQ(c.dlogits(1, n - 1), -0.25f) << n;
        EXPECT_NEAR(c.dlogits(1, 0), 0.25 / static_cast<double>(n - 1), 1e-7) << n;
      } else {
        EXPECT_TRUE(std::isnan(c.loss(0, 1))) << "a row of -inf has no distribution";
      }
      EXPECT_TRUE(std::isnan(c.loss(0, 2))) << n;
      EXPECT_TRUE(std::isnan(c.loss(0, 3))) << n;
      for (int64_t j = 0; j < n; ++j) EXPECT_TRUE(std::isnan(c.dlogits(2, j))) << j << " of " << n;
    }
  });
}

TEST(CrossEntropy, GivesZeroForIgnoredTargetsWhateverTheirLogits) {
  Case<float> c(2, 20);
  c.randomize();
  c.targets[1] = kIgnoredTarget;
  c.logits(1, 3) = std::nanf("");
  cross_entropy(c.args());
  EXPECT_EQ(c.loss(0, 1), 0);
  for (int64_t j = 0; j < 20; ++j) EXPECT_EQ(c.dlogits(1, j), 0) << j;
}

TEST(CrossEntropy, GradientIsTheDerivativeOfTheLoss) {
  Case<double> c(3, 11);
  c.randomize();
  cross_entropy(c.args());
  const Matrix<double> gradient = c.dlogits.as<double>();
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 11; ++j) {
      const double difference = central_difference(c.logits(i, j), [&] {
        cross_entropy(c.args());
        return 0.25 * (c.loss(0, 0) + c.loss(0, 1) + c.loss(0, 2));
      });
      EXPECT_NEAR(gradient(i, j), difference, 1e-8) << i << "," << j;
    }
  }
}

TEST(CrossEntropy, GivesARowTheSameBitsAloneAndInABatchInPlaceWithAnyNumberOfThreads) {
  on_every_isa([] {
    Case<float> all(5, 9001, {1, 2});
    all.randomize();
    with_every_number_of_threads([&] {
      cross_entropy(all.args());
      for (int64_t i = 0; i < 5; ++i) {
        Case<float> one(1, 9001);
        for (int64_t j = 0; j < 9001; ++j) one.logits(0, j) = all.logits(i, j);
        one.targets[0] = all.targets[i];
        CrossEntropy<float> args = one.args();
        args.dlogits = {};
        cross_entropy(args);
        EXPECT_EQ(one.loss(0, 0), all.loss(0, i));
        args.dlogits = one.logits.view();
        args.loss = {};
        cross_entropy(args);
        expect_same_bits<float>("dlogits", one.logits.view(), all.dlogits.view().slice(0, i, i + 1));
      }
    });
  });
}

template <class Change>
void expect_refused(Change change) {
  Case<float> c(3, 4);
  c.randomize();
  CrossEntropy<float> args = c.args();
  change(args, c);
  EXPECT_THROW(cross_entropy(args), LogicError);
  EXPECT_TRUE(std::isnan(c.loss(0, 0)));
  EXPECT_TRUE(std::isnan(c.dlogits(0, 0)));
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  Matrix<float> wide(3, 5);
  expect_refused([](auto&, auto& c) { c.targets[2] = 4; });
  expect_refused([](auto&, auto& c) { c.targets[2] = -2; });
  expect_refused([](auto& args, auto&) { args.targets.sizes[0] = 2; });
  expect_refused([&](auto& args, auto&) { args.loss = wide.row(); });
  expect_refused([&](auto& args, auto&) { args.dlogits = wide.view(); });
  expect_refused([](auto& args, auto&) { args.logits.strides[1] = 2; });
  expect_refused([](auto& args, auto& c) { args.dlogits.data = c.logits.view().data + 1; });
}

}  // namespace
}  // namespace headlight
