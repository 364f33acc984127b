// headlight lab worked: the textbook's three-token example, forward and backward, and what it is there to show.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "command.h"
#include "findings.h"
#include "groups.h"
#include "headlight/base/random.h"
#include "headlight/kernels/attention.h"
#include "headlight/model/run.h"
#include "headlight/tensor/buffer.h"

namespace headlight::cli {
namespace {

// Figures of the textbook's example: Q = K, d_k = d_v = 2, to six decimals.
constexpr int64_t kTokens = 3;
constexpr int64_t kWidth = 2;
using Rows = std::vector<std::vector<double>>;
const Rows kKeys{{1, 0}, {0, 1}, {1, 1}};
const Rows kValues{{1, 0}, {0, 2}, {3, 3}};

// half of the sixth decimal, and the rounding of fp32 for numbers up to 4
constexpr double kTolerance = 0.5e-6 + 4e-7;

struct Variant {
  const char* title;
  bool causal;
  bool scaled;
  Rows weights, output;
};
const std::array<Variant, 4> kVariants{{
    {"causal, scores divided by sqrt(2)",
     true,
     true,
     {{1, 0, 0}, {0.330238, 0.669762, 0}, {0.248255, 0.248255, 0.503490}},
     {{1, 0}, {0.330238, 1.339523}, {1.758725, 2.006980}}},
    {"every token sees all, scores divided by sqrt(2)",
     false,
     true,
     {{0.401112, 0.197776, 0.401112}, {0.197776, 0.401112, 0.401112}, {0.248255, 0.248255, 0.503490}},
     {{1.604448, 1.598888}, {1.401112, 2.005560}, {1.758725, 2.006980}}},
    {"causal, unscaled",
     true,
     false,
     {{1, 0, 0}, {0.268941, 0.731059, 0}, {0.211942, 0.211942, 0.576117}},
     {{1, 0}, {0.268941, 1.462117}, {1.940292, 2.152234}}},
    {"every token sees all, unscaled",
     false,
     false,
     {{0.422319, 0.155362, 0.422319}, {0.155362, 0.422319, 0.422319}, {0.211942, 0.211942, 0.576117}},
     {{1.689275, 1.577681}, {1.422319, 2.111594}, {1.940292, 2.152234}}},
}};

template <class T>
Buffer<T> packed(const Rows& rows) {
  Buffer<T> out(static_cast<int64_t>(rows.size() * rows[0].size()));
  int64_t i = 0;
  for (const std::vector<double>& row : rows) {
    for (double x : row) out[i++] = static_cast<T>(x);
  }
  return out;
}

template <class T>
std::vector<double> row_of(const Buffer<T>& values, int64_t row, int64_t width) {
  return {values.begin() + row * width, values.begin() + (row + 1) * width};
}

// Attention of one head over rows of queries, keys and values, with all that forward, rows and backward write.
template <class T>
struct Example {
  int64_t queries, keys;
  Buffer<T> q, k, v, o, weights;
  Buffer<RowStatistic<T>> statistics;
  AttentionPattern<T> pattern;

  Example(const Rows& q_rows, const Rows& k_rows, const Rows& v_rows, double scale, bool causal)
      : queries(static_cast<int64_t>(q_rows.size())),
        keys(static_cast<int64_t>(k_rows.size())),
        q(packed<T>(q_rows)),
        k(packed<T>(k_rows)),
        v(packed<T>(v_rows)),
        o(queries * kWidth),
        weights(queries * keys),
        statistics(queries) {
    pattern.scale = static_cast<T>(scale);
    if (causal) pattern.right = 0;
  }

  View<T, 4> as_rows(Buffer<T>& x) { return x.template view<4>({1, x.count() / kWidth, 1, kWidth}); }
  View<RowStatistic<T>, 3> as_statistics() { return statistics.template view<3>({1, 1, queries}); }

  void forward() {
    AttentionForward<T> args;
    args.q = as_rows(q);
    args.k = as_rows(k);
    args.v = as_rows(v);
    args.o = as_rows(o);
    args.statistics = as_statistics();
    args.pattern = pattern;
    attention_forward(args);
    AttentionRows<T> rows;
    rows.q = as_rows(q);
    rows.k = as_rows(k);
    rows.statistics = as_statistics();
    rows.weights = weights.template view<4>({1, 1, queries, keys});
    rows.pattern = pattern;
    attention_rows(rows);
  }
};

double scale_of(bool scaled) { return scaled ? 1 / std::sqrt(double{kWidth}) : 1; }

void show_variant(const Variant& variant, Findings& findings) {
  Example<float> example(kKeys, kKeys, kValues, scale_of(variant.scaled), variant.causal);
  example.forward();
  findings.section(variant.title);
  for (int64_t i = 0; i < kTokens; ++i) {
    const auto row = static_cast<std::size_t>(i);
    findings.equal(fmt::format("weights of token {}", i + 1), row_of(example.weights, i, kTokens), variant.weights[row],
                   kTolerance);
  }
  for (int64_t i = 0; i < kTokens; ++i) {
    const auto row = static_cast<std::size_t>(i);
    findings.equal(fmt::format("output of token {}", i + 1), row_of(example.o, i, kWidth), variant.output[row],
                   kTolerance);
  }
}

// Attention as a dictionary that is looked up softly: the larger the scores, the harder.
void show_lookup(Findings& findings) {
  struct Limit {
    const char* title;
    double factor;
    std::vector<double> weights, output;
  };
  const Limit limits[] = {
      {"scores x 1", 1, {0.248255, 0.248255, 0.503490}, {1.758725, 2.006980}},
      {"scores x 10, near the best key's value", 10, {0.000848, 0.000848, 0.998304}, {2.995761, 2.996608}},
      {"scores x 1000, the best key's value", 1000, {0, 0, 1}, {3, 3}},
      {"scores x 0, the mean of the values", 0, {0.333333, 0.333333, 0.333333}, {1.333333, 1.666667}},
  };
  findings.section("the soft dictionary: query (1, 1) and its two limits");
  for (const Limit& limit : limits) {
    Example<float> example({{1, 1}}, kKeys, kValues, limit.factor * scale_of(true), false);
    example.forward();
    findings.equal(limit.title, row_of(example.weights, 0, kTokens), limit.weights, kTolerance);
    findings.equal("  output", row_of(example.o, 0, kWidth), limit.output, kTolerance);
  }
}

// The loss is the second number that token 3 gives out, causal and scaled.
template <class T>
struct Gradients {
  Buffer<T> dq, dk, dv, ds;
};

template <class T>
Gradients<T> differentiate(Example<T>& example) {
  Gradients<T> g{Buffer<T>(kTokens * kWidth), Buffer<T>(kTokens * kWidth), Buffer<T>(kTokens * kWidth),
                 Buffer<T>(kTokens * kTokens)};
  Buffer<T> d_o(kTokens * kWidth);
  d_o[(kTokens - 1) * kWidth + 1] = T(1);
  // a bias of 0: its gradient is that of the scores
  Buffer<T> bias(kTokens * kTokens);
  example.pattern.bias = bias.template view<4>({1, 1, kTokens, kTokens});
  example.forward();
  AttentionBackward<T> args;
  args.q = example.as_rows(example.q);
  args.k = example.as_rows(example.k);
  args.v = example.as_rows(example.v);
  args.o = example.as_rows(example.o);
  args.statistics = example.as_statistics();
  args.d_o = example.as_rows(d_o);
  args.dq = example.as_rows(g.dq);
  args.dk = example.as_rows(g.dk);
  args.dv = example.as_rows(g.dv);
  args.dbias = g.ds.template view<4>({1, 1, kTokens, kTokens});
  args.pattern = example.pattern;
  attention_backward(args);
  example.pattern.bias = {};
  return g;
}

void show_backward(Findings& findings) {
  const Rows dq{{0, 0}, {0, 0}, {0.001225, 0.352311}};
  const Rows dk{{-0.352311, -0.352311}, {-0.001225, -0.001225}, {0.353536, 0.353536}};
  const Rows dv{{0, 0.248255}, {0, 0.248255}, {0, 0.503490}};
  Example<float> example(kKeys, kKeys, kValues, scale_of(true), true);
  const Gradients<float> g = differentiate(example);
  findings.section("backward of the loss o[3][2], causal and scaled");
  findings.equal("loss", {double{example.o[(kTokens - 1) * kWidth + 1]}}, {2.006980}, kTolerance);
  findings.equal("d loss / d scores of token 3", row_of(g.ds, kTokens - 1, kTokens), {-0.498243, -0.001733, 0.499976},
                 kTolerance);
  const auto rows = [&](const char* name, const Buffer<float>& measured, const Rows& expected) {
    for (int64_t i = 0; i < kTokens; ++i) {
      findings.equal(fmt::format("d loss / d {} of token {}", name, i + 1), row_of(measured, i, kWidth),
                     expected[static_cast<std::size_t>(i)], kTolerance);
    }
  };
  rows("query", g.dq, dq);
  rows("key", g.dk, dk);
  rows("value", g.dv, dv);
}

// Largest |gradient - (loss(x + h) - loss(x - h)) / 2h| over the entries of one input.
double difference_from_numeric(Example<double>& example, Buffer<double>& input, const Buffer<double>& gradient) {
  constexpr double kStep = 1e-6;
  double largest = 0;
  const auto loss_at = [&](int64_t i, double x) {
    const double before = input[i];
    input[i] = x;
    example.forward();
    input[i] = before;
    return example.o[(kTokens - 1) * kWidth + 1];
  };
  for (int64_t i = 0; i < input.count(); ++i) {
    const double numeric = (loss_at(i, input[i] + kStep) - loss_at(i, input[i] - kStep)) / (2 * kStep);
    largest = std::max(largest, std::abs(gradient[i] - numeric));
  }
  return largest;
}

void show_finite_differences(Findings& findings) {
  // of a step of 1e-6: its square times third derivatives of about 1, and rounding of 2e-16 over the step
  constexpr double kBound = 1e-9;
  Example<double> example(kKeys, kKeys, kValues, scale_of(true), true);
  const Gradients<double> g = differentiate(example);
  findings.section("finite differences in double, step 1e-6: largest deviation");
  findings.at_most("of d query", difference_from_numeric(example, example.q, g.dq), kBound, 9);
  findings.at_most("of d key", difference_from_numeric(example, example.k, g.dk), kBound, 9);
  findings.at_most("of d value", difference_from_numeric(example, example.v, g.dv), kBound, 9);
}

// Largest difference between the logits of the permuted tokens and the permuted logits of the tokens, of a random model
// of two blocks in which every token sees all others.
double permutation_difference(Positions positions) {
  constexpr int64_t kLength = 16;
  ModelConfig config;
  config.vocabulary = kLength;
  config.context = kLength;
  config.causal = false;
  config.positions = positions;
  Model model(config);
  initialise(model, 1);
  std::vector<int32_t> tokens(kLength), order(kLength);
  for (int32_t i = 0; i < kLength; ++i) tokens[static_cast<std::size_t>(i)] = order[static_cast<std::size_t>(i)] = i;
  RandomStream(1, 0, 0).shuffle(order);
  // tokens are 0, 1, ..., so the order is also the permuted sequence
  const Batch batch = make_batch({tokens}), permuted = make_batch({order});
  Run straight = plan(model, batch), turned = plan(model, permuted);
  forward(model, batch, straight);
  forward(model, permuted, turned);
  const View<const float, 3> a = straight.logits(), b = turned.logits();
  double largest = 0;
  for (int64_t i = 0; i < kLength; ++i) {
    for (int64_t c = 0; c < config.vocabulary; ++c) {
      const double difference = double{b(0, i, c)} - double{a(0, order[static_cast<std::size_t>(i)], c)};
      largest = std::max(largest, std::abs(difference));
    }
  }
  return largest;
}

void show_permutation(Findings& findings) {
  findings.section("16 tokens in another order, two random blocks: largest change of their logits");
  // the sums over keys run in another order: some roundings of fp32, of logits of about 1
  findings.at_most("without positions", permutation_difference(Positions::kNone), 1e-5, 5);
  findings.at_least("with rotary positions", permutation_difference(Positions::kRotary), 0.01, 2);
}

class LabWorked : public Command {
 public:
  Description description() const override {
    return {
        "lab worked",
        "textbook experiments",
        "the three-token example by hand, forward and backward",
        "Runs the attention kernel on keys (1,0), (0,1), (1,1), which are also the queries, and values (1,0), (0,2), "
        "(3,3): weights and outputs, the soft dictionary lookup between the mean and the best key, gradients and "
        "finite differences, and that attention without positions does not see the order of its tokens.",
        {{"headlight lab worked", "measured beside expected; exit code 1 if anything differs"}}};
  }

  void declare(Options& options) override {
    options.group("experiment");
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    Findings findings;
    for (const Variant& variant : kVariants) show_variant(variant, findings);
    show_lookup(findings);
    show_backward(findings);
    show_finite_differences(findings);
    show_permutation(findings);
    if (console.wants_json()) {
      console.print_json({{"lab", "worked"}, {"findings", findings.json()}, {"holds", findings.all_hold()}});
    } else {
      console.print(findings.text(console.out()));
    }
    return findings.all_hold() ? 0 : 1;
  }

 private:
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> lab_worked_command() { return std::make_unique<LabWorked>(); }

}  // namespace headlight::cli
