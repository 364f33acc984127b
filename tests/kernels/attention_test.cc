#include "headlight/kernels/attention.h"

#include <gtest/gtest.h>

#include "kernels/attention_cases.h"
#include "kernels/attention_truth.h"

namespace headlight {
namespace {

using namespace testing_attention;

template <class T>
void expect_reference(const Case<T>& c) {
  SCOPED_TRACE(c.text);
  const Truth<T> truth(c);
  attention_forward(c.forward());
  c.o.expect_all_written("o");
  c.statistics.expect_all_written("statistics");
  expect_close("o", c.o, truth.exact.o, truth.o);
  const auto weights = c.weights();
  attention_rows(c.rows(weights));
  weights.expect_all_written("weights");
  expect_close("weights", weights, truth.weights, truth.weight_errors());
}

TEST(AttentionForward, MatchesTheReferenceOverRandomShapesAndPatterns) {
  on_every_isa([] {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      expect_reference(random_case<float>(seed, 1000000));
      expect_reference(random_case<double>(seed + 100000, 1000000));
      expect_reference(random_case<BFloat16>(seed + 200000, 500000));
      expect_reference(random_case<Float16>(seed + 300000, 500000));
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

TEST(AttentionForward, GivesTheFiguresOfTheWorkedExample) {
  for (const Worked& worked : kWorked) {
    Case<float> c = worked_case();
    c.scale = worked.scale;
    c.right = worked.right;
    attention_forward(c.forward());
    const Tensor<float, 4> weights = c.weights();
    attention_rows(c.rows(weights));
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j)
        EXPECT_NEAR(weights(0, 0, i, j), worked.weights[i][j], 1e-6) << "row " << i << " key " << j;
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

TEST(AttentionForward, AddsQueriesAndKeysInsideTanh) {
  // scores 2 tanh(1) and 2 tanh(0), so weights 1 / (1 + exp(-1.523188)) and the rest
  Case<float> c({1, 1, 2, 1, 1, 1, 1});
  c.q(0, 0, 0, 0) = 0.5f;
  c.k(0, 0, 0, 0) = 0.5f;
  c.k(0, 1, 0, 0) = -0.5f;
  c.v(0, 0, 0, 0) = 1;
  c.additive = Tensor<float, 2>(std::array<int64_t, 2>{1, 1});
  c.additive(0, 0) = 2;
  attention_forward(c.forward());
  EXPECT_NEAR(c.o(0, 0, 0, 0), 0.821007f, 1e-6);
  EXPECT_NEAR(c.statistics(0, 0, 0).max, 1.523188f, 1e-6);
}

}  // namespace
}  // namespace headlight
