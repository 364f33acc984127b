#include "headlight/kernels/norm.h"

#include <gtest/gtest.h>

#include "kernels/reference/norm.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

constexpr NormKind kKinds[] = {NormKind::kLayerNorm, NormKind::kRmsNorm};

// All that a forward and a backward read and write, in one layout.
template <class T>
struct Case {
  Case(NormKind norm, int64_t rows, int64_t n, Layout layout = {})
      : kind(norm),
        x(rows, n, layout),
        weight(1, n, layout),
        bias(1, n, layout),
        y(rows, n, layout),
        scale(1, rows),
        mean(1, rows),
        dy(rows, n, layout),
        dx(rows, n, layout),
        dweight(1, n, layout),
        dbias(1, n, layout) {}

  Case& randomize(double offset = 0) {
    RandomStream random(5, 1, static_cast<uint64_t>(x.columns()));
    x.randomize(random, 1, offset);
    weight.randomize(random, 0.3, 1);
    bias.randomize(random);
    dy.randomize(random);
    dx.randomize(random);
    dweight.randomize(random);
    dbias.randomize(random);
    return *this;
  }

  template <class U>
  Case<U> as() const {
    Case<U> out(kind, x.rows(), x.columns());
    out.x = x.template as<U>();
    out.weight = weight.template as<U>();
    out.bias = bias.template as<U>();
    out.dy = dy.template as<U>();
    out.dx = dx.template as<U>();
    out.dweight = dweight.template as<U>();
    out.dbias = dbias.template as<U>();
    return out;
  }

  bool layer_norm() const { return kind == NormKind::kLayerNorm; }

  NormForward<T> forward() {
    NormForward<T> args;
    args.kind = kind;
    args.x = x.view();
    args.weight = weight.row();
    if (layer_norm()) args.bias = bias.row();
    args.y = y.view();
    args.scale = scale.row();
    args.mean = mean.row();
    return args;
  }
  NormBackward<T> backward(bool accumulate) {
    NormBackward<T> args;
    args.kind = kind;
    args.x = x.view();
    args.weight = weight.row();
    args.scale = scale.row();
    args.mean = mean.row();
    args.dy = dy.view();
    args.dx = dx.view();
    args.accumulate = accumulate;
    args.dweight = dweight.row();
    if (layer_norm()) args.dbias = dbias.row();
    return args;
  }

  NormKind kind;
  Matrix<T> x, weight, bias, y, scale, mean, dy, dx, dweight, dbias;
};

template <class T>
void expect_reference(NormKind kind, int64_t rows, int64_t n, Layout layout, bool accumulate) {
  Case<T> got(kind, rows, n, layout);
  got.randomize();
  auto wanted = got.template as<double>();
  norm_forward(got.forward());
  reference::norm_forward(wanted.forward());
  expect_close("y", got.y, wanted.y, rounding<T>());
  expect_close("scale", got.scale, wanted.scale, rounding<T>());
  expect_close("mean", got.mean, wanted.mean, rounding<T>());
  got.y.expect_surroundings_untouched();
  // narrow rows can have a small scale, whose inverse multiplies every error
  double amplified = rounding<T>();
  for (int64_t i = 0; i < rows; ++i) amplified = std::max(amplified, rounding<T>() / std::pow(wanted.scale(0, i), 2));
  norm_backward(got.backward(accumulate));
  reference::norm_backward(wanted.backward(accumulate));
  expect_close("dx", got.dx, wanted.dx, amplified);
  expect_close("dweight", got.dweight, wanted.dweight, amplified);
  expect_close("dbias", got.dbias, wanted.dbias, rounding<T>());
  got.dx.expect_surroundings_untouched();
  got.dweight.expect_surroundings_untouched();
  got.dbias.expect_surroundings_untouched();
}

TEST(Norm, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (NormKind kind : kKinds) {
      for (int64_t n : awkward_lengths()) {
        for (const Layout& layout : awkward_layouts()) {
          for (int64_t rows : {0, 1, 3, n < 40 ? 35 : 2}) {
            SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(n));
            expect_reference<float>(kind, rows, n, layout, n % 2 == 0);
            expect_reference<double>(kind, rows, n, layout, n % 2 == 1);
          }
        }
      }
    }
  });
}

TEST(Norm, WorksWithoutWeightBiasAndStatistics) {
  for (NormKind kind : kKinds) {
    Case<float> got(kind, 3, 21);
    Case<double> wanted = got.randomize().as<double>();
    wanted.weight.fill(1);
    wanted.bias.fill(0);
    reference::norm_forward(wanted.forward());
    norm_forward(NormForward<float>{.kind = kind, .x = got.x.view(), .y = got.y.view()});
    expect_close("y", got.y, wanted.y, rounding<float>());
    norm_forward(got.forward());
    reference::norm_backward(wanted.backward(false));
    NormBackward<float> backward = got.backward(false);
    backward.weight = {};
    backward.dweight = {};
    backward.dbias = {};
    norm_backward(backward);
    expect_close("dx", got.dx, wanted.dx, rounding<float>());
  }
}

TEST(LayerNorm, KeepsItsDigitsFarFromZero) {
  for (double offset : {1e4, -1e6}) {
    Case<float> got(NormKind::kLayerNorm, 9, 384);
    Case<double> wanted = got.randomize(offset).as<double>();
    norm_forward(got.forward());
    reference::norm_forward(wanted.forward());
    // x itself is exact in both: what is left are roundings of numbers of unit size
    expect_close("y", got.y, wanted.y, rounding<float>());
    expect_close("scale", got.scale, wanted.scale, rounding<float>());
    expect_close("mean", got.mean, wanted.mean, rounding<float>());
    norm_backward(got.backward(false));
    reference::norm_backward(wanted.backward(false));
    expect_close("dx", got.dx, wanted.dx, rounding<float>());
    expect_close("dweight", got.dweight, wanted.dweight, rounding<float>());
  }
}

TEST(LayerNorm, GivesTheBiasForARowOfEqualNumbers) {
  Case<float> c(NormKind::kLayerNorm, 2, 37);
  c.randomize();
  c.x.fill(12345.678);
  norm_forward(c.forward());
  for (int64_t j = 0; j < 37; ++j) EXPECT_NEAR(c.y(1, j), c.bias(0, j), 1e-3) << j;
}

TEST(Norm, KeepsABadRowToItself) {
  for (NormKind kind : kKinds) {
    Case<float> c(kind, 3, 40);
    c.randomize();
    norm_forward(c.forward());
    const Matrix<float> clean = c.y.as<float>();
    c.x(1, 39) = std::numeric_limits<float>::quiet_NaN();
    norm_forward(c.forward());
    for (int64_t j = 0; j < 40; ++j) {
      EXPECT_EQ(c.y(0, j), clean(0, j)) << j;
      EXPECT_TRUE(std::isnan(c.y(1, j))) << j;
      EXPECT_EQ(c.y(2, j), clean(2, j)) << j;
    }
  }
}

// sum of y dy, the loss whose gradients the backward gives
double loss(Case<double>& c) {
  norm_forward(c.forward());
  double sum = 0;
  for (int64_t i = 0; i < c.y.rows(); ++i) {
    for (int64_t j = 0; j < c.y.columns(); ++j) sum += c.y(i, j) * c.dy(i, j);
  }
  return sum;
}

TEST(NormBackward, IsTheDerivativeOfTheForward) {
  for (NormKind kind : kKinds) {
    for (int64_t n : {1, 2, 3, 7, 19}) {
      Case<double> c(kind, 4, n);
      c.randomize();
      c.dweight.fill(0);
      c.dbias.fill(0);
      norm_forward(c.forward());
      norm_backward(c.backward(false));
      const auto difference = [&](double& value) { return central_difference(value, [&] { return loss(c); }); };
      for (int64_t j = 0; j < n; ++j) {
        // 1e-6: truncation of the differences where the scale is small
        for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(c.dx(i, j), difference(c.x(i, j)), 1e-6) << "dx " << i << "," << j;
        EXPECT_NEAR(c.dweight(0, j), difference(c.weight(0, j)), 1e-6) << "dweight " << j;
        if (!c.layer_norm()) continue;
        EXPECT_NEAR(c.dbias(0, j), difference(c.bias(0, j)), 1e-6) << "dbias " << j;
      }
    }
  }
}

TEST(Norm, GivesTheSameBitsWithAnyNumberOfThreads) {
  on_every_isa([] {
    for (NormKind kind : kKinds) {
      std::vector<Case<float>> results;
      with_every_number_of_threads([&] {
        // 2,100 rows: more blocks than are summed at once
        Case<float> c(kind, 2100, 65);
        c.randomize();
        norm_forward(c.forward());
        norm_backward(c.backward(false));
        results.push_back(std::move(c));
        const Case<float>& first = results.front();
        expect_same_bits("y", results.back().y, first.y);
        expect_same_bits("dx", results.back().dx, first.dx);
        expect_same_bits("dweight", results.back().dweight, first.dweight);
        expect_same_bits("dbias", results.back().dbias, first.dbias);
      });
    }
  });
}

TEST(Norm, GivesARowTheSameBitsAloneAndInABatch) {
  on_every_isa([] {
    for (NormKind kind : kKinds) {
      for (int64_t n : {5, 65, 100}) {
        Case<float> all(kind, 4, n, {1, 2});
        all.randomize();
        norm_forward(all.forward());
        norm_backward(all.backward(false));
        for (int64_t i = 0; i < 4; ++i) {
          Case<float> one(kind, 1, n, {2, 0});
          one.randomize();
          for (int64_t j = 0; j < n; ++j) {
            one.x(0, j) = all.x(i, j);
            one.dy(0, j) = all.dy(i, j);
            one.weight(0, j) = all.weight(0, j);
            one.bias(0, j) = all.bias(0, j);
          }
          norm_forward(one.forward());
          norm_backward(one.backward(false));
          expect_same_bits<float>("y", one.y.view(), all.y.view().slice(0, i, i + 1));
          expect_same_bits<float>("dx", one.dx.view(), all.dx.view().slice(0, i, i + 1));
        }
      }
    }
  });
}

TEST(Norm, WorksInPlace) {
  for (NormKind kind : kKinds) {
    Case<float> apart(kind, 3, 50);
    Case<float> in_place(kind, 3, 50);
    apart.randomize();
    in_place.randomize();
    norm_forward(apart.forward());
    norm_backward(apart.backward(false));
    norm_forward(in_place.forward());
    NormBackward<float> backward = in_place.backward(false);
    backward.dx = in_place.dy.view();
    norm_backward(backward);
    expect_same_bits("dx", in_place.dy, apart.dx);
    expect_same_bits("dweight", in_place.dweight, apart.dweight);
    NormForward<float> forward = in_place.forward();
    forward.y = in_place.x.view();
    norm_forward(forward);
    expect_same_bits("y", in_place.x, apart.y);
  }
}

template <class Change>
void expect_refused_forward(Change change) {
  Case<float> c(NormKind::kLayerNorm, 3, 4);
  NormForward<float> args = c.forward();
  change(args, c);
  EXPECT_THROW(norm_forward(args), LogicError);
  c.y.expect_surroundings_untouched();
  EXPECT_TRUE(std::isnan(c.y(0, 0)));
}

TEST(NormForward, RefusesWhatDoesNotFit) {
  Matrix<float> wide(3, 5);
  expect_refused_forward([](auto& args, auto&) { args.kind = NormKind::kNone; });
  expect_refused_forward([&](auto& args, auto&) { args.x = wide.view(); });
  expect_refused_forward([&](auto& args, auto&) { args.weight = wide.row(); });
  expect_refused_forward([&](auto& args, auto&) { args.bias = wide.row(); });
  expect_refused_forward([](auto& args, auto&) { args.kind = NormKind::kRmsNorm; });  // with a bias
  expect_refused_forward([](auto& args, auto& c) { args.scale = c.bias.row(); });
  expect_refused_forward([](auto& args, auto&) { args.x.strides[1] = 2; });
  expect_refused_forward([](auto& args, auto&) { args.y.strides[0] = 3; });
  expect_refused_forward([](auto& args, auto& c) { args.x.data = c.y.view().data + 1; });
}

template <class Change>
void expect_refused_backward(Change change) {
  Case<float> c(NormKind::kLayerNorm, 3, 4);
  NormBackward<float> args = c.backward(false);
  change(args, c);
  EXPECT_THROW(norm_backward(args), LogicError);
  EXPECT_TRUE(std::isnan(c.dx(0, 0)));
  EXPECT_TRUE(std::isnan(c.dweight(0, 0)));
}

TEST(NormBackward, RefusesWhatDoesNotFit) {
  Matrix<float> wide(3, 5);
  expect_refused_backward([](auto& args, auto&) { args.kind = NormKind::kNone; });
  expect_refused_backward([&](auto& args, auto&) { args.dy = wide.view(); });
  expect_refused_backward([](auto& args, auto&) { args.mean = {}; });
  expect_refused_backward([](auto& args, auto&) { args.scale = {}; });
  expect_refused_backward([&](auto& args, auto&) { args.dweight = wide.row(); });
  expect_refused_backward([](auto& args, auto&) { args.kind = NormKind::kRmsNorm; });  // with a dbias
  expect_refused_backward([](auto& args, auto& c) {
    args.accumulate = true;
    args.dx = c.dy.view();
  });
}

}  // namespace
}  // namespace headlight
