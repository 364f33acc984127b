// Attention by itself, against the multiply-add rate measured in the same rounds; useful work only (visible pairs).
//   bench_attention [FILTER]            forward and backward, causal and full: shapes whose text contains FILTER
//   bench_attention --explain [FILTER]  the weights of all rows, sums and head scores, beside a forward
//   bench_attention --scaling           time for each visible pair and memory, from 512 to 32,768 tokens
// With --json as JSON. HEADLIGHT_THREADS and HEADLIGHT_ISA count. Peers are in compare_attention.sh.

#include "headlight/kernels/attention.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "ceiling.h"
#include "data.h"
#include "headlight/explain/head_scores.h"
#include "headlight/kernels/attention_sums.h"
#include "headlight/model/run.h"
#include "report.h"

namespace headlight::bench {
namespace {

constexpr int kRounds = 15;

struct Shape {
  int64_t B, H, T, K;

  std::string text() const { return fmt::format("B{} H{} T{} K{}", B, H, T, K); }
};

// long sequences, then those of training at widths 384, 128 and 64
constexpr Shape kShapes[] = {{1, 12, 1024, 64}, {1, 12, 4096, 64}, {2, 8, 512, 64}, {1, 32, 2048, 128},
                             {8, 6, 256, 64},   {32, 4, 64, 32},   {32, 4, 96, 16}};

// Attention of one pattern over tensors of its own.
class Attention {
 public:
  Attention(const Shape& shape, bool causal) : s_(shape), statistics_(s_.B * s_.H * s_.T) {
    pattern_.scale = 1 / std::sqrt(static_cast<float>(s_.K));
    if (causal) pattern_.right = 0;
    const int64_t per_head = causal ? s_.T * (s_.T + 1) / 2 : s_.T * s_.T;
    pairs_ = static_cast<double>(s_.B * s_.H) * static_cast<double>(per_head);
  }

  double pairs() const { return pairs_; }
  // scores and values of each visible pair: a multiply and an add for each of K columns, twice
  double forward_operations() const { return pairs_ * 4 * static_cast<double>(s_.K); }
  double backward_operations() const { return 2.5 * forward_operations(); }

  void forward() {
    attention_forward({.q = q_, .k = k_, .v = v_, .o = o_, .statistics = statistics(), .pattern = pattern_});
  }
  void backward() {
    attention_backward({.q = q_,
                        .k = k_,
                        .v = v_,
                        .o = o_,
                        .statistics = statistics(),
                        .d_o = d_o_,
                        .dq = dq_,
                        .dk = dk_,
                        .dv = dv_,
                        .pattern = pattern_});
  }
  // Calls use(weights), (B, heads, rows, T), for all rows of all heads, so many at a time.
  template <class Use>
  void rows(int64_t heads, int64_t rows, Use use) {
    const int64_t most = s_.B * heads * std::min(rows, s_.T) * s_.T;
    if (weights_.count() < most) weights_ = Buffer<float>(most);
    for (int64_t head = 0; head < s_.H; head += heads) {
      for (int64_t row = 0; row < s_.T; row += rows) {
        const View<float, 4> weights =
            weights_.view<4>({s_.B, std::min(heads, s_.H - head), std::min(rows, s_.T - row), s_.T});
        attention_rows({.q = q_,
                        .k = k_,
                        .statistics = statistics(),
                        .head_begin = head,
                        .row_begin = row,
                        .weights = weights,
                        .pattern = pattern_});
        use(weights);
      }
    }
  }
  // The sums of all rows, and the weight of the token before.
  void sums(bool moments) {
    const std::array<int64_t, 3> of_rows{s_.B, s_.H, s_.T};
    const int64_t rows = s_.B * s_.H * s_.T;
    if (sums_.count() == 0) {
      sums_ = Buffer<double>(3 * rows);
      before_ = Buffer<int64_t>(s_.B * s_.T);
      of_before_ = Buffer<float>(rows);
      for (int64_t i = 0; i < before_.count(); ++i) before_[i] = i % s_.T - 1;
    }
    AttentionSums<float> args{.q = q_, .k = k_, .statistics = statistics(), .sum = sums_.view<3>(of_rows)};
    args.chosen = before_.view<3>({s_.B, s_.T, 1});
    args.weights = of_before_.view<4>({s_.B, s_.H, s_.T, 1});
    args.pattern = pattern_;
    if (moments) {
      args.entropy = sums_.view<3>(of_rows, rows);
      args.distance = sums_.view<3>(of_rows, 2 * rows);
    }
    attention_sums(args);
  }

 private:
  View<float, 4> tensor() { return {data_.vector(s_.B * s_.T * s_.H * s_.K).data, {s_.B, s_.T, s_.H, s_.K}}; }
  View<RowStatistic<float>, 3> statistics() { return statistics_.view<3>({s_.B, s_.H, s_.T}); }

  Shape s_;
  Data data_;
  AttentionPattern<float> pattern_;
  double pairs_;
  Buffer<RowStatistic<float>> statistics_;
  Buffer<float> weights_, of_before_;
  Buffer<double> sums_;
  Buffer<int64_t> before_;
  View<float, 4> q_ = tensor(), k_ = tensor(), v_ = tensor(), o_ = tensor();
  View<float, 4> d_o_ = tensor(), dq_ = tensor(), dk_ = tensor(), dv_ = tensor();
};

void add_rates(Report& report, const Shape& s) {
  Attention causal(s, true), full(s, false);
  std::vector<Work> all{multiply_add_ceiling(default_pool().threads())};
  for (Attention* attention : {&causal, &full}) {
    const std::string kind = attention == &causal ? "causal" : "full";
    all.push_back({"forward, " + kind, attention->forward_operations(), [=] { attention->forward(); }});
    all.push_back({"backward, " + kind, attention->backward_operations(), [=] { attention->backward(); }});
  }
  report.add(s.text(), all, "GFLOP/s");
}

// ---- weights and scores ------------------------------------------------------------------------------------

// A model of one block whose attention has the shape, for the scores as the library computes them.
struct Scored {
  explicit Scored(const Shape& s)
      : model({.vocabulary = 4096, .context = s.T, .width = s.H * s.K, .blocks = 1, .heads = s.H}),
        repeated(repeat_random_tokens(model.config(), {.lengths = {s.T / 2}, .sequences = s.B})) {}

  // what head_scores() begins with
  void forward() {
    Run run(model, repeated.batch.size, repeated.batch.time,
            {.logits = false, .capture = {"blocks.*.attn.hook_pattern"}});
    headlight::forward(model, repeated.batch, run);
  }

  Model model;
  RepeatedBatch repeated;
};

// Medians in forwards: the weights of all rows by few rows of all heads or by one head, their sums, and the scores
// without the model's forward that they begin with.
nlohmann::json explain_costs(const Shape& s, bool json) {
  constexpr int64_t kRowsAtOnce = 32, kRowsOfOneHead = 256;
  Attention causal(s, true), full(s, false);
  Scored scored(s);
  double unused = 0;
  const auto ignore = [](const View<float, 4>&) {};
  std::vector<Work> all;
  std::vector<std::array<std::size_t, 2>> costs;  // what is measured in which forward
  for (Attention* attention : {&causal, &full}) {
    const std::string kind = attention == &causal ? ", causal" : ", full";
    const std::size_t forward = all.size();
    const auto add = [&](const std::string& name, std::function<void()> run) {
      costs.push_back({all.size(), forward});
      all.push_back({name + kind, 0, std::move(run)});
    };
    all.push_back({"forward" + kind, 0, [=] { attention->forward(); }});
    add("rows of all heads", [=] { attention->rows(s.H, kRowsAtOnce, ignore); });
    add("rows of one head", [=] { attention->rows(1, kRowsOfOneHead, ignore); });
    add("sums", [=] { attention->sums(false); });
    add("sums, entropy, distance", [=] { attention->sums(true); });
  }
  all.push_back({"model's forward", 0, [&] { scored.forward(); }});
  all.push_back({"scores and forward", 0, [&] { unused += head_scores(scored.model, scored.repeated).row_sum_error; }});
  all.push_back({"text scores and forward", 0,
                 [&] { unused += text_scores(scored.model, scored.repeated.batch, "").row_sum_error; }});
  measure(all, kRounds);
  std::vector<std::pair<std::string, double>> in_forwards;
  for (const auto& [work, forward] : costs) {
    in_forwards.emplace_back(all[work].name, all[work].median() / all[forward].median());
  }
  const double model = all[all.size() - 3].median();
  in_forwards.emplace_back("head scores, causal", (all[all.size() - 2].median() - model) / all[0].median());
  in_forwards.emplace_back("text scores, causal", (all[all.size() - 1].median() - model) / all[0].median());
  nlohmann::json out{{"shape", s.text()}};
  if (!json) fmt::print("\n{:<32} {:>9} {:>10}\n", s.text(), "us", "forwards");
  for (const Work& work : all) {
    out["seconds"][work.name] = work.median();
    if (!json) fmt::print("{:<32} {:>9.1f}\n", work.name, work.median() * 1e6);
  }
  for (const auto& [name, cost] : in_forwards) {
    out["forwards"][name] = cost;
    if (!json) fmt::print("{:<32} {:>9} {:>10.2f}\n", name, "", cost);
  }
  return out;
}

// ---- scaling -----------------------------------------------------------------------------------------------

// A number of kilobytes in /proc/self/status.
int64_t status_bytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) return 1024 * std::stoll(line.substr(field.size() + 1));
  }
  return 0;
}

// Largest memory of the process since the last call or the start.
int64_t peak_bytes() {
  const int64_t bytes = status_bytes("VmHWM");
  std::ofstream("/proc/self/clear_refs") << "5";
  return bytes;
}

// Time and memory of one length, causal; in a process of its own, as working memory is kept for the next call.
nlohmann::json scaling_of(const Shape& s) {
  constexpr int kFewRounds = 7;
  Attention attention(s, true);
  peak_bytes();
  const int64_t operands = status_bytes("VmRSS");
  attention.forward();
  const int64_t forward = peak_bytes() - operands;
  attention.backward();
  const int64_t backward = peak_bytes() - operands;
  std::vector<Work> all{multiply_add_ceiling(default_pool().threads()),
                        {"forward", attention.forward_operations(), [&] { attention.forward(); }},
                        {"backward", attention.backward_operations(), [&] { attention.backward(); }}};
  measure(all, kFewRounds);
  nlohmann::json out{{"T", s.T}, {"operands", operands}};
  for (const Work* work : {&all[1], &all[2]}) {
    out[work->name] = {{"seconds", work->median()},
                       {"seconds_per_pair", work->median() / attention.pairs()},
                       {"share", work->rate() / all[0].rate()},
                       {"bytes", work == &all[1] ? forward : backward}};
  }
  return out;
}

nlohmann::json in_child(const Shape& s) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = scaling_of(s).dump();
    const bool whole = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(whole ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof(part))) > 0;) text.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return nlohmann::json::parse(text);
}

void scale(bool json) {
  constexpr int64_t kHeads = 2, kWidth = 64;
  nlohmann::json rows = nlohmann::json::array();
  if (!json) {
    fmt::print("causal, B1 H{} K{}; memory: most that was taken beyond the operands\n", kHeads, kWidth);
    fmt::print("{:>6} | {:>10} {:>8} {:>6} {:>8} {:>7} | {:>10} {:>8} {:>6} {:>8} {:>7}\n", "T", "forward us",
               "ps/pair", "share", "KiB", "B/row", "backward", "ps/pair", "share", "KiB", "B/row");
  }
  for (int64_t T = 512; T <= 32768; T *= 2) {
    rows.push_back(in_child({1, kHeads, T, kWidth}));
    if (json) continue;
    fmt::print("{:>6}", T);
    for (const char* kind : {"forward", "backward"}) {
      const nlohmann::json& row = rows.back()[kind];
      const double bytes = row["bytes"].get<double>();
      fmt::print(" | {:>10.1f} {:>8.1f} {:>5.1f}% {:>8.0f} {:>7.0f}", row["seconds"].get<double>() * 1e6,
                 row["seconds_per_pair"].get<double>() * 1e12, 100 * row["share"].get<double>(), bytes / 1024,
                 bytes / static_cast<double>(T * kHeads));
    }
    fmt::print("\n");
  }
  if (json) {
    const nlohmann::json all{{"isa", active_isa()}, {"threads", default_pool().threads()}, {"results", rows}};
    fmt::print("{}\n", all.dump(2));
  }
}

// ----------------------------------------------------------------------------------------------------------------

void explain(bool json, const std::string& filter) {
  // a model's run takes memory anew at each call: what was given back to the system would be cleared again
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  if (!json) fmt::print("{}, {} threads, medians of {} rounds\n", active_isa(), default_pool().threads(), kRounds);
  nlohmann::json all = nlohmann::json::array();
  for (const Shape& s : kShapes) {
    if (s.text().find(filter) != std::string::npos) all.push_back(explain_costs(s, json));
  }
  if (json) fmt::print("{}\n", all.dump(2));
}

void rates(bool json, const std::string& filter) {
  Report report(json, kRounds);
  for (const Shape& s : kShapes) {
    if (s.text().find(filter) != std::string::npos) add_rates(report, s);
  }
  report.finish();
}

int run(const std::vector<std::string>& words) {
  bool json = false;
  std::string mode, filter;
  for (const std::string& word : words) {
    if (word == "--json") {
      json = true;
    } else if (word == "--explain" || word == "--scaling") {
      mode = word;
    } else {
      filter = word;
    }
  }
  if (mode == "--explain") {
    explain(json, filter);
  } else if (mode == "--scaling") {
    scale(json);
  } else {
    rates(json, filter);
  }
  return 0;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run({argv + 1, argv + argc}); }
