#include "headlight/kernels/attention_sums.h"

#include <gtest/gtest.h>

#include <functional>

#include "headlight/base/error.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_truth.h"

namespace headlight {
namespace {

using namespace testing_attention;

// Outputs of attention_sums, and the keys that are chosen.
template <class T>
struct Sums {
  Tensor<double, 3> sum, entropy, distance;
  Tensor<int64_t, 3> chosen;
  Tensor<Accumulator<T>, 4> weights;

  Sums(const Case<T>& c, int64_t choices, bool turned = false) {
    const std::array<int64_t, 3> rows{c.n.B, c.n.H, c.n.Tq};
    for (auto* x : {&sum, &entropy, &distance}) {
      *x = turned ? Tensor<double, 3>(rows, {2, 0, 1}, 2, 3) : Tensor<double, 3>(rows);
    }
    chosen = Tensor<int64_t, 3>(std::array<int64_t, 3>{c.n.B, c.n.Tq, choices});
    weights = Tensor<Accumulator<T>, 4>(std::array<int64_t, 4>{c.n.B, c.n.H, c.n.Tq, choices});
    poison();
  }

  // One choice in eight is none of the keys.
  void choose(RandomStream& random, int64_t keys) {
    const std::vector<int64_t> none{-1, keys, keys + 127, std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max()};
    chosen.each([&](int64_t& x, const auto&) {
      const bool is_key = keys > 0 && !chance(random, 12);
      x = is_key ? static_cast<int64_t>(random.below(static_cast<uint64_t>(keys))) : pick(random, none);
    });
  }
  void poison() {
    for (auto* x : {&sum, &entropy, &distance}) x->poison();
    weights.poison();
  }
  void expect_all_written() const {
    sum.expect_all_written("sum");
    entropy.expect_all_written("entropy");
    distance.expect_all_written("distance");
    weights.expect_all_written("weights");
  }
  AttentionSums<T> of(const Case<T>& c) const {
    AttentionSums<T> args;
    args.q = c.q.view();
    args.k = c.k.view();
    args.statistics = c.statistics.view();
    args.sum = sum.view();
    args.entropy = entropy.view();
    args.distance = distance.view();
    args.chosen = chosen.view();
    args.weights = weights.view();
    args.pattern = c.pattern();
    return args;
  }
};

// What a row's weights add up to, in double precision, and by how much the kernel may miss it.
struct RowSums {
  double sum = 0, entropy = 0, distance = 0, size = 0;
};
template <class W>
RowSums sums_of(W weight, int64_t keys, const std::function<double(int64_t)>& distance, double sum) {
  RowSums out;
  for (int64_t j = 0; j < keys; ++j) {
    const double w = weight(j);
    out.sum += w;
    out.distance += w * distance(j);
    if (w == 0) continue;
    out.entropy -= w * std::log(w);
    // the terms that the kernel adds up: P (score - max) and P ln(sum)
    out.size += w * (std::abs(std::log(w) + std::log(sum)) + std::abs(std::log(sum)));
  }
  return out;
}

// A chain of at most 128 additions for each tile, one in double for each tile. In the entropy the logarithm of a weight
// is also off by the relative error of the weight: its exponential (4 units), the reciprocal and the product. Weights
// below the smallest normal number may be 0.
template <class T>
void expect_sums_of_rows(const Case<T>& c, uint64_t seed) {
  using A = Accumulator<T>;
  SCOPED_TRACE(c.text);
  RandomStream random(seed, 6, 0);
  attention_forward(c.forward());
  const auto rows = c.weights();
  attention_rows(c.rows(rows));
  Sums<T> sums(c, static_cast<int64_t>(random.below(6)), chance(random, 50));
  sums.choose(random, c.n.Tk);
  attention_sums(sums.of(c));
  sums.expect_all_written();
  sums.weights.each([&](A& x, const std::array<int64_t, 4>& at) {
    const int64_t key = sums.chosen(at[0], at[2], at[3]);
    const A wanted = key >= 0 && key < c.n.Tk ? rows(at[0], at[1], at[2], key) : A(0);
    EXPECT_TRUE(same_bits(x, wanted)) << "weight" << index_text<4>(at) << " of key " << key << ": got " << x
                                      << ", expected " << wanted;
  });
  const double u = std::numeric_limits<A>::epsilon() / 2;
  const double chain = 128 * u + double(c.n.Tk) * 0x1p-53, smallest = 2000 * double(std::numeric_limits<A>::min());
  Tensor<double, 3> wanted[3], allowed[3];
  for (int i = 0; i < 3; ++i) wanted[i] = allowed[i] = Tensor<double, 3>(sums.sum.sizes());
  wanted[0].each([&](double&, const std::array<int64_t, 3>& at) {
    const int64_t b = at[0], h = at[1], i = at[2];
    const double p = double(c.pos0 + i - (c.q_begin.exists() ? c.q_begin(b) : 0));
    const double begin = double(c.k_begin.exists() ? c.k_begin(b) : 0);
    const auto statistic = c.statistics.at(at);
    const RowSums row = sums_of([&](int64_t j) { return double(rows(b, h, i, j)); }, c.n.Tk,
                                [=](int64_t j) { return std::abs(p - (double(j) - begin)); }, double(statistic.sum));
    wanted[0].at(at) = row.sum;
    wanted[1].at(at) = row.entropy;
    wanted[2].at(at) = row.distance;
    allowed[0].at(at) = chain * row.sum;
    allowed[1].at(at) = chain * row.size + 6 * u * row.sum + double(c.n.Tk) * smallest;
    allowed[2].at(at) = chain * row.distance;
  });
  expect_close("sum", sums.sum, wanted[0], allowed[0]);
  expect_close("entropy", sums.entropy, wanted[1], allowed[1]);
  expect_close("distance", sums.distance, wanted[2], allowed[2]);
}

TEST(AttentionSums, AddUpTheWeightsThatRowsGive) {
  on_every_isa([] {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      expect_sums_of_rows(random_case<float>(seed + 5000, 1000000), seed);
      expect_sums_of_rows(random_case<double>(seed + 6000, 1000000), seed);
      expect_sums_of_rows(random_case<BFloat16>(seed + 7000, 500000), seed);
      expect_sums_of_rows(random_case<Float16>(seed + 8000, 500000), seed);
    }
  });
}

// The same against the definition in double precision: weights then have their own errors besides.
template <class T>
void expect_reference(const Case<T>& c) {
  SCOPED_TRACE(c.text);
  const Truth<T> truth(c);
  attention_forward(c.forward());
  Sums<T> sums(c, 3);
  RandomStream random(1, 7, 0);
  sums.choose(random, c.n.Tk);
  attention_sums(sums.of(c));
  Sums<double> exact(truth.exact, 3);
  exact.chosen = sums.chosen;
  reference::attention_sums(exact.of(truth.exact));
  const auto errors = truth.weight_errors();
  const double chain = 128 * std::numeric_limits<Accumulator<T>>::epsilon();
  const double smallest = 2000 * double(std::numeric_limits<Accumulator<T>>::min());
  Tensor<double, 3> allowed[3] = {exact.sum, exact.sum, exact.sum};
  allowed[0].each([&](double&, const std::array<int64_t, 3>& at) {
    const auto statistic = truth.exact.statistics.at(at);
    double sum = 0, entropy = double(c.n.Tk) * smallest, distance = 0;
    for (int64_t j = 0; j < c.n.Tk; ++j) {
      const double w = truth.weights(at[0], at[1], at[2], j), error = errors(at[0], at[1], at[2], j);
      if (w == 0) continue;
      sum += error + chain * w;
      entropy += (error + chain * w) * (2 + std::abs(std::log(w)) + 2 * std::abs(std::log(statistic.sum)));
      distance += (error + chain * w) * (double(c.n.Tq + c.n.Tk) + std::abs(double(c.pos0)));
    }
    allowed[0].at(at) = sum;
    allowed[1].at(at) = entropy;
    allowed[2].at(at) = distance;
  });
  expect_close("sum", sums.sum, exact.sum, allowed[0]);
  expect_close("entropy", sums.entropy, exact.entropy, allowed[1]);
  expect_close("distance", sums.distance, exact.distance, allowed[2]);
  Tensor<double, 4> of_chosen = exact.weights;
  of_chosen.each([&](double& x, const std::array<int64_t, 4>& at) {
    const int64_t key = sums.chosen(at[0], at[2], at[3]);
    x = key >= 0 && key < c.n.Tk ? errors(at[0], at[1], at[2], key) : 0;
  });
  expect_close("weights", sums.weights, exact.weights, of_chosen);
}

TEST(AttentionSums, MatchTheReferenceOverRandomShapesAndPatterns) {
  on_every_isa([] {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      expect_reference(random_case<float>(seed + 9000, 500000));
      expect_reference(random_case<double>(seed + 10000, 500000));
      expect_reference(random_case<BFloat16>(seed + 11000, 500000));
      expect_reference(random_case<Float16>(seed + 12000, 500000));
    }
  });
}

TEST(AttentionSums, OfEqualScoresAreThoseOfUniformRows) {
  // causal, so row i has i + 1 weights of 1 / (i + 1): rounded, and added up in one tile
  Case<float> c({1, 100, 100, 1, 1, 4, 4});
  c.right = 0;
  attention_forward(c.forward());
  Sums<float> sums(c, 0);
  attention_sums(sums.of(c));
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_NEAR(sums.sum(0, 0, i), 1, 1e-5) << "row " << i;
    EXPECT_NEAR(sums.entropy(0, 0, i), std::log(double(i + 1)), 5e-5) << "row " << i;
    EXPECT_NEAR(sums.distance(0, 0, i), double(i) / 2, 1e-5 * double(i)) << "row " << i;
  }
  EXPECT_EQ(sums.entropy(0, 0, 0), 0) << "of one weight";
}

// ---- bits

template <class T>
void expect_same_sums(const Sums<T>& got, const Sums<T>& want) {
  expect_same_bits("sum", got.sum, want.sum);
  expect_same_bits("entropy", got.entropy, want.entropy);
  expect_same_bits("distance", got.distance, want.distance);
  expect_same_bits("weights", got.weights, want.weights);
}

class AttentionSumsThreads : public ::testing::Test {
 public:
  ~AttentionSumsThreads() override { set_threads(threads_); }

 private:
  int threads_ = default_pool().threads();
};

TEST_F(AttentionSumsThreads, ChangeNoBit) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Case<float> c = random_case<float>(seed + 13000);
    SCOPED_TRACE(c.text);
    RandomStream random(seed, 6, 0);
    attention_forward(c.forward());
    Sums<float> alone(c, 2);
    alone.choose(random, c.n.Tk);
    set_threads(1);
    attention_sums(alone.of(c));
    for (int threads : {2, 3, 5, 8}) {
      set_threads(threads);
      Sums<float> together = alone;
      together.poison();
      attention_sums(together.of(c));
      expect_same_sums(together, alone);
    }
  }
}

TEST(AttentionSums, OfAnEntryAndOfSomeQueriesAreThoseOfAll) {
  on_every_isa([] {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      const Case<float> c = random_case<float>(seed + 14000);
      SCOPED_TRACE(c.text);
      attention_forward(c.forward());
      Sums<float> all(c, 0);
      attention_sums(all.of(c));
      const auto expect_part = [&](const Case<float>& one, int dim, int64_t begin, int64_t end) {
        attention_forward(one.forward());
        Sums<float> some(one, 0);
        attention_sums(some.of(one));
        expect_same_bits("sum", some.sum, part(all.sum, dim, begin, end));
        expect_same_bits("entropy", some.entropy, part(all.entropy, dim, begin, end));
        expect_same_bits("distance", some.distance, part(all.distance, dim, begin, end));
      };
      for (int64_t b = 0; b < c.n.B; ++b) expect_part(one_entry(c, b), 0, b, b + 1);
      if (c.q_begin.exists() || c.q_len.exists() || c.n.Tq < 2) continue;
      expect_part(some_queries(c, 0, c.n.Tq / 2), 2, 0, c.n.Tq / 2);
      expect_part(some_queries(c, c.n.Tq / 2, c.n.Tq), 2, c.n.Tq / 2, c.n.Tq);
    }
  });
}

// ---- infinity and NaN

TEST(AttentionSums, KeepNaNToTheRowsThatSeeIt) {
  on_every_isa([] {
    for (const int64_t length : {40, 150, 300}) {
      Case<float> c({1, length, length, 1, 1, 8, 8});
      RandomStream random(3, 9, 0);
      randomize(c.q, random);
      randomize(c.k, random);
      c.right = 0;
      const int64_t bad = length - 20;
      c.k(0, bad, 0, 3) = kNaN<float>;
      attention_forward(c.forward());
      Sums<float> sums(c, 1);
      for (int64_t i = 0; i < length; ++i) sums.chosen(0, i, 0) = bad;
      attention_sums(sums.of(c));
      for (int64_t i = 0; i < length; ++i) {
        for (const auto* x : {&sums.sum, &sums.entropy, &sums.distance}) {
          EXPECT_EQ(std::isnan((*x)(0, 0, i)), i >= bad) << "row " << i << " of " << length;
        }
        EXPECT_EQ(std::isnan(sums.weights(0, 0, i, 0)), i >= bad) << "row " << i << " of " << length;
        if (i >= bad) continue;
        EXPECT_EQ(sums.weights(0, 0, i, 0), 0) << "row " << i << " of " << length;
      }
    }
  });
}

TEST(AttentionSums, TakeScoresThatAreFarBelowTheLargestAsNothing) {
  // scores of -inf and of some -1e30 are visible, and their weights 0
  Case<float> c({1, 1, 3, 1, 1, 1, 1});
  c.q(0, 0, 0, 0) = 1;
  c.k(0, 1, 0, 0) = -kInf<float>;
  c.k(0, 2, 0, 0) = -1e30f;
  attention_forward(c.forward());
  Sums<float> sums(c, 0);
  attention_sums(sums.of(c));
  EXPECT_EQ(sums.sum(0, 0, 0), 1);
  EXPECT_EQ(sums.entropy(0, 0, 0), 0);
  EXPECT_EQ(sums.distance(0, 0, 0), 0);
}

// ---- what is refused and what may be absent

TEST(AttentionSums, RefuseWhatDoesNotFit) {
  Case<float> c({2, 6, 7, 4, 2, 8, 5});
  attention_forward(c.forward());
  const Sums<float> sums(c, 3);
  const auto expect_refusal = [&](const std::string& text, const std::function<void(AttentionSums<float>&)>& spoil) {
    AttentionSums<float> args = sums.of(c);
    spoil(args);
    try {
      attention_sums(args);
      ADD_FAILURE() << "accepted; expected: " << text;
    } catch (const LogicError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("attention_sums"), std::string::npos) << error.what();
    }
    EXPECT_EQ(sums.sum(0, 0, 0), Sums<float>(c, 0).sum(0, 0, 0)) << "written before it was refused";
  };
  const Tensor<double, 3> narrow({2, 4, 5});
  const Tensor<int64_t, 3> few({2, 6, 2});
  expect_refusal("sum (2,4,5); wanted (2,4,6)", [&](auto& args) { args.sum = narrow.view(); });
  expect_refusal("entropy (2,4,5); wanted (2,4,6)", [&](auto& args) { args.entropy = narrow.view(); });
  expect_refusal("distance (2,4,5); wanted (2,4,6)", [&](auto& args) { args.distance = narrow.view(); });
  expect_refusal("weights (2,4,6,3); wanted (2,4,6,2)", [&](auto& args) { args.chosen = few.view(); });
  expect_refusal("chosen (0,0,0); wanted (2,6,0)", [&](auto& args) { args.chosen = {}; });
  expect_refusal("weights (0,0,0,0); wanted (2,4,6,3)", [&](auto& args) { args.weights = {}; });
  expect_refusal("batches differ", [&](auto& args) { args.k = args.k.slice(0, 0, 1); });
  expect_refusal("statistics (0,0,0); wanted (2,4,6)", [&](auto& args) { args.statistics = {}; });
  expect_refusal("distance shares memory with entropy", [&](auto& args) { args.distance = args.entropy; });
  expect_refusal("left -1 is negative", [&](auto& args) { args.pattern.left = -1; });
}

TEST(AttentionSums, GiveEachOutputAloneAsWithTheOthers) {
  const Case<float> c = random_case<float>(15000);
  attention_forward(c.forward());
  RandomStream random(1, 6, 0);
  Sums<float> all(c, 2);
  all.choose(random, c.n.Tk);
  attention_sums(all.of(c));
  for (int wanted = 0; wanted < 4; ++wanted) {
    Sums<float> one = all;
    one.poison();
    AttentionSums<float> args = one.of(c);
    if (wanted != 0) args.sum = {};
    if (wanted != 1) args.entropy = {};
    if (wanted != 2) args.distance = {};
    if (wanted != 3) args.chosen = {};
    if (wanted != 3) args.weights = {};
    attention_sums(args);
    if (wanted == 0) expect_same_bits("sum", one.sum, all.sum);
    if (wanted == 1) expect_same_bits("entropy", one.entropy, all.entropy);
    if (wanted == 2) expect_same_bits("distance", one.distance, all.distance);
    if (wanted == 3) expect_same_bits("weights", one.weights, all.weights);
  }
}

}  // namespace
}  // namespace headlight
