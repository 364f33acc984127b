#include "headlight/kernels/softmax.h"

#include <gtest/gtest.h>

#include "kernels/reference/softmax.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
void expect_reference(int64_t rows, int64_t n, Layout layout, double spread) {
  RandomStream random(10, 1, static_cast<uint64_t>(n));
  Matrix<T> x(rows, n, layout);
  Matrix<T> p(rows, n, layout);
  Matrix<T> dp(rows, n, layout);
  Matrix<T> dx(rows, n, layout);
  x.randomize(random, spread, 100);
  dp.randomize(random);
  Matrix<double> p_wanted(rows, n);
  Matrix<double> dx_wanted(rows, n);
  reference::softmax_forward(x.template as<double>().view(), p_wanted.view());
  reference::softmax_backward(p_wanted.view(), dp.template as<double>().view(), dx_wanted.view());
  softmax_forward<T>(x.view(), p.view());
  softmax_backward<T>(p.view(), dp.view(), dx.view());
  expect_close("p", p, p_wanted, rounding<T>());
  expect_close("dx", dx, dx_wanted, rounding<T>());
  p.expect_surroundings_untouched();
  dx.expect_surroundings_untouched();
}

TEST(Softmax, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    std::vector<int64_t> lengths = awkward_lengths();
    lengths.push_back(5000);
    for (int64_t n : lengths) {
      for (const Layout& layout : awkward_layouts()) {
        for (int64_t rows : {0, 1, 3}) {
          for (double spread : {1.0, 50.0}) {
            expect_reference<float>(rows, n, layout, spread);
            expect_reference<double>(rows, n, layout, spread);
          }
        }
      }
    }
  });
}

TEST(Softmax, GivesWhatItsHeaderSaysForSpecialRows) {
  // each row of three, at every position and length: a special value among numbers or among -inf
  struct Special {
    double others;
    double value;
    double others_weight;
    double value_weight;
  };
  const double nan = std::nan("");
  const Special specials[] = {{-kInfinity, -kInfinity, 0, 0},
                              {-kInfinity, 3, 0, 1},
                              {1, kInfinity, nan, nan},
                              {1, nan, nan, nan},
                              {-kInfinity, nan, nan, nan},
                              {nan, 5, nan, nan},
                              {-1e30, 1e30, 0, 1},
                              {-kInfinity, kInfinity, nan, nan}};
  on_every_isa([&] {
    for (const Special& special : specials) {
      for (int64_t n = 2; n <= 67; ++n) {
        for (int64_t at = 0; at < n; ++at) {
          Matrix<float> x(1, n);
          Matrix<float> p(1, n);
          x.fill(special.others);
          x(0, at) = static_cast<float>(special.value);
          softmax_forward<float>(x.view(), p.view());
          Matrix<double> wanted(1, n);
          wanted.fill(special.others_weight);
          wanted(0, at) = special.value_weight;
          SCOPED_TRACE(std::to_string(special.value) + " at " + std::to_string(at) + " among " +
                       std::to_string(special.others));
          expect_close("p", p, wanted, 0);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  });
}

TEST(Softmax, KeepsItsDigitsOverLongRows) {
  on_every_isa([] {
    constexpr int64_t kLong = 50000;
    Matrix<float> x(1, kLong);
    Matrix<float> p(1, kLong);
    // equal terms: the roundings of a long sum would all point the same way
    for (double below : {0.3, 1.0, 1.7}) {
      x.fill(-below);
      x(0, 0) = 0;
      softmax_forward<float>(x.view(), p.view());
      const double e = std::exp(-static_cast<double>(static_cast<float>(below)));
      const double wanted = e / (1 + e * static_cast<double>(kLong - 1));
      // the longest chain, 64 additions of a piece on 16 sums, of half a place each
      EXPECT_NEAR(p(0, 1) / wanted, 1, 32 * 6e-8);
    }
  });
}

TEST(SoftmaxBackward, IsTheDerivativeOfTheForward) {
  RandomStream random(11, 1, 0);
  Matrix<double> x(2, 9);
  Matrix<double> p(2, 9);
  Matrix<double> dp(2, 9);
  Matrix<double> dx(2, 9);
  x.randomize(random, 2);
  dp.randomize(random);
  softmax_forward<double>(x.view(), p.view());
  softmax_backward<double>(p.view(), dp.view(), dx.view());
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 9; ++j) {
      const double difference = central_difference(x(i, j), [&] {
        softmax_forward<double>(x.view(), p.view());
        double sum = 0;
        for (int64_t l = 0; l < 9; ++l) sum += p(i, l) * dp(i, l);
        return sum;
      });
      EXPECT_NEAR(dx(i, j), difference, 1e-8) << i << "," << j;
    }
  }
}

TEST(Softmax, GivesARowTheSameBitsAloneAndInABatchInPlaceWithAnyNumberOfThreads) {
  on_every_isa([] {
    RandomStream random(12, 1, 0);
    Matrix<float> x(5, 9001, {1, 2});
    Matrix<float> dp(5, 9001, {1, 2});
    x.randomize(random);
    dp.randomize(random);
    with_every_number_of_threads([&] {
      Matrix<float> p(5, 9001, {2, 1});
      Matrix<float> dx(5, 9001, {2, 1});
      softmax_forward<float>(x.view(), p.view());
      softmax_backward<float>(p.view(), dp.view(), dx.view());
      for (int64_t i = 0; i < 5; ++i) {
        Matrix<float> one(1, 9001);
        Matrix<float> gradient(1, 9001);
        for (int64_t j = 0; j < 9001; ++j) {
          one(0, j) = x(i, j);
          gradient(0, j) = dp(i, j);
        }
        softmax_forward<float>(one.view(), one.view());
        softmax_backward<float>(one.view(), gradient.view(), gradient.view());
        expect_same_bits<float>("p", one.view(), p.view().slice(0, i, i + 1));
        expect_same_bits<float>("dx", gradient.view(), dx.view().slice(0, i, i + 1));
      }
    });
  });
}

TEST(Softmax, RefusesSizesThatDifferAndOutputsThatOverlap) {
  Matrix<float> x(3, 4);
  Matrix<float> wide(3, 5);
  Matrix<float> y(3, 4);
  const auto shifted = [&] { return wide.view().slice(1, 1, 5); };
  const auto left = [&] { return wide.view().slice(1, 0, 4); };
  EXPECT_THROW(softmax_forward<float>(x.view(), wide.view()), LogicError);
  EXPECT_THROW(softmax_forward<float>(left(), shifted()), LogicError);
  EXPECT_THROW(softmax_backward<float>(x.view(), wide.view(), y.view()), LogicError);
  EXPECT_THROW(softmax_backward<float>(x.view(), left(), shifted()), LogicError);
}

}  // namespace
}  // namespace headlight
