#include "headlight/kernels/attention.h"

#include <gtest/gtest.h>

#include "kernels/attention_cases.h"

namespace headlight {
namespace {

using namespace testing_attention;

// The true result in float64 of a problem, and how far from it a result in T may be.
template <class T>
struct Truth {
  explicit Truth(const Case<T>& c) : exact(c.template as<double>()), bound(exact.o) {
    reference::attention_forward(exact.forward());
    weights = exact.weights();
    reference::attention_rows(exact.rows(weights));
    bound.each([&](double& x, const std::array<int64_t, 4>& at) { x = factor(at[0], at[2], at[1]) * spread(at); });
  }

  // Unit roundoff times the growth of rounding errors: a score of magnitude A carries sqrt(d_k) A of them
  // when they add up at random, exp makes them relative errors of a weight, and sums of a tile add a few
  // more. Constants as measured, see CalibratesTheErrorBound.
  double factor(int64_t b, int64_t h, int64_t i) const {
    const double u = std::numeric_limits<T>::epsilon() / 2;
    const double tiles = std::ceil(double(exact.n.Tk) / 128);
    return u * (16 + 4 * std::sqrt(double(exact.n.K)) * magnitude(b, h, i) + 2 * std::sqrt(tiles));
  }
  // A_i, the largest magnitude that enters a visible score
  double magnitude(int64_t b, int64_t h, int64_t i) const {
    double largest = 0;
    for (int64_t j = 0; j < exact.n.Tk; ++j) {
      if (weights(b, h, i, j) == 0) continue;
      double sum = 0;
      for (int64_t c = 0; c < exact.n.K; ++c) {
        sum += std::abs(exact.scale * exact.q(b, i, h, c) * exact.k(b, j, h / (exact.n.H / exact.n.Hkv), c));
      }
      if (exact.bias.exists()) {
        const auto& n = exact.bias.sizes();
        sum += std::abs(exact.bias(n[0] == 1 ? 0 : b, n[1] == 1 ? 0 : h, n[2] == 1 ? 0 : i, n[3] == 1 ? 0 : j));
      }
      if (exact.slopes.exists())
        sum += std::abs(exact.slopes(h)) * (std::abs(double(exact.pos0)) + double(exact.n.Tq + exact.n.Tk));
      largest = std::max(largest, sum);
    }
    return largest;
  }
  // (P |V|), for the element of o
  double spread(const std::array<int64_t, 4>& at) const {
    double sum = 0;
    for (int64_t j = 0; j < exact.n.Tk; ++j) {
      const double weight = weights(at[0], at[2], at[1], j);
      if (weight != 0) sum += weight * std::abs(exact.v(at[0], j, at[2] / (exact.n.H / exact.n.Hkv), at[3]));
    }
    return sum;
  }

  Case<double> exact;
  Tensor<double, 4> weights;
  Tensor<double, 4> bound;
};

template <class T>
void expect_reference(const Case<T>& c) {
  SCOPED_TRACE(c.text);
  const Truth<T> truth(c);
  attention_forward(c.forward());
  c.o.expect_all_written("o");
  c.statistics.expect_all_written("statistics");
  expect_close("o", c.o, truth.exact.o, truth.bound);
}

TEST(AttentionForward, MatchesTheReferenceOverRandomShapesAndPatterns) {
  on_every_isa([] {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      expect_reference(random_case<float>(seed));
      expect_reference(random_case<double>(seed + 100000));
    }
  });
}

// The three-token example of the textbooks: Q = K, d_k = d_v = 2. Figures to 6 decimals.
struct Worked {
  int64_t right;  // 0 causal, 2 full
  float scale;
  float weights[3][3];
  float o[3][2];
};

constexpr float kRootHalf = 0.70710678f;
constexpr Worked kWorked[] = {
    {0,
     kRootHalf,
     {{1, 0, 0}, {0.330238f, 0.669762f, 0}, {0.248255f, 0.248255f, 0.503490f}},
     {{1, 0}, {0.330238f, 1.339523f}, {1.758725f, 2.006980f}}},
    {2,
     kRootHalf,
     {{0.401112f, 0.197776f, 0.401112f}, {0.197776f, 0.401112f, 0.401112f}, {0.248255f, 0.248255f, 0.503490f}},
     {{1.604448f, 1.598888f}, {1.401112f, 2.005560f}, {1.758725f, 2.006980f}}},
    {0,
     1,
     {{1, 0, 0}, {0.268941f, 0.731059f, 0}, {0.211942f, 0.211942f, 0.576117f}},
     {{1, 0}, {0.268941f, 1.462117f}, {1.940292f, 2.152234f}}},
    {2,
     1,
     {{0.422319f, 0.155362f, 0.422319f}, {0.155362f, 0.422319f, 0.422319f}, {0.211942f, 0.211942f, 0.576117f}},
     {{1.689275f, 1.577681f}, {1.422319f, 2.111594f}, {1.940292f, 2.152234f}}},
};

Case<float> worked_case() {
  Case<float> c({1, 3, 3, 1, 1, 2, 2});
  const float k[3][2] = {{1, 0}, {0, 1}, {1, 1}}, v[3][2] = {{1, 0}, {0, 2}, {3, 3}};
  for (int i = 0; i < 3; ++i) {
    for (int x = 0; x < 2; ++x) {
      c.q(0, i, 0, x) = c.k(0, i, 0, x) = k[i][x];
      c.v(0, i, 0, x) = v[i][x];
    }
  }
  return c;
}

TEST(AttentionForward, GivesTheFiguresOfTheWorkedExample) {
  for (const Worked& worked : kWorked) {
    Case<float> c = worked_case();
    c.scale = worked.scale;
    c.right = worked.right;
    attention_forward(c.forward());
    for (int i = 0; i < 3; ++i) {
      // half a unit of the sixth decimal, and rounding in float
      for (int x = 0; x < 2; ++x) EXPECT_NEAR(c.o(0, i, 0, x), worked.o[i][x], 1e-6) << "row " << i << " column " << x;
    }
  }
}

TEST(AttentionForward, TendsToTheBestKeyAndToTheMeanAsScoresGrowAndVanish) {
  Case<float> c = worked_case();
  c.scale = 10 * kRootHalf;
  attention_forward(c.forward());
  EXPECT_NEAR(c.o(0, 2, 0, 0), 2.995761f, 1e-6);
  EXPECT_NEAR(c.o(0, 2, 0, 1), 2.996608f, 1e-6);
  c.scale = 0;
  attention_forward(c.forward());
  EXPECT_NEAR(c.o(0, 2, 0, 0), 1.333333f, 1e-6);
  EXPECT_NEAR(c.o(0, 2, 0, 1), 1.666667f, 1e-6);
}

// ---- the same bits

template <class T>
void expect_same_bits_for_any_threads(uint64_t seed) {
  Case<T> c = random_case<T>(seed);
  SCOPED_TRACE(c.text);
  set_threads(1);
  attention_forward(c.forward());
  const Case<T> first = c;
  for (int threads : {2, 3, 5, 8}) {
    set_threads(threads);
    c.poison_outputs();
    attention_forward(c.forward());
    expect_same_bits("o", c.o, first.o);
  }
  set_threads(2);
}

TEST(AttentionForward, GivesTheSameBitsForAnyNumberOfThreads) {
  for (uint64_t seed = 500; seed < 530; ++seed) {
    expect_same_bits_for_any_threads<float>(seed);
    expect_same_bits_for_any_threads<double>(seed);
  }
}

}  // namespace
}  // namespace headlight
