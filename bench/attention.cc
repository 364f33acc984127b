// Attention forward and backward, causal and full: operations per second of useful work (visible pairs only) and
// the share of the multiply-add rate measured in the same rounds.
// bench_attention [--json] [FILTER]: shapes whose text contains FILTER. HEADLIGHT_THREADS and HEADLIGHT_ISA count.

#include "headlight/kernels/attention.h"

#include <cmath>

#include "ceiling.h"
#include "data.h"
#include "report.h"

namespace headlight::bench {
namespace {

constexpr int kRounds = 15;

struct Shape {
  int64_t B, H, T, K;
};

// long sequences, then those of training at widths 384, 128 and 64
constexpr Shape kShapes[] = {{1, 12, 1024, 64}, {1, 12, 4096, 64}, {2, 8, 512, 64}, {1, 32, 2048, 128},
                             {8, 6, 256, 64},   {32, 4, 64, 32},   {32, 4, 96, 16}};

View<float, 4> tensor(Data& data, const Shape& s) {
  return {data.vector(s.B * s.T * s.H * s.K).data, {s.B, s.T, s.H, s.K}};
}

void add(Report& report, const std::string& text, const Shape& s) {
  Data data;
  const View<float, 4> q = tensor(data, s), k = tensor(data, s), v = tensor(data, s), d_o = tensor(data, s);
  const View<float, 4> dq = tensor(data, s), dk = tensor(data, s), dv = tensor(data, s);
  std::vector<Work> all{multiply_add_ceiling(default_pool().threads())};
  Buffer<RowStatistic<float>> statistics(2 * s.B * s.H * s.T);
  for (const bool causal : {true, false}) {
    const View<float, 4> o = tensor(data, s);
    const View<RowStatistic<float>, 3> rows = statistics.view<3>({s.B, s.H, s.T}, causal ? 0 : s.B * s.H * s.T);
    AttentionPattern<float> pattern;
    pattern.scale = 1 / std::sqrt(static_cast<float>(s.K));
    if (causal) pattern.right = 0;
    // scores and values of each visible pair: a multiply and an add for each of K columns, twice
    const double pairs = static_cast<double>(s.B * s.H) * static_cast<double>(causal ? s.T * (s.T + 1) / 2 : s.T * s.T);
    const double forward = pairs * 4 * static_cast<double>(s.K);
    const std::string kind = causal ? "causal" : "full";
    all.push_back({"forward, " + kind, forward, [=] {
                     attention_forward({.q = q, .k = k, .v = v, .o = o, .statistics = rows, .pattern = pattern});
                   }});
    all.push_back({"backward, " + kind, 2.5 * forward, [=] {
                     attention_backward({.q = q,
                                         .k = k,
                                         .v = v,
                                         .o = o,
                                         .statistics = rows,
                                         .d_o = d_o,
                                         .dq = dq,
                                         .dk = dk,
                                         .dv = dv,
                                         .pattern = pattern});
                   }});
  }
  report.add(text, all, "GFLOP/s");
}

void run(bool json, const std::string& filter) {
  Report report(json, kRounds);
  for (const Shape& s : kShapes) {
    const std::string text = fmt::format("B{} H{} T{} K{}", s.B, s.H, s.T, s.K);
    if (text.find(filter) != std::string::npos) add(report, text, s);
  }
  report.finish();
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  bool json = false;
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      json = true;
    } else {
      filter = word;
    }
  }
  headlight::bench::run(json, filter);
  return 0;
}
