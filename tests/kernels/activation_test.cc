#include "headlight/kernels/activation.h"

#include <gtest/gtest.h>

#include "kernels/reference/activation.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh};

template <class T>
void expect_reference(Activation f, int64_t rows, int64_t n, Layout layout) {
  RandomStream random(6, 1, static_cast<uint64_t>(n));
  Matrix<T> x(rows, n, layout);
  Matrix<T> dy(rows, n, layout);
  Matrix<T> y(rows, n, layout);
  Matrix<T> dx(rows, n, layout);
  x.randomize(random, 3);
  dy.randomize(random);
  const Matrix<double> x_wide = x.template as<double>();
  Matrix<double> y_wanted(rows, n);
  Matrix<double> dx_wanted(rows, n);
  reference::activation_forward(f, x_wide.view(), y_wanted.view());
  reference::activation_backward(f, x_wide.view(), dy.template as<double>().view(), dx_wanted.view());
  activation_forward<T>(f, x.view(), y.view());
  activation_backward<T>(f, x.view(), dy.view(), dx.view());
  expect_close("y", y, y_wanted, rounding<T>());
  expect_close("dx", dx, dx_wanted, rounding<T>());
  y.expect_surroundings_untouched();
  dx.expect_surroundings_untouched();
}

template <class T>
struct Gate {
  Gate(int64_t rows, int64_t n, Layout layout = {})
      : gate(rows, n, layout),
        linear(rows, n, layout),
        y(rows, n, layout),
        dy(rows, n, layout),
        dgate(rows, n, layout),
        dlinear(rows, n, layout) {
    RandomStream random(7, 1, static_cast<uint64_t>(n));
    gate.randomize(random, 3);
    linear.randomize(random);
    dy.randomize(random);
  }
  void forward() { silu_gate_forward<T>(gate.view(), linear.view(), y.view()); }
  void backward() { silu_gate_backward<T>(gate.view(), linear.view(), dy.view(), dgate.view(), dlinear.view()); }

  Matrix<T> gate, linear, y, dy, dgate, dlinear;
};

template <class T>
void expect_gate_reference(int64_t rows, int64_t n, Layout layout) {
  Gate<T> got(rows, n, layout);
  Matrix<double> y(rows, n);
  Matrix<double> dgate(rows, n);
  Matrix<double> dlinear(rows, n);
  const Matrix<double> gate = got.gate.template as<double>();
  const Matrix<double> linear = got.linear.template as<double>();
  reference::silu_gate_forward(gate.view(), linear.view(), y.view());
  reference::silu_gate_backward(gate.view(), linear.view(), got.dy.template as<double>().view(), dgate.view(),
                                dlinear.view());
  got.forward();
  got.backward();
  expect_close("y", got.y, y, rounding<T>());
  expect_close("dgate", got.dgate, dgate, rounding<T>());
  expect_close("dlinear", got.dlinear, dlinear, rounding<T>());
  got.y.expect_surroundings_untouched();
  got.dgate.expect_surroundings_untouched();
  got.dlinear.expect_surroundings_untouched();
}

TEST(Activation, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (Activation f : kActivations) {
      for (int64_t n : awkward_lengths()) {
        for (const Layout& layout : awkward_layouts()) {
          for (int64_t rows : {0, 1, 3}) {
            expect_reference<float>(f, rows, n, layout);
            expect_reference<double>(f, rows, n, layout);
          }
        }
      }
    }
  });
}

TEST(SiluGate, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (int64_t n : awkward_lengths()) {
      for (const Layout& layout : awkward_layouts()) {
        for (int64_t rows : {0, 1, 3}) {
          expect_gate_reference<float>(rows, n, layout);
          expect_gate_reference<double>(rows, n, layout);
        }
      }
    }
  });
}

TEST(ActivationBackward, IsTheDerivativeOfTheForward) {
  RandomStream random(8, 1, 0);
  Matrix<double> x(2, 21);
  Matrix<double> dy(2, 21);
  Matrix<double> dx(2, 21);
  Matrix<double> y(2, 21);
  x.randomize(random, 2);
  dy.fill(1);
  for (Activation f : kActivations) {
    activation_backward<double>(f, x.view(), dy.view(), dx.view());
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 21; ++j) {
        const double difference = central_difference(x(i, j), [&] {
          activation_forward<double>(f, x.view(), y.view());
          return y(i, j);
        });
        EXPECT_NEAR(dx(i, j), difference, 1e-8) << i << "," << j << " at x = " << x(i, j);
      }
    }
  }
}

TEST(SiluGateBackward, IsTheDerivativeOfTheForward) {
  Gate<double> c(2, 21);
  c.backward();
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 21; ++j) {
      const auto loss = [&] {
        c.forward();
        return c.y(i, j) * c.dy(i, j);
      };
      EXPECT_NEAR(c.dgate(i, j), central_difference(c.gate(i, j), loss), 1e-8) << i << "," << j;
      EXPECT_NEAR(c.dlinear(i, j), central_difference(c.linear(i, j), loss), 1e-8) << i << "," << j;
    }
  }
}

TEST(ActivationBackward, GivesReluNoSlopeAtZero) {
  Matrix<float> x(1, 3);
  Matrix<float> dy(1, 3);
  Matrix<float> dx(1, 3);
  x.fill(0);
  x(0, 1) = -0.0f;
  x(0, 2) = std::numeric_limits<float>::denorm_min();
  dy.fill(1);
  activation_backward<float>(Activation::kRelu, x.view(), dy.view(), dx.view());
  EXPECT_EQ(dx(0, 0), 0);
  EXPECT_EQ(dx(0, 1), 0);
  EXPECT_EQ(dx(0, 2), 1);
}

TEST(SiluGate, HasItsLimitsAtInfinityAndKeepsNan) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  on_every_isa([] {
    Gate<float> c(1, 5);
    const double gates[] = {kInfinity, -kInfinity, 1e30, -1e30, std::nan("")};
    const double values[] = {kInfinity, 0, 1e30f, 0, std::nan("")};
    const double slopes[] = {1, 0, 1, 0, std::nan("")};
    Matrix<double> y(1, 5);
    Matrix<double> dgate(1, 5);
    for (int64_t j = 0; j < 5; ++j) {
      c.gate(0, j) = static_cast<float>(gates[j]);
      y(0, j) = values[j];
      dgate(0, j) = slopes[j];
    }
    c.linear.fill(1);
    c.dy.fill(1);
    c.forward();
    c.backward();
    expect_close("y", c.y, y, 0);
    expect_close("dgate", c.dgate, dgate, 0);
    expect_close("dlinear", c.dlinear, y, 0);
  });
}

TEST(Activation, GivesARowTheSameBitsAloneAndInABatchWithAnyNumberOfThreads) {
  on_every_isa([] {
    // wide enough for several tasks
    Gate<float> all(5, 9001, {1, 2});
    Matrix<float> y(5, 9001, {2, 1});
    with_every_number_of_threads([&] {
      all.forward();
      all.backward();
      activation_forward<float>(Activation::kGelu, all.gate.view(), y.view());
      for (int64_t i = 0; i < 5; ++i) {
        Gate<float> one(1, 9001);
        for (int64_t j = 0; j < 9001; ++j) {
          one.gate(0, j) = all.gate(i, j);
          one.linear(0, j) = all.linear(i, j);
          one.dy(0, j) = all.dy(i, j);
        }
        one.forward();
        one.backward();
        expect_same_bits<float>("y", one.y.view(), all.y.view().slice(0, i, i + 1));
        expect_same_bits<float>("dgate", one.dgate.view(), all.dgate.view().slice(0, i, i + 1));
        expect_same_bits<float>("dlinear", one.dlinear.view(), all.dlinear.view().slice(0, i, i + 1));
        activation_forward<float>(Activation::kGelu, one.gate.view(), one.y.view());
        expect_same_bits<float>("gelu", one.y.view(), y.view().slice(0, i, i + 1));
      }
    });
  });
}

TEST(Activation, GivesAnElementTheSameBitsWhereverItStandsInItsRow) {
  on_every_isa([] {
    RandomStream random(9, 1, 0);
    Matrix<float> x(1, 40);
    Matrix<float> y(1, 40);
    x.randomize(random, 2);
    for (Activation f : kActivations) {
      activation_forward<float>(f, x.view(), y.view());
      for (int64_t begin = 0; begin < 40; ++begin) {
        Matrix<float> rest(1, 40 - begin);
        activation_forward<float>(f, x.view().slice(1, begin, 40), rest.view());
        expect_same_bits<float>("y", rest.view(), y.view().slice(1, begin, 40));
      }
    }
  });
}

TEST(Activation, WorksInPlace) {
  Gate<float> apart(3, 50);
  Gate<float> in_place(3, 50);
  apart.forward();
  apart.backward();
  silu_gate_backward<float>(in_place.gate.view(), in_place.linear.view(), in_place.dy.view(), in_place.dy.view(),
                            in_place.dlinear.view());
  expect_same_bits("dgate", in_place.dy, apart.dgate);
  expect_same_bits("dlinear", in_place.dlinear, apart.dlinear);
  in_place.dy = apart.dy.as<float>();
  silu_gate_backward<float>(in_place.gate.view(), in_place.linear.view(), in_place.dy.view(), in_place.dgate.view(),
                            in_place.dy.view());
  expect_same_bits("dlinear", in_place.dy, apart.dlinear);
  silu_gate_forward<float>(in_place.gate.view(), in_place.linear.view(), in_place.gate.view());
  expect_same_bits("y", in_place.gate, apart.y);

  activation_forward<float>(Activation::kGelu, apart.gate.view(), apart.y.view());
  activation_backward<float>(Activation::kGelu, apart.gate.view(), apart.dy.view(), apart.dgate.view());
  activation_backward<float>(Activation::kGelu, apart.gate.view(), apart.dy.view(), apart.dy.view());
  expect_same_bits("dx", apart.dy, apart.dgate);
  activation_forward<float>(Activation::kGelu, apart.gate.view(), apart.gate.view());
  expect_same_bits("y", apart.gate, apart.y);
}

TEST(SiluGate, TakesGateAndLinearSideBySideInOneBuffer) {
  Gate<float> apart(3, 20);
  Matrix<float> both(3, 40);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      both(i, j) = apart.gate(i, j);
      both(i, 20 + j) = apart.linear(i, j);
    }
  }
  apart.backward();
  const View<float, 2> gate = both.view().slice(1, 0, 20);
  const View<float, 2> linear = both.view().slice(1, 20, 40);
  silu_gate_backward<float>(gate, linear, apart.dy.view(), gate, linear);
  expect_same_bits<float>("dgate", gate, apart.dgate.view());
  expect_same_bits<float>("dlinear", linear, apart.dlinear.view());
}

TEST(Activation, RefusesSizesThatDifferAndOutputsThatOverlap) {
  Matrix<float> x(3, 4);
  Matrix<float> wide(3, 5);
  Matrix<float> y(3, 4);
  const auto shifted = [&] { return wide.view().slice(1, 1, 5); };
  const auto left = [&] { return wide.view().slice(1, 0, 4); };
  EXPECT_THROW(activation_forward<float>(Activation::kRelu, x.view(), wide.view()), LogicError);
  EXPECT_THROW(activation_forward<float>(Activation::kRelu, left(), shifted()), LogicError);
  EXPECT_THROW(activation_forward<float>(Activation::kRelu, x.view().swap(0, 1), wide.view()), LogicError);
  EXPECT_THROW(activation_backward<float>(Activation::kRelu, x.view(), wide.view(), y.view()), LogicError);
  EXPECT_THROW(activation_backward<float>(Activation::kRelu, x.view(), left(), shifted()), LogicError);
  EXPECT_THROW(silu_gate_forward<float>(x.view(), wide.view(), y.view()), LogicError);
  EXPECT_THROW(silu_gate_forward<float>(x.view(), left(), shifted()), LogicError);
  EXPECT_THROW(silu_gate_backward<float>(x.view(), x.view(), x.view(), y.view(), y.view()), LogicError);
  EXPECT_THROW(silu_gate_backward<float>(x.view(), x.view(), x.view(), left(), shifted()), LogicError);
  y.expect_surroundings_untouched();
  EXPECT_TRUE(std::isnan(y(0, 0)));
}

}  // namespace
}  // namespace headlight
