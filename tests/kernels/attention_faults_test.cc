// Kinds of faults that attention kernels in use have had, each over several sizes.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "headlight/kernels/attention.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_truth.h"

namespace headlight {
namespace {

using namespace testing_attention;

constexpr int64_t kLengths[] = {1, 2, 15, 16, 17, 33, 64, 127, 128, 129, 200, 300};

template <class T = float>
Case<T> normal_case(uint64_t seed, const Sizes& n) {
  RandomStream random(seed, 6, 0);
  Case<T> c(n);
  for (const auto* x : {&c.q, &c.k, &c.v, &c.d_o}) randomize(*x, random);
  c.scale = 0.25f;
  return c;
}

template <class T>
void expect_reference(const Case<T>& c) {
  const Truth<T> truth = Truth<T>(c).with_gradients();
  run(c);
  expect_close("o", c.o, truth.exact.o, truth.o);
  expect_close("dq", c.dq, truth.exact.dq, truth.dq);
  expect_close("dk", c.dk, truth.exact.dk, truth.dk);
  expect_close("dv", c.dv, truth.exact.dv, truth.dv);
}

template <class T, int Rank>
void expect_zeros(const std::string& name, const Tensor<T, Rank>& got) {
  got.each([&](T& x, const std::array<int64_t, Rank>& at) { EXPECT_EQ(number(x), 0) << name << index_text<Rank>(at); });
}

// ---- empty rows

template <class T>
void expect_empty(Case<T> c, const std::string& how) {
  SCOPED_TRACE(how);
  c.poison_outputs();
  // what an invisible pair holds is nobody's business
  c.v.each([](T& x, const auto& at) { x = at[1] % 3 == 0 ? stored<T>(kNaN<double>) : x; });
  run(c);
  expect_zeros("o", c.o);
  expect_zeros("dq", c.dq);
  expect_zeros("dk", c.dk);
  expect_zeros("dv", c.dv);
  const auto max = c.sinks.exists() ? c.sinks(0) : -kInf<Accumulator<T>>;
  c.statistics.each([&](auto& x, const auto& at) {
    EXPECT_EQ(x.max, max) << index_text<3>(at);
    EXPECT_EQ(x.sum, c.sinks.exists() ? 1.0f : 0.0f) << index_text<3>(at);
  });
  const auto weights = c.weights();
  attention_rows(c.rows(weights));
  expect_zeros("weights", weights);
  if (c.dbias.exists()) expect_zeros("dbias", c.dbias);
  if (c.dsinks.exists()) expect_zeros("dsinks", c.dsinks);
  if (c.d_additive.exists()) expect_zeros("d_additive", c.d_additive);
}

template <class T>
void expect_empty_rows(int64_t length, bool sink, bool additive = false) {
  Case<T> c = normal_case<T>(1, {2, length, length, 1, 1, 8, 8});
  if (additive) {
    // even where all that is seen would be NaN
    c.additive = Tensor<Accumulator<T>, 2>(std::array<int64_t, 2>{1, 8});
    c.additive.each([](auto& x, const auto& at) { x = at[1] == 3 ? kNaN<float> : 1.0f; });
  }
  if (sink) {
    c.sinks = Tensor<Accumulator<T>, 1>(std::array<int64_t, 1>{1});
    c.sinks(0) = 0.7f;
  }
  SCOPED_TRACE(std::to_string(length) + (sink ? " with a sink" : ""));
  Case<T> masked = c;
  masked.mask = Tensor<uint8_t, 4>(std::array<int64_t, 4>{1, 1, length, length});
  expect_empty(masked, "mask");
  Case<T> biased = c;
  biased.bias = Tensor<Accumulator<T>, 4>(std::array<int64_t, 4>{1, 1, 1, length});
  biased.bias.each([](auto& x, const auto&) { x = -kInf<Accumulator<T>>; });
  expect_empty(biased, "bias");
  Case<T> short_keys = c;
  short_keys.k_len = Tensor<int64_t, 1>(std::array<int64_t, 1>{2});
  expect_empty(short_keys, "k_len");
  Case<T> before = c;
  before.right = 0;
  before.pos0 = -length;
  expect_empty(before, "causal, all keys to come");
  Case<T> behind = c;
  behind.left = 3;
  behind.pos0 = length + 4;
  expect_empty(behind, "window past all keys");
}

TEST(AttentionFaults, RowsThatSeeNothingGiveZeroBothWays) {
  on_every_isa([] {
    for (const int64_t length : kLengths) {
      for (const bool sink : {false, true}) {
        expect_empty_rows<float>(length, sink);
        expect_empty_rows<BFloat16>(length, sink);
        expect_empty_rows<Float16>(length, sink);
        expect_empty_rows<float>(length, sink, true);
      }
    }
  });
}

TEST(AttentionFaults, LeftPaddingUnderACausalMaskGivesZeroRows) {
  // keys are masked on the left, as by a padding mask, and the first rows see none of the others
  for (const int64_t length : kLengths) {
    Case<float> c = normal_case(2, {1, length, length, 2, 2, 8, 8});
    c.right = 0;
    const int64_t padding = (length + 1) / 2;
    c.mask = Tensor<uint8_t, 4>(std::array<int64_t, 4>{1, 1, 1, length});
    c.mask.each([&](uint8_t& x, const auto& at) { x = at[3] >= padding; });
    c.v.each([&](float& x, const auto& at) { x = at[1] < padding ? kNaN<float> : x; });
    run(c);
    c.o.each([&](float& x, const auto& at) {
      EXPECT_TRUE(x == 0 || at[1] >= padding) << index_text<4>(at) << ": got " << x;
      EXPECT_TRUE(std::isfinite(x)) << index_text<4>(at);
    });
    for (const auto* gradient : {&c.dq, &c.dk, &c.dv}) {
      gradient->each([&](float& x, const auto& at) {
        EXPECT_TRUE(x == 0 || at[1] >= padding) << index_text<4>(at) << ": got " << x;
        EXPECT_TRUE(std::isfinite(x)) << index_text<4>(at);
      });
    }
  }
}

TEST(AttentionFaults, FirstTilesThatNoRowSeesAreNoTrouble) {
  for (const int64_t hidden : {127, 128, 129, 256, 300, 1024, 1100}) {
    SCOPED_TRACE(hidden);
    Case<float> c = normal_case(3, {1, 40, hidden + 50, 1, 1, 16, 8});
    c.mask = Tensor<uint8_t, 4>(std::array<int64_t, 4>{1, 1, 1, hidden + 50});
    c.mask.each([&](uint8_t& x, const auto& at) { x = at[3] >= hidden; });
    expect_reference(c);
    Case<float> window = normal_case(4, {1, 40, hidden + 50, 1, 1, 16, 8});
    window.pos0 = hidden;
    window.left = 5;
    expect_reference(window);
  }
}

// ---- numbers at the edges

TEST(AttentionFaults, TheMostNegativeNumberIsAnOrdinaryBias) {
  for (const int64_t length : kLengths) {
    Case<float> c = normal_case(5, {1, 3, length, 1, 1, 8, 4});
    c.bias = Tensor<float, 4>(std::array<int64_t, 4>{1, 1, 3, length});
    c.bias.each([&](float& x, const auto& at) {
      // row 0: all the lowest, so all equal; row 1: one the lowest and no other; row 2: one not the lowest
      const float lowest = std::numeric_limits<float>::lowest();
      x = at[2] == 0 ? lowest : at[2] == 1 ? (at[3] == length - 1 ? lowest : -kInf<float>) : at[3] == 0 ? 0 : lowest;
    });
    attention_forward(c.forward());
    const auto weights = c.weights();
    attention_rows(c.rows(weights));
    for (int64_t j = 0; j < length; ++j) {
      EXPECT_FLOAT_EQ(weights(0, 0, 0, j), 1.0f / static_cast<float>(length)) << "key " << j;
      EXPECT_EQ(weights(0, 0, 1, j), j == length - 1 ? 1.0f : 0.0f) << "key " << j;
      EXPECT_EQ(weights(0, 0, 2, j), j == 0 ? 1.0f : 0.0f) << "key " << j;
    }
  }
}

TEST(AttentionFaults, VeryNegativeScoresKeepTheirWeights) {
  for (const float shift : {-20000.0f, -1e6f, 1e6f}) {
    Case<double> c = normal_case<double>(6, {1, 20, 150, 1, 1, 16, 8});
    c.bias = Tensor<double, 4>(std::array<int64_t, 4>{1, 1, 1, 1});
    c.bias(0, 0, 0, 0) = 0;
    run(c);
    Case<double> shifted = c;
    shifted.bias(0, 0, 0, 0) = shift;
    shifted.poison_outputs();
    run(shifted);
    // a score of 1e6 is rounded to 1e-10
    shifted.o.each([&](double& x, const auto& at) { EXPECT_NEAR(x, c.o.at(at), 1e-8) << index_text<4>(at); });
    shifted.dq.each([&](double& x, const auto& at) { EXPECT_NEAR(x, c.dq.at(at), 1e-8) << index_text<4>(at); });
  }
}

TEST(AttentionFaults, LargeEqualScoresHaveRightGradients) {
  // scores near 1e6: exp(score - log_sum_exp) would be off by percents in float, (max, sum) is not
  for (const int64_t keys : {1, 7, 128, 300, 1500}) {
    Case<float> c = normal_case(7, {1, 5, keys, 1, 1, 4, 8});
    c.scale = 1;
    c.q.each([](float& x, const auto&) { x = 500; });
    c.k.each([](float& x, const auto&) { x = 500; });
    expect_reference(c);
    c.dv.each([&](float& x, const auto& at) {
      float sum = 0;
      for (int64_t i = 0; i < 5; ++i) sum += c.d_o(0, i, 0, at[3]) / static_cast<float>(keys);
      EXPECT_NEAR(x, sum, 1e-6) << index_text<4>(at);
    });
  }
}

template <class T>
void expect_long_sums(double tolerance) {
  Case<T> c = normal_case<T>(8, {1, 2, 70000, 1, 1, 1, 1});
  c.q.each([](T& x, const auto&) { x = T{}; });
  c.v.each([](T& x, const auto&) { x = stored<T>(30000); });
  attention_forward(c.forward());
  c.o.each([&](T& x, const auto&) { EXPECT_NEAR(number(x), 30000, tolerance); });
  c.statistics.each([](auto& x, const auto&) { EXPECT_EQ(x.sum, 70000.0f); });
}

TEST(AttentionFaults, LongSumsDoNotOverflowOrDrift) {
  // sums of 1,024 keys are added in order: their rounding stays within 70 additions of 2^-24
  expect_long_sums<float>(30000 * 70 * 6e-8);
  // 30,000 is a multiple of the units of neither short float: half a unit of 16, and of 128
  expect_long_sums<Float16>(8);
  expect_long_sums<BFloat16>(64);
}

// Scores, sums over keys and sums over rows far above 65,504, all with small results.
template <class T>
void expect_small_results_of_large_sums(int64_t keys) {
  Case<T> c = normal_case<T>(19, {1, 40, keys, 1, 1, 64, 8});
  c.scale = 1 / 2.56e6f;
  const auto sign = [](int64_t i) { return i % 2 == 0 ? 1.0 : -1.0; };
  c.q.each([&](T& x, const auto&) { x = stored<T>(200 + number(x)); });
  c.k.each([&](T& x, const auto&) { x = stored<T>(200 + number(x)); });
  c.v.each([&](T& x, const auto& at) { x = stored<T>(sign(at[1]) * 30000 + number(x)); });
  c.d_o.each([&](T& x, const auto& at) { x = stored<T>(sign(at[3]) * 1000 + number(x)); });
  SCOPED_TRACE(keys);
  expect_reference(c);
  // an even number of keys: values cancel but for what weights differ by
  c.o.each([](T& x, const auto& at) { EXPECT_LE(std::abs(number(x)), 1000) << index_text<4>(at); });
}

TEST(AttentionFaults, LongContextsOfShortFloatsDoNotOverflowInside) {
  on_every_isa([] {
    for (const int64_t keys : {128, 1030}) {
      expect_small_results_of_large_sums<Float16>(keys);
      expect_small_results_of_large_sums<BFloat16>(keys);
    }
  });
}

// ---- NaN and infinity

// Hides keys from rows in one of several ways. Says which pairs see each other.
template <class T>
struct Hiding {
  const char* name;
  void (*apply)(Case<T>&);
};
template <class T>
const Hiding<T> kHidings[] = {
    {"causal", [](Case<T>& c) { c.right = 0; }},
    {"window", [](Case<T>& c) { c.left = 2, c.right = 1; }},
    {"lengths",
     [](Case<T>& c) {
       c.k_len = Tensor<int64_t, 1>(std::array<int64_t, 1>{c.n.B});
       c.k_len.each([&](int64_t& x, const auto&) { x = c.n.Tk / 2; });
     }},
    {"mask",
     [](Case<T>& c) {
       c.mask = Tensor<uint8_t, 4>(std::array<int64_t, 4>{1, 1, c.n.Tq, c.n.Tk});
       c.mask.each([](uint8_t& x, const auto& at) { x = (at[2] + at[3]) % 3 != 0; });
     }},
    {"bias",
     [](Case<T>& c) {
       c.bias = Tensor<Accumulator<T>, 4>(std::array<int64_t, 4>{1, 1, c.n.Tq, c.n.Tk});
       c.bias.each([](auto& x, const auto& at) { x = (at[2] + at[3]) % 3 == 0 ? -kInf<Accumulator<T>> : 0.5f; });
     }},
    {"soft cap and causal", [](Case<T>& c) { c.right = 0, c.soft_cap = 2.0f; }},
    {"causal, additive scores",
     [](Case<T>& c) {
       c.right = 0;
       c.additive = Tensor<Accumulator<T>, 2>(std::array<int64_t, 2>{c.n.H, c.n.K});
       c.additive.each([](auto& x, const auto& at) { x = at[1] % 2 == 0 ? 0.75f : -0.5f; });
     }},
};

// Plants `value` into one row of `tensor`: rows that don't see the key, or keys that the row doesn't see, keep
// the bits they have with 0 there, forwards and backwards, and those that do see it become NaN or infinite.
template <class T>
void expect_local(const Hiding<T>& hiding, int64_t length, Tensor<T, 4> Case<T>::*tensor, int64_t row, float value) {
  SCOPED_TRACE(std::string(hiding.name) + ", length " + std::to_string(length) + ", " + std::to_string(value) +
               " in row " + std::to_string(row));
  Case<T> clean = normal_case<T>(9, {1, length, length, 1, 1, 5, 3});
  hiding.apply(clean);
  for (int64_t c = 0; c < (clean.*tensor).sizes()[3]; ++c) (clean.*tensor)(0, row, 0, c) = T{};
  clean.poison_outputs();
  Case<T> planted = clean;
  for (int64_t c = 0; c < (clean.*tensor).sizes()[3]; ++c) (planted.*tensor)(0, row, 0, c) = narrow<T>(value);
  planted.poison_outputs();
  run(clean);
  run(planted);
  // who sees whom, from the clean problem: every visible weight is positive there
  const auto weights = clean.weights();
  attention_rows(clean.rows(weights));
  const bool key_row = tensor == &Case<T>::k || tensor == &Case<T>::v;
  for (int64_t i = 0; i < length; ++i) {
    const bool touched = key_row ? weights(0, 0, i, row) > 0 : i == row;
    const auto sees = [&](int64_t j) { return weights(0, 0, i, j) > 0; };
    bool sees_any = false;
    for (int64_t j = 0; j < length; ++j) sees_any = sees_any || sees(j);
    if (!touched || !sees_any) {
      for (int64_t c = 0; c < 3; ++c) EXPECT_TRUE(same_bits(planted.o(0, i, 0, c), clean.o(0, i, 0, c))) << "row " << i;
      for (int64_t c = 0; c < 5; ++c)
        EXPECT_TRUE(same_bits(planted.dq(0, i, 0, c), clean.dq(0, i, 0, c))) << "row " << i;
    } else if (std::isnan(value) && tensor != &Case<T>::d_o) {
      for (int64_t c = 0; c < 3; ++c) EXPECT_TRUE(std::isnan(number(planted.o(0, i, 0, c)))) << "row " << i;
      for (int64_t c = 0; c < 5; ++c) EXPECT_TRUE(std::isnan(number(planted.dq(0, i, 0, c)))) << "row " << i;
    }
  }
  // keys that no touched row sees keep their gradients
  for (int64_t j = 0; j < length; ++j) {
    bool reached = false;
    for (int64_t i = 0; i < length; ++i) {
      const bool touched = key_row ? weights(0, 0, i, row) > 0 : i == row;
      reached = reached || (touched && weights(0, 0, i, j) > 0);
    }
    if (reached) continue;
    for (int64_t c = 0; c < 5; ++c) EXPECT_TRUE(same_bits(planted.dk(0, j, 0, c), clean.dk(0, j, 0, c))) << "key " << j;
    for (int64_t c = 0; c < 3; ++c) EXPECT_TRUE(same_bits(planted.dv(0, j, 0, c), clean.dv(0, j, 0, c))) << "key " << j;
  }
}

template <class T>
void expect_local_numbers(const std::vector<int64_t>& lengths) {
  for (const Hiding<T>& hiding : kHidings<T>) {
    for (const int64_t length : lengths) {
      for (const float value : {kNaN<float>, kInf<float>, -kInf<float>}) {
        for (auto tensor : {&Case<T>::q, &Case<T>::k, &Case<T>::v, &Case<T>::d_o}) {
          expect_local(hiding, length, tensor, length - 1, value);
          expect_local(hiding, length, tensor, length / 2, value);
        }
      }
    }
  }
}

TEST(AttentionFaults, NonFiniteNumbersReachOnlyThoseWhoSeeThem) {
  on_every_isa([] {
    expect_local_numbers<float>({2, 17, 40, 140});
    expect_local_numbers<BFloat16>({2, 40, 140});
    expect_local_numbers<Float16>({17, 40, 140});
  });
}

TEST(AttentionFaults, AVisibleInfiniteScoreMakesItsRowNaN) {
  for (const int64_t length : kLengths) {
    Case<float> c = normal_case(10, {1, length, length, 1, 1, 4, 4});
    c.bias = Tensor<float, 4>(std::array<int64_t, 4>{1, 1, length, length});
    c.bias(0, 0, length / 2, length - 1) = kInf<float>;
    attention_forward(c.forward());
    c.o.each([&](float& x, const auto& at) { EXPECT_EQ(std::isnan(x), at[1] == length / 2) << index_text<4>(at); });
  }
}

TEST(AttentionFaults, ANaNInTheBiasIsNotAMask) {
  on_every_isa([] {
    for (const int64_t length : kLengths) {
      for (const int64_t rows : {length, int64_t{1}}) {
        Case<float> c = normal_case(21, {1, rows, length, 1, 1, 4, 4});
        // the last row sees all keys but the first, in a tile that is seen in part
        c.pos0 = length - rows;
        c.right = 0;
        c.bias = Tensor<float, 4>(std::array<int64_t, 4>{1, 1, rows, length});
        c.bias.each([](float& x, const auto& at) { x = at[3] == 0 ? -kInf<float> : 0; });
        c.bias(0, 0, rows - 1, length - 1) = kNaN<float>;
        run(c);
        c.o.each([&](float& x, const auto& at) {
          EXPECT_EQ(std::isnan(x), at[1] == rows - 1) << length << " keys, " << rows << " rows" << index_text<4>(at);
        });
        c.dq.each([&](float& x, const auto& at) { EXPECT_EQ(std::isnan(x), at[1] == rows - 1) << index_text<4>(at); });
        const auto weights = c.weights();
        attention_rows(c.rows(weights));
        EXPECT_TRUE(std::isnan(weights(0, 0, rows - 1, length - 1))) << length << " keys, " << rows << " rows";
      }
    }
  });
}

// ---- positions

int64_t keys_seen(const Case<float>& c, int64_t row) {
  attention_forward(c.forward());
  const auto weights = c.weights();
  attention_rows(c.rows(weights));
  int64_t count = 0;
  for (int64_t j = 0; j < c.n.Tk; ++j) count += weights(0, 0, row, j) > 0;
  return count;
}

TEST(AttentionFaults, AlignmentIsWhatPos0Says) {
  for (const int64_t Tq : {1, 5, 40, 130}) {
    for (const int64_t Tk : {1, 5, 40, 130, 200}) {
      Case<float> c = normal_case(11, {1, Tq, Tk, 1, 1, 4, 4});
      c.right = 0;
      for (const int64_t pos0 : {int64_t{0}, Tk - Tq, int64_t{3}}) {
        c.pos0 = pos0;
        for (const int64_t row : {int64_t{0}, Tq / 2, Tq - 1}) {
          EXPECT_EQ(keys_seen(c, row), std::clamp<int64_t>(pos0 + row + 1, 0, Tk))
              << Tq << " queries, " << Tk << " keys, pos0 " << pos0 << ", row " << row;
        }
      }
    }
  }
}

TEST(AttentionFaults, AWindowOfWKeysHasWKeys) {
  Case<float> c = normal_case(12, {1, 200, 200, 1, 1, 4, 4});
  c.right = 0;
  for (const int64_t window : {1, 2, 16, 33, 128, 129}) {
    c.left = window - 1;
    for (const int64_t row : {0, 1, 15, 16, 17, 100, 127, 128, 199}) {
      EXPECT_EQ(keys_seen(c, row), std::min(window, row + 1)) << "window " << window << ", row " << row;
    }
  }
  c.right = 2;
  c.left = 1;
  EXPECT_EQ(keys_seen(c, 100), 4);
  EXPECT_EQ(keys_seen(c, 199), 2);
  // bounds and positions at the end of their range
  c.left = std::numeric_limits<int64_t>::max();
  c.right = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(keys_seen(c, 3), 200);
  c.pos0 = std::numeric_limits<int64_t>::max() - 200;
  EXPECT_EQ(keys_seen(c, 199), 200);
  c.pos0 = std::numeric_limits<int64_t>::min() + 5;
  c.right = 0;
  EXPECT_EQ(keys_seen(c, 199), 0);
}

// ---- heads

TEST(AttentionFaults, HeadsShareKeysInTurnAndKeepTheirOwnSlopesAndSinks) {
  on_every_isa([] {
    for (const int64_t Hkv : {1, 2, 3}) {
      for (const int64_t shared : {1, 2, 5}) {
        Case<float> c = normal_case(13, {1, 20, 1100, Hkv * shared, Hkv, 16, 8});
        c.right = 1090;
        c.slopes = Tensor<float, 1>(std::array<int64_t, 1>{c.n.H});
        c.sinks = c.slopes;
        c.slopes.each([](float& x, const auto& at) { x = 0.001f * static_cast<float>(at[0] + 1); });
        c.sinks.each([](float& x, const auto& at) { x = static_cast<float>(at[0]) - 1; });
        c.poison_outputs();
        run(c);
        for (int64_t h = 0; h < c.n.H; ++h) {
          const Case<float> head = one_head(c, h);
          SCOPED_TRACE(head.text + " of " + std::to_string(c.n.H) + " over " + std::to_string(Hkv));
          run(head);
          expect_same_bits("o", head.o, part(c.o, 2, h, h + 1));
          expect_same_bits("dq", head.dq, part(c.dq, 2, h, h + 1));
          expect_same_bits("dslopes", head.dslopes, part(c.dslopes, 0, h, h + 1));
          expect_same_bits("dsinks", head.dsinks, part(c.dsinks, 0, h, h + 1));
        }
        expect_reference(c);
      }
    }
  });
}

TEST(AttentionFaults, ASinkCountsOnceOverAllTiles) {
  for (const int64_t keys : {1, 128, 129, 1024, 1025, 3000}) {
    Case<float> c = normal_case(14, {1, 3, keys, 1, 1, 4, 2});
    c.q.each([](float& x, const auto&) { x = 0; });
    c.sinks = Tensor<float, 1>(std::array<int64_t, 1>{1});
    c.sinks(0) = std::log(static_cast<float>(keys));
    c.v.each([](float& x, const auto&) { x = 1; });
    attention_forward(c.forward());
    // keys of score 0 and a sink as heavy as all of them together
    c.o.each([](float& x, const auto&) { EXPECT_NEAR(x, 0.5, 1e-5); });
  }
}

TEST(AttentionFaults, LargeAdditiveScoresAddNothingFromLanesWithoutARow) {
  // a row of zeros in an unused lane has scores of 128 ln 2, of which no maximum is subtracted: exp gives infinity
  on_every_isa([] {
    for (const int64_t rows : {1, 3, 17, 33}) {
      Case<float> c = normal_case(20, {1, rows, 140, 1, 1, 5, 3});
      c.k.each([](float& x, const auto&) { x = std::abs(x) + 20; });
      c.scale = 1;
      c.additive = Tensor<float, 2>(std::array<int64_t, 2>{1, 5});
      c.additive.each([](float& x, const auto&) { x = 17.745f; });
      c.poison_outputs();
      expect_reference(c);
      c.d_additive.each([](float& x, const auto&) { EXPECT_TRUE(std::isfinite(x)); });
    }
  });
}

// ---- memory

TEST(AttentionFaults, AMaskOfOneColumnOrOfStrideZeroIsReadWithinItself) {
  for (const int64_t length : kLengths) {
    Case<float> c = normal_case(15, {2, length, length, 2, 2, 8, 8});
    c.mask = Tensor<uint8_t, 4>(std::array<int64_t, 4>{2, 2, length, length});
    c.mask.each([](uint8_t& x, const auto& at) { x = at[2] % 2 == 0; });
    run(c);
    // the same mask from its own bytes alone: (Tq), broadcast by size and by stride
    std::vector<uint8_t> bytes(static_cast<std::size_t>(length));
    for (int64_t i = 0; i < length; ++i) bytes[static_cast<std::size_t>(i)] = i % 2 == 0;
    const View<const uint8_t, 4> views[] = {
        {bytes.data(), {1, 1, length, 1}, {7, 7, 1, 7}},
        {bytes.data(), {2, 2, length, length}, {0, 0, 1, 0}},
    };
    for (const auto& view : views) {
      Case<float> other = c;
      other.poison_outputs();
      AttentionForward<float> forward = other.forward();
      forward.pattern.mask = view;
      attention_forward(forward);
      AttentionBackward<float> backward = other.backward();
      backward.pattern.mask = view;
      attention_backward(backward);
      expect_same_results(other, c);
    }
  }
}

TEST(AttentionFaults, MoreThan65535RowsOfZerosAreWritten) {
  Case<float> c = normal_case(16, {1, 70000, 3, 1, 1, 1, 1});
  c.k_len = Tensor<int64_t, 1>(std::array<int64_t, 1>{1});
  run(c);
  expect_zeros("o", c.o);
  expect_zeros("dq", c.dq);
  c.statistics.expect_all_written("statistics");
}

template <class T>
void expect_sizes_of_zero() {
  for (int which = 0; which < 6; ++which) {
    Sizes n{2, 20, 30, 2, 1, 8, 4};
    *std::array<int64_t*, 6>{&n.B, &n.Tq, &n.Tk, &n.H, &n.K, &n.M}[static_cast<std::size_t>(which)] = 0;
    for (const int64_t Hkv : {int64_t{0}, n.Hkv}) {
      if (Hkv == 0 && n.H != 0) continue;
      n.Hkv = Hkv;
      SCOPED_TRACE(which);
      Case<T> c = normal_case<T>(17, n);
      c.right = 5;
      c.slopes = Tensor<Accumulator<T>, 1>(std::array<int64_t, 1>{n.H});
      c.sinks = c.slopes;
      c.bias = Tensor<Accumulator<T>, 4>(std::array<int64_t, 4>{n.B, n.H, n.Tq, n.Tk});
      if (n.B == 2) c.additive = Tensor<Accumulator<T>, 2>(std::array<int64_t, 2>{n.H, n.K});
      c.poison_outputs();
      run(c);
      const Truth<T> truth = Truth<T>(c).with_gradients();
      for (const auto* x : {&c.o, &c.dq, &c.dk, &c.dv}) x->expect_all_written("result");
      c.dbias.expect_all_written("dbias");
      c.statistics.expect_all_written("statistics");
      c.dslopes.expect_all_written("dslopes");
      c.dsinks.expect_all_written("dsinks");
      c.d_additive.expect_all_written("d_additive");
      expect_close("o", c.o, truth.exact.o, truth.o);
      expect_close("dv", c.dv, truth.exact.dv, truth.dv);
      const auto weights = c.weights();
      attention_rows(c.rows(weights));
      weights.expect_all_written("weights");
    }
  }
}

TEST(AttentionFaults, SizesOfZeroAreSizes) {
  on_every_isa([] {
    expect_sizes_of_zero<float>();
    expect_sizes_of_zero<BFloat16>();
    expect_sizes_of_zero<Float16>();
  });
}

// Memory of many gigabytes of which only what is touched exists.
class SparseMemory {
 public:
  explicit SparseMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~SparseMemory() {
    if (exists()) munmap(data_, bytes_);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  bool exists() const { return data_ != MAP_FAILED; }
  float* data() const { return static_cast<float*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

TEST(AttentionFaults, StridesBeyond32BitsAreFollowed) {
  // entries, rows or heads 2^32 + 2^13 elements apart
  constexpr int64_t kFar = (int64_t{1} << 32) + (int64_t{1} << 13);
  const SparseMemory memory(std::size_t{9} * 4 * 3 * kFar);
  if (!memory.exists()) GTEST_SKIP() << "no address space for sparse memory";
  for (int dim = 0; dim < 3; ++dim) {
    SCOPED_TRACE(dim);
    Case<float> c = normal_case(18, {3, 3, 3, 3, 3, 8, 8});
    c.right = 0;
    run(c);
    int64_t tensors = 0;
    const auto spread = [&](const Tensor<float, 4>& from, bool copy) {
      View<float, 4> view(memory.data() + tensors++ * 3 * kFar, from.sizes());
      for (int d = 0; d < dim; ++d) view.strides[static_cast<std::size_t>(d)] = 3 * 8 * (d == 0 ? 3 : 1);
      view.strides[static_cast<std::size_t>(dim)] = kFar;
      from.each([&](float& x, const auto& at) { view(at[0], at[1], at[2], at[3]) = copy ? x : -1; });
      return view;
    };
    const auto expect_same = [&](const char* name, const View<float, 4>& got, const Tensor<float, 4>& want) {
      want.each([&](float& x, const auto& at) {
        EXPECT_EQ(got(at[0], at[1], at[2], at[3]), x) << name << index_text<4>(at);
      });
    };
    AttentionBackward<float> args = c.backward();
    const auto o = spread(c.o, false), dq = spread(c.dq, false), dk = spread(c.dk, false), dv = spread(c.dv, false);
    args.q = spread(c.q, true);
    args.k = spread(c.k, true);
    args.v = spread(c.v, true);
    args.d_o = spread(c.d_o, true);
    args.o = o;
    args.dq = dq;
    args.dk = dk;
    args.dv = dv;
    AttentionForward<float> forward = c.forward();
    forward.q = args.q;
    forward.k = args.k;
    forward.v = args.v;
    forward.o = o;
    attention_forward(forward);
    attention_backward(args);
    expect_same("o", o, c.o);
    expect_same("dq", dq, c.dq);
    expect_same("dk", dk, c.dk);
    expect_same("dv", dv, c.dv);
  }
}

}  // namespace
}  // namespace headlight
