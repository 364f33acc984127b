// headlight lab scale: why scores are divided by sqrt(d_k), measured.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "findings.h"
#include "groups.h"
#include "headlight/base/random.h"
#include "headlight/kernels/attention.h"
#include "headlight/tensor/buffer.h"

namespace headlight::cli {
namespace {

// The textbook's setting: standard normal queries and keys.
constexpr int64_t kWidth = 128;  // d_k
constexpr int64_t kKeys = 16;
constexpr int64_t kDraws = 5000;
constexpr int64_t kAtOnce = 500;  // draws that one call of the kernel takes
constexpr uint32_t kStream = 0x5ca1e;

// The textbook's figures, and how far another draw may fall from them: half of their last digit and three standard
// errors of the difference between two draws of 5000 (measured over 24 seeds).
struct Expected {
  double value;
  double tolerance;
  int decimals;
};
struct Study {
  const char* title;
  double scale;
  Expected median_largest, mean_entropy, mean_trace, score_deviation;
};

// What 5000 rows of weights show.
struct Measured {
  std::vector<double> largest;  // of each row
  double entropy = 0;           // sum over rows, nats
  double trace = 0;             // of the softmax's Jacobian diag(p) - p p^T: sum of p (1 - p)
  double squares = 0;           // of the scores
  double scores = 0;
};

struct Draws {
  Buffer<float> q, k, v;
};

Draws draw(uint64_t seed, int64_t first) {
  Draws d{Buffer<float>(kAtOnce * kWidth), Buffer<float>(kAtOnce * kKeys * kWidth), Buffer<float>(kAtOnce * kKeys)};
  for (int64_t i = 0; i < kAtOnce; ++i) {
    RandomStream random(seed, kStream, static_cast<uint64_t>(first + i));
    for (int64_t c = 0; c < kWidth; ++c) d.q[i * kWidth + c] = static_cast<float>(random.normal());
    for (int64_t c = 0; c < kKeys * kWidth; ++c) d.k[i * kKeys * kWidth + c] = static_cast<float>(random.normal());
  }
  return d;
}

void add_rows(const View<const float, 4>& weights, Measured& m) {
  for (int64_t i = 0; i < weights.size(0); ++i) {
    double largest = 0, entropy = 0, squares = 0;
    for (int64_t j = 0; j < kKeys; ++j) {
      const double p = static_cast<double>(weights(i, 0, 0, j));
      largest = std::max(largest, p);
      if (p > 0) entropy -= p * std::log(p);
      squares += p * p;
    }
    m.largest.push_back(largest);
    m.entropy += entropy;
    m.trace += 1 - squares;
  }
}

void add_scores(const View<const float, 4>& q, const View<const float, 4>& k, double scale, Measured& m) {
  for (int64_t i = 0; i < q.size(0); ++i) {
    for (int64_t j = 0; j < kKeys; ++j) {
      double score = 0;
      for (int64_t c = 0; c < kWidth; ++c) score += double{q(i, 0, 0, c)} * double{k(i, j, 0, c)};
      m.squares += scale * score * scale * score;
      m.scores += 1;
    }
  }
}

Measured measure(uint64_t seed, double scale) {
  Measured m;
  Buffer<float> out(kAtOnce), weights(kAtOnce * kKeys);
  Buffer<RowStatistic<float>> statistics(kAtOnce);
  for (int64_t first = 0; first < kDraws; first += kAtOnce) {
    Draws d = draw(seed, first);
    AttentionForward<float> forward;
    forward.q = d.q.view<4>({kAtOnce, 1, 1, kWidth});
    forward.k = d.k.view<4>({kAtOnce, kKeys, 1, kWidth});
    forward.v = d.v.view<4>({kAtOnce, kKeys, 1, 1});
    forward.o = out.view<4>({kAtOnce, 1, 1, 1});
    forward.statistics = statistics.view<3>({kAtOnce, 1, 1});
    forward.pattern.scale = static_cast<float>(scale);
    attention_forward(forward);
    AttentionRows<float> rows;
    rows.q = forward.q;
    rows.k = forward.k;
    rows.statistics = forward.statistics;
    rows.weights = weights.view<4>({kAtOnce, 1, 1, kKeys});
    rows.pattern = forward.pattern;
    attention_rows(rows);
    add_rows(rows.weights, m);
    add_scores(forward.q, forward.k, scale, m);
  }
  return m;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_study(const Study& study, const Measured& m, Findings& findings) {
  findings.section(study.title);
  const auto add = [&](const char* what, double measured, const Expected& e) {
    findings.equal(fmt::format("{} ±{:g}", what, e.tolerance), {measured}, {e.value}, e.tolerance, e.decimals);
  };
  const double draws = static_cast<double>(kDraws);
  add("median largest weight", median(m.largest), study.median_largest);
  add("mean entropy, nats", m.entropy / draws, study.mean_entropy);
  add("mean trace of the softmax Jacobian", m.trace / draws, study.mean_trace);
  add("standard deviation of scores", std::sqrt(m.squares / m.scores), study.score_deviation);
}

class LabScale : public Command {
 public:
  Description description() const override {
    return {"lab scale",
            "textbook experiments",
            "why scores are divided by sqrt(d_k)",
            "Draws 5000 queries with 16 keys each, standard normal, d_k = 128, and runs them through the attention "
            "kernel with the scale 1 and 1/sqrt(d_k). Unscaled, one key takes all the weight and the softmax passes "
            "hardly any gradient (its Jacobian's trace is near 0). Another seed is another draw; the tolerance is half "
            "of the last digit and three standard errors.",
            {{"headlight lab scale", "measured beside expected; exit code 1 if anything differs"}}};
  }

  void declare(Options& options) override {
    options.group("experiment");
    options.seed("--seed", seed_, "of the draws");
    add_compute_options(options, threads_);
  }

  int run(const Options&, Console& console) override {
    use_threads(threads_);
    const Study unscaled{"unscaled: q . k", 1, {0.978, 0.007, 3}, {0.28, 0.027, 2}, {0.153, 0.013, 3}, {11.3, 0.17, 1}};
    const Study scaled{"scaled: q . k / sqrt(d_k)", 1 / std::sqrt(double{kWidth}),
                       {0.224, 0.006, 3},           {2.36, 0.019, 2},
                       {0.867, 0.0045, 3},          {1.0, 0.06, 1}};
    Findings findings;
    for (const Study& study : {unscaled, scaled}) add_study(study, measure(seed_, study.scale), findings);
    findings.section("for comparison");
    findings.equal("entropy of uniform weights, ln 16", {std::log(double{kKeys})}, {2.7726}, 0.00005, 4);
    if (console.wants_json()) {
      console.print_json({{"lab", "scale"},
                          {"seed", seed_},
                          {"draws", kDraws},
                          {"keys", kKeys},
                          {"head_width", kWidth},
                          {"findings", findings.json()},
                          {"holds", findings.all_hold()}});
    } else {
      console.print(fmt::format("{} draws of a query and {} keys, standard normal, d_k = {}, seed {}\n", kDraws, kKeys,
                                kWidth, seed_));
      console.print(findings.text(console.out()));
    }
    return findings.all_hold() ? 0 : 1;
  }

 private:
  uint64_t seed_ = 1;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> lab_scale_command() { return std::make_unique<LabScale>(); }

}  // namespace headlight::cli
