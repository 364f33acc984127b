#include <gtest/gtest.h>

#include "headlight/kernels/attention.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_truth.h"

namespace headlight {
namespace {

using namespace testing_attention;

template <class T>
void expect_reference(const Case<T>& c) {
  SCOPED_TRACE(c.text);
  const Truth<T> truth = Truth<T>(c).with_gradients();
  run(c);
  c.dq.expect_all_written("dq");
  c.dk.expect_all_written("dk");
  c.dv.expect_all_written("dv");
  c.dbias.expect_all_written("dbias");
  c.dslopes.expect_all_written("dslopes");
  c.dsinks.expect_all_written("dsinks");
  c.d_additive.expect_all_written("d_additive");
  expect_close("dq", c.dq, truth.exact.dq, truth.dq);
  expect_close("dk", c.dk, truth.exact.dk, truth.dk);
  expect_close("dv", c.dv, truth.exact.dv, truth.dv);
  expect_close("dbias", c.dbias, truth.exact.dbias, truth.dbias);
  expect_close("dslopes", c.dslopes, truth.exact.dslopes, truth.dslopes);
  expect_close("dsinks", c.dsinks, truth.exact.dsinks, truth.dsinks);
  expect_close("d_additive", c.d_additive, truth.exact.d_additive, truth.d_additive);
}

TEST(AttentionBackward, MatchesTheReferenceOverRandomShapesAndPatterns) {
  on_every_isa([] {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      expect_reference(random_case<float>(seed, 500000));
      expect_reference(random_case<double>(seed + 100000, 500000));
      expect_reference(random_case<BFloat16>(seed + 200000, 250000));
      expect_reference(random_case<Float16>(seed + 300000, 250000));
    }
  });
}

// ---- finite differences

double loss(const Case<double>& c) {
  attention_forward(c.forward());
  double sum = 0;
  c.o.each([&](double& x, const auto& at) { sum += x * c.d_o.at(at); });
  return sum;
}

// The gradient of every input element, or of some hundred of them, against central differences.
template <int Rank>
void expect_differences(const std::string& name, const Case<double>& c, const Tensor<double, Rank>& input,
                        const Tensor<double, Rank>& gradient, RandomStream& random) {
  constexpr double kStep = 1e-6;
  const uint64_t every = static_cast<uint64_t>(std::max<int64_t>(1, input.view().count() / 200));
  input.each([&](double& x, const std::array<int64_t, Rank>& at) {
    if (random.below(every) != 0 || std::isinf(x)) return;
    const double before = x;
    x = before + kStep;
    const double above = loss(c);
    x = before - kStep;
    const double below = loss(c);
    x = before;
    const double expected = (above - below) / (2 * kStep), got = gradient.at(at);
    EXPECT_NEAR(got, expected, 1e-5 + 1e-3 * std::abs(expected)) << name << index_text<Rank>(at);
  });
}

TEST(AttentionBackward, MatchesFiniteDifferencesForEveryInput) {
  for (uint64_t seed = 700; seed < 760; ++seed) {
    Case<double> c = random_case<double>(seed, 20000);
    // numbers of order 1: differences lose their digits on others
    RandomStream random(seed, 2, 0);
    for (const auto* x : {&c.q, &c.k, &c.v, &c.d_o}) randomize(*x, random);
    SCOPED_TRACE(c.text);
    run(c);
    expect_differences("dq", c, c.q, c.dq, random);
    expect_differences("dk", c, c.k, c.dk, random);
    expect_differences("dv", c, c.v, c.dv, random);
    if (c.bias.exists()) expect_differences("dbias", c, c.bias, c.dbias, random);
    if (c.slopes.exists()) expect_differences("dslopes", c, c.slopes, c.dslopes, random);
    if (c.sinks.exists()) expect_differences("dsinks", c, c.sinks, c.dsinks, random);
    if (c.additive.exists()) expect_differences("d_additive", c, c.additive, c.d_additive, random);
  }
}

TEST(AttentionBackward, GivesTheFiguresOfTheWorkedExample) {
  // the loss is the second column of the last row's output, causal and scaled
  Case<float> c = worked_case();
  c.scale = 0.70710678f;
  c.right = 0;
  c.d_o.each([](float& x, const auto& at) { x = at[1] == 2 && at[3] == 1 ? 1.0f : 0.0f; });
  run(c);
  EXPECT_NEAR(c.o(0, 2, 0, 1), 2.006980f, 1e-6);
  const float dq[3][2] = {{0, 0}, {0, 0}, {0.001225f, 0.352311f}};
  const float dk[3][2] = {{-0.352311f, -0.352311f}, {-0.001225f, -0.001225f}, {0.353536f, 0.353536f}};
  const float dv[3][2] = {{0, 0.248255f}, {0, 0.248255f}, {0, 0.503490f}};
  for (int i = 0; i < 3; ++i) {
    for (int x = 0; x < 2; ++x) {
      EXPECT_NEAR(c.dq(0, i, 0, x), dq[i][x], 1e-6) << "row " << i << " column " << x;
      EXPECT_NEAR(c.dk(0, i, 0, x), dk[i][x], 1e-6) << "row " << i << " column " << x;
      EXPECT_NEAR(c.dv(0, i, 0, x), dv[i][x], 1e-6) << "row " << i << " column " << x;
    }
  }
}

}  // namespace
}  // namespace headlight
