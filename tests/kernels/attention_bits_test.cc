// Rules 9 and 10: results have the same bits for any number of threads, for a sequence alone and in a batch, on
// either side of its padding, for queries all at once and in pieces; rows are what the forward used; and short
// floats give what floats give.

#include <gtest/gtest.h>

#include "headlight/kernels/attention.h"
#include "kernels/attention_cases.h"

namespace headlight {
namespace {

using namespace testing_attention;

// A problem in which rows and keys of every entry are what its begin and length say, nothing else being random.
template <class T>
Case<T> plain_case(uint64_t seed, const Sizes& n) {
  RandomStream random(seed, 3, 0);
  Case<T> c(n);
  for (const auto* x : {&c.q, &c.k, &c.v, &c.d_o}) randomize(*x, random);
  c.scale = static_cast<Accumulator<T>>(0.3);
  c.text = "seed " + std::to_string(seed) + ": q " + shape_text(c.q.view()) + " k " + shape_text(c.k.view());
  return c;
}

template <class T>
Tensor<Accumulator<T>, 2> random_additive(const Case<T>& c, uint64_t seed) {
  RandomStream random(seed, 9, 0);
  Tensor<Accumulator<T>, 2> additive(std::array<int64_t, 2>{c.n.H, c.n.K});
  randomize(additive, random);
  return additive;
}

class ThreadsAfter : public ::testing::Test {
 protected:
  ~ThreadsAfter() override { set_threads(threads_); }
  const int threads_ = default_pool().threads();
};
using AttentionThreads = ThreadsAfter;

template <class T>
void expect_same_bits_for_any_threads(uint64_t seed) {
  Case<T> c = random_case<T>(seed);
  SCOPED_TRACE(c.text);
  set_threads(1);
  run(c);
  const Case<T> first = c;
  for (int threads : {2, 3, 5, 8}) {
    set_threads(threads);
    c.poison_outputs();
    run(c);
    expect_same_results(c, first);
  }
}

TEST_F(AttentionThreads, GiveTheSameBitsWhateverTheirNumber) {
  for (uint64_t seed = 500; seed < 540; ++seed) {
    expect_same_bits_for_any_threads<float>(seed);
    expect_same_bits_for_any_threads<double>(seed);
    expect_same_bits_for_any_threads<BFloat16>(seed);
    expect_same_bits_for_any_threads<Float16>(seed);
  }
}

template <class T>
void expect_entries_alone(uint64_t seed) {
  Case<T> c = random_case<T>(seed);
  // what is summed over the batch depends on the batch
  c.dslopes = c.dsinks = {};
  c.d_additive = {};
  if (c.bias.exists() && c.bias.sizes()[0] == 1) c.dbias = {};
  SCOPED_TRACE(c.text);
  run(c);
  for (int64_t b = 0; b < c.n.B; ++b) {
    Case<T> alone = one_entry(c, b);
    alone.dslopes = alone.dsinks = {};
    alone.d_additive = {};
    if (!c.dbias.exists()) alone.dbias = {};
    run(alone);
    Case<T> wanted = alone;
    wanted.o = part(c.o, 0, b, b + 1);
    wanted.statistics = part(c.statistics, 0, b, b + 1);
    wanted.dq = part(c.dq, 0, b, b + 1);
    wanted.dk = part(c.dk, 0, b, b + 1);
    wanted.dv = part(c.dv, 0, b, b + 1);
    wanted.dbias = part(c.dbias, 0, b, b + 1, true);
    SCOPED_TRACE(alone.text);
    expect_same_results(alone, wanted);
  }
}

TEST(AttentionBatch, GivesEachEntryTheBitsItHasAlone) {
  on_every_isa([] {
    for (uint64_t seed = 600; seed < 640; ++seed) {
      expect_entries_alone<float>(seed);
      expect_entries_alone<double>(seed);
      expect_entries_alone<BFloat16>(seed);
      expect_entries_alone<Float16>(seed);
    }
  });
}

// A sequence of `length` rows inside `rows`, from row `begin` on; all else is NaN.
template <class T>
Case<T> pad(const Case<T>& c, int64_t rows, int64_t begin) {
  Sizes n = c.n;
  n.Tq = n.Tk = rows;
  Case<T> out(n);
  out.scale = c.scale;
  out.right = c.right;
  out.left = c.left;
  out.slopes = c.slopes;
  out.additive = c.additive;
  for (auto tensor : {&Case<T>::q, &Case<T>::k, &Case<T>::v, &Case<T>::d_o}) {
    (out.*tensor).each([&](T& x, std::array<int64_t, 4> at) {
      at[1] -= begin;
      x = at[1] >= 0 && at[1] < c.n.Tq ? (c.*tensor).at(at) : stored<T>(kNaN<double>);
    });
  }
  out.q_begin = Tensor<int64_t, 1>(std::array<int64_t, 1>{1});
  out.q_begin(0) = begin;
  out.k_begin = out.q_begin;
  out.q_len = out.q_begin;
  out.q_len(0) = c.n.Tq;
  out.k_len = out.q_len;
  out.poison_outputs();
  return out;
}

template <class T>
void expect_padding_changes_nothing(uint64_t seed, int64_t length, bool causal, bool additive = false) {
  Case<T> alone = plain_case<T>(seed, {1, length, length, 4, 2, 24, 40});
  if (causal) alone.right = 0;
  if (additive) alone.additive = random_additive(alone, seed);
  alone.slopes = Tensor<Accumulator<T>, 1>(std::array<int64_t, 1>{4});
  alone.slopes.each([](auto& x, const auto& at) { x = stored<Accumulator<T>>(0.01 * static_cast<double>(at[0])); });
  alone.poison_outputs();
  SCOPED_TRACE(alone.text);
  run(alone);
  for (const int64_t extra : {0, 1, 37, 128}) {
    for (const int64_t begin : {int64_t{0}, extra / 2, extra}) {
      SCOPED_TRACE(std::to_string(extra) + " rows of padding, " + std::to_string(begin) + " of them before");
      Case<T> padded = pad(alone, length + extra, begin);
      run(padded);
      padded.o.expect_all_written("o");
      padded.dk.expect_all_written("dk");
      for (auto tensor : {&Case<T>::o, &Case<T>::dq, &Case<T>::dk, &Case<T>::dv}) {
        expect_same_bits("result", part(padded.*tensor, 1, begin, begin + length), alone.*tensor);
        for (int64_t row = 0; row < length + extra; ++row) {
          if (row >= begin && row < begin + length) continue;
          part(padded.*tensor, 1, row, row + 1).each([&](T& x, const auto&) {
            EXPECT_EQ(number(x), 0) << "row " << row;
          });
        }
      }
      expect_same_bits("dslopes", padded.dslopes, alone.dslopes);
      expect_same_bits("d_additive", padded.d_additive, alone.d_additive);
    }
  }
}

TEST(AttentionPadding, ChangesNoBitOnEitherSide) {
  on_every_isa([] {
    for (const int64_t length : {1, 31, 64, 150, 300}) {
      for (const bool causal : {false, true}) {
        expect_padding_changes_nothing<float>(700, length, causal);
        expect_padding_changes_nothing<double>(701, length, causal);
        expect_padding_changes_nothing<BFloat16>(702, length, causal);
        expect_padding_changes_nothing<Float16>(703, length, causal);
        if (length <= 150) expect_padding_changes_nothing<float>(704, length, causal, true);
      }
    }
  });
}

// Puts a few infinities and NaN into q, k and v.
template <class T>
void plant_non_finite(Case<T>& c, uint64_t seed) {
  RandomStream random(seed, 5, 0);
  for (const Tensor<T, 4>* tensor : {&c.q, &c.k, &c.v, &c.v}) {
    tensor->each([&](T& x, const auto&) {
      if (chance(random, 1))
        x = stored<T>(pick(random, std::vector<double>{kNaN<double>, kInf<double>, -kInf<double>}));
    });
  }
}

template <class T>
void expect_pieces(uint64_t seed, bool non_finite) {
  Case<T> c = random_case<T>(seed);
  c.q_begin = c.q_len = {};
  if (non_finite) plant_non_finite(c, seed);
  SCOPED_TRACE(c.text);
  run(c);
  RandomStream random(seed, 4, 0);
  for (int64_t begin = 0; begin < c.n.Tq;) {
    const int64_t most = pick<int64_t>(random, {1, 2, 33, 100});
    const int64_t end = std::min(c.n.Tq, begin + 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(most))));
    const Case<T> piece = some_queries(c, begin, end);
    SCOPED_TRACE(piece.text);
    run(piece);
    expect_same_bits("o", piece.o, part(c.o, 1, begin, end));
    expect_same_bits("dq", piece.dq, part(c.dq, 1, begin, end));
    piece.statistics.each([&](auto& x, std::array<int64_t, 3> at) {
      at[2] += begin;
      EXPECT_TRUE(same_bits(x.max, c.statistics.at(at).max) && same_bits(x.sum, c.statistics.at(at).sum))
          << "statistics" << index_text<3>(at);
    });
    begin = end;
  }
}

TEST(AttentionPieces, GiveTheBitsOfAllQueriesAtOnce) {
  on_every_isa([] {
    for (uint64_t seed = 800; seed < 860; ++seed) {
      expect_pieces<float>(seed, seed % 2 == 0);
      expect_pieces<double>(seed, seed % 2 == 1);
      expect_pieces<BFloat16>(seed, seed % 2 == 0);
      expect_pieces<Float16>(seed, seed % 2 == 1);
    }
  });
}

template <class T>
void expect_decoding(int64_t length, int64_t window, bool additive = false) {
  Case<T> c = plain_case<T>(900, {2, length, length, 4, 2, 32, 16});
  if (additive) c.additive = random_additive(c, 901);
  c.right = 0;
  if (window > 0) c.left = window - 1;
  run(c);
  for (int64_t i = 0; i < length; i += 1 + i / 7) {
    // the cache ends at the query: keys that come later are not there yet
    Case<T> step = some_queries(c, i, i + 1);
    step.n.Tk = i + 1;
    step.k = part(c.k, 1, 0, i + 1);
    step.v = part(c.v, 1, 0, i + 1);
    step.make_outputs();
    step.d_o = part(c.d_o, 1, i, i + 1);
    run(step);
    SCOPED_TRACE("token " + std::to_string(i));
    expect_same_bits("o", step.o, part(c.o, 1, i, i + 1));
    expect_same_bits("dq", step.dq, part(c.dq, 1, i, i + 1));
  }
}

TEST(AttentionPieces, DecodeTokenByTokenWithACacheToTheBitsOfTheFullForward) {
  on_every_isa([] {
    expect_decoding<float>(300, 0);
    expect_decoding<double>(300, 0);
    expect_decoding<BFloat16>(300, 0);
    expect_decoding<Float16>(300, 20);
    expect_decoding<float>(300, 20);
    expect_decoding<float>(1100, 0);
    expect_decoding<float>(200, 0, true);
  });
}

// ---- rows

template <class T>
void expect_rows_of_the_forward(int64_t length, bool causal) {
  // with V = 1 the output is the weights
  Case<T> c = plain_case<T>(1000, {1, length, length, 2, 1, 32, length});
  if (causal) c.right = 0;
  c.v.each([](T& x, const std::array<int64_t, 4>& at) { x = stored<T>(at[1] == at[3]); });
  attention_forward(c.forward());
  const auto weights = c.weights();
  attention_rows(c.rows(weights));
  weights.each([&](Accumulator<T>& x, const std::array<int64_t, 4>& at) {
    const T got = narrow<T>(x), wanted = c.o(at[0], at[2], at[1], at[3]);
    EXPECT_TRUE(same_bits(got, wanted)) << "weights" << index_text<4>(at) << ": got " << number(got)
                                        << ", expected the bits of " << number(wanted);
  });
}

TEST(AttentionRows, GiveTheBitsThatTheForwardUsed) {
  on_every_isa([] {
    for (const int64_t length : {1, 2, 17, 64, 100, 128}) {
      expect_rows_of_the_forward<float>(length, false);
      expect_rows_of_the_forward<float>(length, true);
      expect_rows_of_the_forward<double>(length, true);
      expect_rows_of_the_forward<BFloat16>(length, true);
      expect_rows_of_the_forward<Float16>(length, false);
    }
  });
}

TEST(AttentionRows, GiveTheBitsThatTheBackwardUsed) {
  // for one query and do = 1, dv = P
  for (const int64_t keys : {1, 50, 129, 1500}) {
    Case<float> c = plain_case<float>(1001, {1, 1, keys, 1, 1, 32, 1});
    c.d_o(0, 0, 0, 0) = 1;
    run(c);
    const Tensor<float, 4> weights = c.weights();
    attention_rows(c.rows(weights));
    for (int64_t j = 0; j < keys; ++j) EXPECT_TRUE(same_bits(weights(0, 0, 0, j), c.dv(0, j, 0, 0))) << "key " << j;
  }
}

TEST(AttentionRows, HaveTheLargestScoreAtTheStatisticsMaximum) {
  // exp(max - max) / sum is the largest weight exactly, so the scores have the forward's bits over any length
  for (const int64_t length : {200, 1500}) {
    Case<float> c = plain_case<float>(1002, {1, 40, length, 2, 1, 48, 8});
    attention_forward(c.forward());
    const Tensor<float, 4> weights = c.weights();
    attention_rows(c.rows(weights));
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < 40; ++i) {
        float largest = 0;
        double sum = 0;
        for (int64_t j = 0; j < length; ++j) {
          largest = std::max(largest, weights(0, h, i, j));
          sum += weights(0, h, i, j);
        }
        EXPECT_EQ(largest, 1 / c.statistics(0, h, i).sum) << "head " << h << " row " << i;
        // each of the weights and the sum is off by some units of 2^-24
        EXPECT_NEAR(sum, 1, 1e-5) << "head " << h << " row " << i;
      }
    }
  }
}

using AttentionRowsThreads = ThreadsAfter;

// Tasks of many blocks of rows, each of which sees some of the tiles, beside single rows.
TEST_F(AttentionRowsThreads, GiveTogetherWhatTheyGiveOneByOne) {
  Case<float> c = plain_case<float>(1003, {2, 300, 290, 2, 1, 24, 8});
  using Window = std::pair<std::optional<int64_t>, std::optional<int64_t>>;
  for (const Window& window : {Window{}, Window{std::nullopt, 0}, Window{70, 20}}) {
    c.left = window.first;
    c.right = window.second;
    attention_forward(c.forward());
    const Tensor<float, 4> together = c.weights();
    set_threads(1);
    attention_rows(c.rows(together));
    together.expect_all_written("weights");
    for (int64_t row = 0; row < c.n.Tq; ++row) {
      const Tensor<float, 4> alone({c.n.B, c.n.H, 1, c.n.Tk});
      attention_rows(c.rows(alone, row));
      expect_same_bits("row", alone, part(together, 2, row, row + 1));
    }
    for (int threads : {2, 7}) {
      set_threads(threads);
      const Tensor<float, 4> again = c.weights();
      attention_rows(c.rows(again));
      expect_same_bits("weights", again, together);
    }
  }
}

template <class T>
void expect_parts_of_rows(uint64_t seed) {
  const Case<T> c = random_case<T>(seed);
  SCOPED_TRACE(c.text);
  attention_forward(c.forward());
  const auto all = c.weights();
  attention_rows(c.rows(all));
  RandomStream random(seed, 5, 0);
  for (int round = 0; round < 4; ++round) {
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(n + 1))); };
    const int64_t row = below(c.n.Tq), head = below(c.n.H);
    const int64_t rows = below(c.n.Tq - row), heads = below(c.n.H - head);
    auto some = random_layout<Accumulator<T>>(random, {c.n.B, heads, rows, c.n.Tk});
    some.poison();
    attention_rows(c.rows(some, row, head));
    some.expect_all_written("weights");
    expect_same_bits("weights", some, part(part(all, 1, head, head + heads), 2, row, row + rows));
  }
}

TEST(AttentionRows, OfAnyHeadsAndRowsAreThoseOfAll) {
  on_every_isa([] {
    for (uint64_t seed = 1100; seed < 1150; ++seed) {
      expect_parts_of_rows<float>(seed);
      expect_parts_of_rows<double>(seed);
      expect_parts_of_rows<BFloat16>(seed);
      expect_parts_of_rows<Float16>(seed);
    }
  });
}

// ---- short floats

template <class T>
Tensor<float, 3> sums_of(const Case<T>& c) {
  Tensor<float, 3> out(c.statistics.sizes());
  out.each([&](float& x, const auto& at) { x = c.statistics.at(at).sum; });
  return out;
}

// The results for the same numbers stored as float, narrowed.
template <class T>
void expect_narrowed_floats(uint64_t seed) {
  const Case<T> c = random_case<T>(seed);
  SCOPED_TRACE(c.text);
  run(c);
  Case<float> wide = c.template as<float>();
  attention_forward(wide.forward());
  expect_same_bits("o", c.o, wide.o.template as<T>());
  expect_same_bits("statistics", sums_of(c), sums_of(wide));
  wide.o = c.o.template as<float>();
  attention_backward(wide.backward());
  expect_same_bits("dq", c.dq, wide.dq.template as<T>());
  expect_same_bits("dk", c.dk, wide.dk.template as<T>());
  expect_same_bits("dv", c.dv, wide.dv.template as<T>());
  expect_same_bits("dbias", c.dbias, wide.dbias);
  expect_same_bits("dslopes", c.dslopes, wide.dslopes);
  expect_same_bits("dsinks", c.dsinks, wide.dsinks);
  expect_same_bits("d_additive", c.d_additive, wide.d_additive);
}

TEST(AttentionOfShortFloats, GivesTheNarrowedResultsOfFloats) {
  on_every_isa([] {
    for (uint64_t seed = 1200; seed < 1260; ++seed) {
      expect_narrowed_floats<BFloat16>(seed);
      expect_narrowed_floats<Float16>(seed);
    }
  });
}

// One key of every bit pattern there is, and two keys whose mean lies half way between two numbers.
template <class T>
void expect_every_pattern() {
  constexpr int64_t kPatterns = 1 << 16;
  Case<T> c({1, 1, 1, 1, 1, 1, kPatterns});
  c.v.each([](T& x, const auto& at) { x.bits = static_cast<uint16_t>(at[3]); });
  attention_forward(c.forward());
  // no output is -0
  c.o.each([&](T& x, const auto& at) {
    const double wanted = number(c.v.at(at)) + 0.0;
    EXPECT_TRUE(same_bits(number(x), wanted)) << "bits " << at[3] << ": got " << number(x) << ", expected " << wanted;
  });
  Case<T> means({1, 1, 2, 1, 1, 1, kPatterns});
  means.v.each([](T& x, const auto& at) { x.bits = static_cast<uint16_t>(at[3] + at[1]); });
  attention_forward(means.forward());
  means.o.each([&](T& x, const auto& at) {
    const double mean = (number(means.v(0, 0, 0, at[3])) + number(means.v(0, 1, 0, at[3]))) / 2;
    // the sum of the two is no float
    if (std::abs(mean) > std::numeric_limits<float>::max() / 2 && std::isfinite(mean)) return;
    EXPECT_TRUE(same_bits(number(x), number(stored<T>(mean + 0.0)))) << "bits " << at[3] << ": got " << number(x);
  });
}

TEST(AttentionOfShortFloats, ReadsAndWritesEveryBitPattern) {
  on_every_isa([] {
    expect_every_pattern<BFloat16>();
    expect_every_pattern<Float16>();
  });
}

}  // namespace
}  // namespace headlight
