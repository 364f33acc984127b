#include "headlight/kernels/bilinear_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "headlight/kernels/matmul.h"
#include "kernels/attention_cases.h"
#include "kernels/reference/bilinear_attention.h"

namespace headlight {
namespace {

using namespace testing_attention;

// An attention problem whose q is the projected query, with what it is projected from.
template <class T>
struct Bilinear {
  Case<T> c;
  Tensor<T, 4> q, dq;
  Tensor<T, 3> w, dw;

  // numbers of order 1 and projections of order 1
  explicit Bilinear(uint64_t seed) : c(random_case<T>(seed, 100000)) {
    RandomStream random(seed, 10, 0);
    const int64_t Kq = pick<int64_t>(random, {0, 1, 3, 8, 17, 32});
    c.q = Tensor<T, 4>(c.q.sizes());
    for (const auto* x : {&c.k, &c.v, &c.d_o}) randomize(*x, random);
    q = random_layout<T>(random, {c.n.B, c.n.Tq, c.n.H, Kq});
    w = Tensor<T, 3>(std::array<int64_t, 3>{c.n.H, Kq, c.n.K});
    randomize(q, random);
    randomize(w, random, Data::kNormal, 1 / std::sqrt(double(std::max<int64_t>(1, Kq))));
    c.dq = c.q;
    dq = Tensor<T, 4>(q.sizes());
    dw = w;
    poison_outputs();
  }
  Bilinear(const Case<T>& other, const Tensor<T, 4>& queries, const Tensor<T, 3>& weights)
      : c(other), q(queries), dq(queries.sizes()), w(weights), dw(weights) {
    c.dq = c.q;
    poison_outputs();
  }
  void poison_outputs() {
    c.poison_outputs();
    for (auto* x : {&c.q, &dq}) x->poison();
    dw.poison();
  }

  BilinearForward<T> forward() const {
    return {.q = q.view(),
            .w = w.view(),
            .k = c.k.view(),
            .v = c.v.view(),
            .projected = c.q.view(),
            .o = c.o.view(),
            .statistics = c.statistics.view(),
            .pattern = c.pattern()};
  }
  BilinearBackward<T> backward() const {
    const AttentionBackward<T> args = c.backward();
    return {.q = q.view(),
            .w = w.view(),
            .k = args.k,
            .v = args.v,
            .projected = args.q,
            .o = args.o,
            .statistics = args.statistics,
            .d_o = args.d_o,
            .d_projected = args.dq,
            .dq = dq.view(),
            .dw = dw.view(),
            .dk = args.dk,
            .dv = args.dv,
            .dbias = args.dbias,
            .dsinks = args.dsinks,
            .dslopes = args.dslopes,
            .d_additive = args.d_additive,
            .pattern = args.pattern};
  }
  void run() const {
    bilinear_attention_forward(forward());
    bilinear_attention_backward(backward());
  }
  Bilinear<double> exact() const { return {c.template as<double>(), q.template as<double>(), w.template as<double>()}; }
};

// Within `relative` of the largest magnitude, or of 1.
template <class T, int Rank>
void expect_near(const std::string& name, const Tensor<T, Rank>& got, const Tensor<double, Rank>& want,
                 double relative) {
  double largest = 1;
  want.each([&](double& x, const auto&) { largest = std::max(largest, std::abs(x)); });
  Tensor<double, Rank> bound = want;
  bound.each([&](double& x, const auto&) { x = relative * largest; });
  got.expect_all_written(name);
  expect_close(name, got, want, bound);
}

template <class T>
void expect_reference(uint64_t seed) {
  const Bilinear<T> b(seed);
  SCOPED_TRACE(b.c.text + " Kq " + std::to_string(b.q.sizes()[3]));
  b.run();
  const Bilinear<double> exact = b.exact();
  reference::bilinear_attention_forward(exact.forward());
  reference::bilinear_attention_backward(exact.backward());
  // scores are of order 10 and carry some 100 units, which are relative errors of the weights
  const double relative = 1000 * std::numeric_limits<T>::epsilon();
  expect_near("projected", b.c.q, exact.c.q, relative);
  expect_near("o", b.c.o, exact.c.o, relative);
  expect_near("dq", b.dq, exact.dq, relative);
  expect_near("dw", b.dw, exact.dw, relative);
  expect_near("dk", b.c.dk, exact.c.dk, relative);
  expect_near("dv", b.c.dv, exact.c.dv, relative);
}

TEST(BilinearAttention, MatchesTheReferenceOverRandomShapesAndPatterns) {
  on_every_isa([] {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      expect_reference<float>(seed);
      expect_reference<double>(seed + 1000);
    }
  });
}

TEST(BilinearAttention, GivesTheFiguresOfOnePair) {
  // q^T W k = 1*2*3 + 1*(-1)*1 = 5 with a key, 0 with none: weights 1 / (1 + exp(-5 * 0.2))
  Case<double> c({1, 1, 2, 1, 1, 2, 1});
  c.k(0, 0, 0, 0) = 3;
  c.k(0, 0, 0, 1) = 1;
  c.v(0, 0, 0, 0) = 1;
  c.scale = 0.2;
  Tensor<double, 4> q(std::array<int64_t, 4>{1, 1, 1, 1});
  Tensor<double, 3> w(std::array<int64_t, 3>{1, 1, 2});
  q(0, 0, 0, 0) = 1;
  w(0, 0, 0) = 2;
  w(0, 0, 1) = -1;
  const Bilinear<double> b(c, q, w);
  bilinear_attention_forward(b.forward());
  EXPECT_NEAR(b.c.o(0, 0, 0, 0), 0.7310585786300049, 1e-12);
}

double loss(const Bilinear<double>& b) {
  bilinear_attention_forward(b.forward());
  double sum = 0;
  b.c.o.each([&](double& x, const auto& at) { sum += x * b.c.d_o.at(at); });
  return sum;
}

template <int Rank>
void expect_differences(const std::string& name, const Bilinear<double>& b, const Tensor<double, Rank>& input,
                        const Tensor<double, Rank>& gradient, RandomStream& random) {
  constexpr double kStep = 1e-6;
  const uint64_t every = static_cast<uint64_t>(std::max<int64_t>(1, input.view().count() / 60));
  input.each([&](double& x, const std::array<int64_t, Rank>& at) {
    if (random.below(every) != 0) return;
    const double before = x;
    x = before + kStep;
    const double above = loss(b);
    x = before - kStep;
    const double below = loss(b);
    x = before;
    const double expected = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient.at(at), expected, 1e-5 + 1e-3 * std::abs(expected)) << name << index_text<Rank>(at);
  });
}

TEST(BilinearAttention, MatchesFiniteDifferencesForEveryInput) {
  for (uint64_t seed = 2000; seed < 2030; ++seed) {
    const Bilinear<double> b(seed);
    SCOPED_TRACE(b.c.text);
    b.run();
    RandomStream random(seed, 11, 0);
    expect_differences("dq", b, b.q, b.dq, random);
    expect_differences("dw", b, b.w, b.dw, random);
    expect_differences("dk", b, b.c.k, b.c.dk, random);
    expect_differences("dv", b, b.c.v, b.c.dv, random);
  }
}

TEST(BilinearAttention, IsAttentionOnProjectedQueriesToTheBit) {
  for (uint64_t seed = 3000; seed < 3020; ++seed) {
    const Bilinear<float> b(seed);
    SCOPED_TRACE(b.c.text);
    b.run();
    Case<float> plain = b.c;
    plain.poison_outputs();
    run(plain);
    expect_same_results(plain, b.c);
  }
}

TEST(BilinearAttention, TakesNothingFromRowsThatSeeNothing) {
  on_every_isa([] {
    Case<float> c({2, 6, 7, 2, 1, 8, 4});
    RandomStream random(1, 12, 0);
    for (const auto* x : {&c.k, &c.v, &c.d_o}) randomize(*x, random);
    // the first rows of both entries see no key, and the last of the second is padding
    c.pos0 = -2;
    c.right = 0;
    c.q_len = Tensor<int64_t, 1>(std::array<int64_t, 1>{2});
    c.q_len(0) = 6;
    c.q_len(1) = 5;
    Tensor<float, 4> q(std::array<int64_t, 4>{2, 6, 2, 5});
    Tensor<float, 3> w(std::array<int64_t, 3>{2, 5, 8});
    randomize(q, random);
    randomize(w, random);
    const auto idle = [](const auto& at) { return at[1] < 2 || (at[0] == 1 && at[1] == 5); };
    const Bilinear<float> clean(c, q, w);
    clean.run();
    q.each([&](float& x, const auto& at) { x = idle(at) ? (at[3] % 2 == 0 ? kNaN<float> : kInf<float>) : x; });
    const Bilinear<float> planted(c, q, w);
    planted.run();
    expect_same_bits("o", planted.c.o, clean.c.o);
    expect_same_bits("dq", planted.dq, clean.dq);
    expect_same_bits("dw", planted.dw, clean.dw);
    expect_same_bits("dk", planted.c.dk, clean.c.dk);
    w(1, 2, 3) = kNaN<float>;
    const Bilinear<float> spoilt(c, q, w);
    spoilt.run();
    spoilt.dq.each([&](float& x, const auto& at) {
      if (idle(at)) {
        EXPECT_EQ(x, 0) << index_text<4>(at);
      } else {
        EXPECT_EQ(std::isnan(x), at[2] == 1) << index_text<4>(at);
      }
    });
  });
}

TEST(BilinearAttention, RefusesWhatDoesNotFitBeforeAnythingIsWritten) {
  const auto expect_refusal = [](const std::string& text, const std::function<void(Bilinear<float>&)>& spoil,
                                 const std::function<void(BilinearBackward<float>&)>& spoil_args) {
    SCOPED_TRACE(text);
    Bilinear<float> b(Case<float>({2, 3, 4, 2, 1, 8, 4}), Tensor<float, 4>(std::array<int64_t, 4>{2, 3, 2, 5}),
                      Tensor<float, 3>(std::array<int64_t, 3>{2, 5, 8}));
    spoil(b);
    BilinearBackward<float> args = b.backward();
    spoil_args(args);
    try {
      bilinear_attention_backward(args);
      ADD_FAILURE() << "expected a refusal";
    } catch (const LogicError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
    const float poison = b.dw(0, 0, 0);
    for (const auto* x : {&b.dq, &b.c.dq, &b.c.dk, &b.c.dv}) {
      x->each([&](float& value, const auto&) { EXPECT_EQ(value, poison); });
    }
  };
  const auto keep = [](auto&) {};
  expect_refusal(
      "bilinear_attention_backward: w (2,4,8); wanted (2,5,8)",
      [](auto& b) {
        b.w = Tensor<float, 3>(std::array<int64_t, 3>{2, 4, 8});
      },
      keep);
  expect_refusal(
      "projected (2,3,2,7); wanted (2,3,2,8)",
      [](auto& b) {
        b.c.q = Tensor<float, 4>(std::array<int64_t, 4>{2, 3, 2, 7});
      },
      keep);
  expect_refusal("dw (2,5,7); wanted (2,5,8)", keep, [](auto& args) { args.dw = args.dw.slice(2, 0, 7); });
  expect_refusal("dq is wanted but there are no d_projected", keep, [](auto& args) { args.d_projected = {}; });
  expect_refusal("dw is wanted but there are no d_projected", keep,
                 [](auto& args) { args.dq = args.d_projected = {}; });
  expect_refusal("d_projected shares memory with projected", keep,
                 [](auto& args) { args.projected = args.d_projected; });
  expect_refusal("dw shares memory with w", keep, [](auto& args) { args.w = args.dw; });
  expect_refusal("unit stride", keep, [](auto& args) { std::swap(args.dw.strides[1], args.dw.strides[2]); });
}

}  // namespace
}  // namespace headlight
