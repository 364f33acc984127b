#include "headlight/kernels/rotary.h"

#include <gtest/gtest.h>

#include "kernels/reference/rotary.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

constexpr int64_t kBatch = 2;
constexpr int64_t kLength = 3;
constexpr int64_t kHeads = 2;
constexpr int64_t kPositions = 9;
constexpr RotaryPairs kPairings[] = {RotaryPairs::kHalves, RotaryPairs::kAdjacent};

// One row of the matrices per head; `turned` of its `width` coordinates turn.
template <class T>
struct Case {
  Case(int64_t width, int64_t turned, RotaryPairs layout_of_pairs, Layout layout = {}, int64_t heads = kHeads)
      : pairs(layout_of_pairs),
        h(heads),
        x(kBatch * kLength * heads, width, layout),
        y(kBatch * kLength * heads, width, layout),
        cosine(kPositions, turned / 2, layout),
        sine(kPositions, turned / 2, layout),
        positions(kBatch * kLength) {
    RandomStream random(14, 1, static_cast<uint64_t>(width));
    x.randomize(random);
    for (int64_t p = 0; p < kPositions; ++p) {
      for (int64_t c = 0; c < turned / 2; ++c) {
        const double angle =
            static_cast<double>(p) * std::pow(100.0, -2.0 * static_cast<double>(c) / static_cast<double>(turned));
        cosine(p, c) = static_cast<T>(std::cos(angle));
        sine(p, c) = static_cast<T>(std::sin(angle));
      }
    }
    for (int32_t& p : positions) p = static_cast<int32_t>(random.below(kPositions));
  }

  template <class U>
  View<U, 4> heads_of(const View<U, 2>& rows) {
    const int64_t s = rows.stride(0);
    return {rows.data, {kBatch, kLength, h, rows.size(1)}, {kLength * h * s, h * s, s, 1}};
  }
  Rotary<T> args() {
    return {.x = heads_of<const T>(x.view()),
            .positions = positions.view<2>({kBatch, kLength}),
            .cosine = cosine.view(),
            .sine = sine.view(),
            .y = heads_of<T>(y.view()),
            .pairs = pairs};
  }
  template <class U>
  Case<U> as() const {
    Case<U> out(x.columns(), 2 * cosine.columns(), pairs, {}, h);
    out.x = x.template as<U>();
    out.cosine = cosine.template as<U>();
    out.sine = sine.template as<U>();
    out.positions = positions.clone();
    return out;
  }

  RotaryPairs pairs;
  int64_t h;
  Matrix<T> x, y, cosine, sine;
  Buffer<int32_t> positions;
};

template <class T>
void expect_reference(int64_t width, int64_t turned, RotaryPairs pairs, Layout layout, bool inverse) {
  Case<T> got(width, turned, pairs, layout);
  Case<double> wanted = got.template as<double>();
  Rotary<T> got_args = got.args();
  Rotary<double> wanted_args = wanted.args();
  got_args.inverse = inverse;
  wanted_args.inverse = inverse;
  rotary(got_args);
  reference::rotary(wanted_args);
  SCOPED_TRACE("width " + std::to_string(width) + ", turned " + std::to_string(turned));
  expect_close("y", got.y, wanted.y, rounding<T>());
  got.y.expect_surroundings_untouched();
}

TEST(Rotary, EqualsTheReferenceAtEveryWidthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (RotaryPairs pairs : kPairings) {
      for (const Layout& layout : awkward_layouts()) {
        for (int64_t turned = 0; turned <= 66; turned += 2) {
          for (int64_t rest : {0, 1, 7, 32}) {
            expect_reference<float>(turned + rest, turned, pairs, layout, rest % 2 == 1);
            expect_reference<double>(turned + rest, turned, pairs, layout, rest % 2 == 0);
          }
        }
      }
    }
  });
}

TEST(Rotary, InverseTurnsBack) {
  for (RotaryPairs pairs : kPairings) {
    Case<double> there(10, 8, pairs);
    rotary(there.args());
    Case<double> back(10, 8, pairs);
    back.x = there.y.as<double>();
    Rotary<double> args = back.args();
    args.inverse = true;
    rotary(args);
    expect_close("x", back.y, there.x, 1e-15);
  }
}

TEST(Rotary, InverseIsTheDerivative) {
  for (RotaryPairs pairs : kPairings) {
    Case<double> forward(10, 8, pairs);
    Case<double> backward(10, 8, pairs);
    RandomStream random(15, 1, 0);
    backward.x.randomize(random);  // dy
    Rotary<double> args = backward.args();
    args.inverse = true;
    rotary(args);
    for (int64_t j = 0; j < 10; ++j) {
      const double difference = central_difference(forward.x(3, j), [&] {
        rotary(forward.args());
        double sum = 0;
        for (int64_t l = 0; l < 10; ++l) sum += forward.y(3, l) * backward.x(3, l);
        return sum;
      });
      EXPECT_NEAR(backward.y(3, j), difference, 1e-8) << j;
    }
  }
}

TEST(Rotary, WorksInPlaceAndOnHeadsOfAnyStride) {
  on_every_isa([] {
    for (RotaryPairs pairs : kPairings) {
      for (int64_t turned : {6, 32, 40}) {
        Case<float> apart(44, turned, pairs);
        rotary(apart.args());
        Case<float> in_place(44, turned, pairs);
        Rotary<float> args = in_place.args();
        args.y = in_place.heads_of<float>(in_place.x.view());
        rotary(args);
        expect_same_bits("y", in_place.x, apart.y);
        // one head of several, read and written where it lies
        Case<float> one(44, turned, pairs);
        args = one.args();
        args.x = args.x.slice(2, 1, 2);
        args.y = args.y.slice(2, 1, 2);
        rotary(args);
        expect_same_bits<float>("head 1", one.y.view().slice(0, 1, 2), apart.y.view().slice(0, 1, 2));
        EXPECT_TRUE(std::isnan(one.y(0, 0)));
      }
    }
  });
}

TEST(Rotary, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (RotaryPairs pairs : kPairings) {
    std::vector<Matrix<float>> results;
    with_every_number_of_threads([&] {
      Case<float> c(64, 64, pairs, {}, 150);  // wide enough for several tasks
      rotary(c.args());
      results.push_back(std::move(c.y));
      expect_same_bits("y", results.back(), results.front());
    });
  }
}

template <class Change>
void expect_refused(Change change) {
  Case<float> c(8, 6, RotaryPairs::kHalves);
  Rotary<float> args = c.args();
  change(args, c);
  EXPECT_THROW(rotary(args), LogicError);
  EXPECT_TRUE(std::isnan(c.y(0, 0)));
}

TEST(Rotary, RefusesWhatDoesNotFit) {
  Matrix<float> wide(kPositions, 5);
  expect_refused([](auto&, auto& c) { c.positions[5] = kPositions; });
  expect_refused([](auto&, auto& c) { c.positions[5] = -1; });
  expect_refused([](auto& args, auto&) { args.positions.sizes[1] = 2; });
  expect_refused([&](auto& args, auto&) { args.sine = wide.view(); });
  expect_refused([&](auto& args, auto&) { args.sine = args.cosine = wide.view(); });
  expect_refused([](auto& args, auto&) { args.y.sizes[3] = 7; });
  expect_refused([](auto& args, auto&) { args.x.strides[3] = 2; });
  expect_refused([](auto& args, auto&) { args.x.data = args.y.data + 1; });
}

}  // namespace
}  // namespace headlight
