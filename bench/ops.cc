// The kernels that memory bounds, as GB/s and as a share of the rate at which the same threads copy a matrix of
// the same size. Counted are the bytes that must be read and written once. HEADLIGHT_THREADS and
// HEADLIGHT_ISA choose threads and instruction set; an argument chooses the shapes that it is part of.

#include <fmt/format.h>

#include <cstring>

#include "data.h"
#include "headlight/base/thread_pool.h"
#include "headlight/kernels/activation.h"
#include "headlight/kernels/adamw.h"
#include "headlight/kernels/cross_entropy.h"
#include "headlight/kernels/elementwise.h"
#include "headlight/kernels/embedding.h"
#include "headlight/kernels/isa.h"
#include "headlight/kernels/norm.h"
#include "headlight/kernels/rotary.h"
#include "headlight/kernels/softmax.h"
#include "timing.h"

namespace headlight::bench {
namespace {

constexpr int64_t kTableRows = 256;
constexpr int64_t kHeadWidth = 64;

double bytes_of(double elements) { return elements * sizeof(float); }

constexpr int64_t kCopiedAtOnce = 16384;

Work copy(Data& data, int64_t count) {
  const View<float, 1> from = data.vector(count);
  const View<float, 1> to = data.vector(count);
  return {"copy", bytes_of(2.0 * static_cast<double>(count)), [from, to, count] {
            default_pool().run((count + kCopiedAtOnce - 1) / kCopiedAtOnce, [&](int64_t task, int) {
              const int64_t begin = task * kCopiedAtOnce;
              const int64_t n = std::min(kCopiedAtOnce, count - begin);
              std::memcpy(to.data + begin, from.data + begin, static_cast<size_t>(n) * sizeof(float));
            });
          }};
}

void add_norms(std::vector<Work>& all, Data& data, int64_t rows, int64_t n) {
  const double matrix = bytes_of(static_cast<double>(rows * n));
  for (NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm}) {
    const std::string name = kind == NormKind::kLayerNorm ? "LayerNorm" : "RMSNorm";
    NormForward<float> forward;
    forward.kind = kind;
    forward.x = data.matrix(rows, n);
    forward.weight = data.vector(n);
    if (kind == NormKind::kLayerNorm) forward.bias = data.vector(n);
    forward.y = data.matrix(rows, n);
    const View<float, 1> scale = forward.scale = data.vector(rows);
    const View<float, 1> mean = forward.mean = data.vector(rows);
    all.push_back({name + " forward", 2 * matrix, [forward] { norm_forward(forward); }});
    NormBackward<float> backward;
    backward.kind = kind;
    backward.x = forward.x;
    backward.weight = forward.weight;
    backward.scale = scale;
    backward.mean = mean;
    backward.dy = data.matrix(rows, n);
    backward.dx = data.matrix(rows, n);
    backward.dweight = data.vector(n);
    if (kind == NormKind::kLayerNorm) backward.dbias = data.vector(n);
    all.push_back({name + " backward", 3 * matrix, [backward] { norm_backward(backward); }});
  }
}

void add_activations(std::vector<Work>& all, Data& data, int64_t rows, int64_t n) {
  const double matrix = bytes_of(static_cast<double>(rows * n));
  const View<float, 2> x = data.matrix(rows, n);
  const View<float, 2> l = data.matrix(rows, n);
  const View<float, 2> dy = data.matrix(rows, n);
  const View<float, 2> y = data.matrix(rows, n);
  const View<float, 2> dl = data.matrix(rows, n);
  all.push_back({"add", 3 * matrix, [=] { add<float>(x, l, y); }});
  const std::pair<Activation, std::string> named[] = {
      {Activation::kRelu, "ReLU"}, {Activation::kGelu, "GELU"}, {Activation::kGeluTanh, "GELU (tanh)"}};
  for (const auto& [f, name] : named) {
    const Activation kind = f;
    all.push_back({name + " forward", 2 * matrix, [=] { activation_forward<float>(kind, x, y); }});
    all.push_back({name + " backward", 3 * matrix, [=] { activation_backward<float>(kind, x, dy, y); }});
  }
  all.push_back({"SiLU gate forward", 3 * matrix, [=] { silu_gate_forward<float>(x, l, y); }});
  all.push_back({"SiLU gate backward", 5 * matrix, [=] { silu_gate_backward<float>(x, l, dy, y, dl); }});
}

void add_softmax(std::vector<Work>& all, Data& data, int64_t rows, int64_t n) {
  const double matrix = bytes_of(static_cast<double>(rows * n));
  const View<float, 2> x = data.matrix(rows, n);
  const View<float, 2> p = data.matrix(rows, n);
  const View<float, 2> dp = data.matrix(rows, n);
  all.push_back({"softmax forward", 2 * matrix, [=] { softmax_forward<float>(x, p); }});
  all.push_back({"softmax backward", 3 * matrix, [=] { softmax_backward<float>(x, dp, p); }});
  const CrossEntropy<float> args{
      .logits = x, .targets = data.indices(rows, n), .loss = data.vector(rows), .scale = 0.1F, .dlogits = p};
  all.push_back({"cross-entropy", 2 * matrix, [=] { cross_entropy(args); }});
}

void add_tables(std::vector<Work>& all, Data& data, int64_t rows, int64_t n) {
  const double matrix = bytes_of(static_cast<double>(rows * n));
  const View<float, 2> table = data.matrix(kTableRows, n);
  const View<float, 2> y = data.matrix(rows, n);
  const View<int32_t, 1> index = data.indices(rows, kTableRows);
  all.push_back({"embedding forward", 2 * matrix, [=] { embedding_forward<float>(index, table, y); }});
  all.push_back({"embedding backward", matrix, [=] { embedding_backward<float>(index, y, table); }});
  for (RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kAdjacent}) {
    const std::array<int64_t, 4> heads{1, rows, n / kHeadWidth, kHeadWidth};
    const Rotary<float> args{.x = {data.matrix(rows, n).data, heads},
                             .positions = {index.data, {1, rows}},
                             .cosine = data.matrix(kTableRows, kHeadWidth / 2),
                             .sine = data.matrix(kTableRows, kHeadWidth / 2),
                             .y = {y.data, heads},
                             .pairs = pairs};
    const std::string name = pairs == RotaryPairs::kHalves ? "rotary, halves" : "rotary, adjacent";
    all.push_back({name, 2 * matrix, [=] { rotary(args); }});
  }
}

void add_adamw(std::vector<Work>& all, Data& data, int64_t n) {
  AdamW<float> args;
  args.w = data.vector(n);
  args.m = data.vector(n);
  args.v = data.vector(n);
  for (int64_t i = 0; i < n; ++i) args.v(i) *= args.v(i);
  args.g = data.vector(n);
  const View<const float, 1> g = args.g;
  all.push_back({"AdamW", bytes_of(7.0 * static_cast<double>(n)), [=] { adamw_step(args); }});
  all.push_back({"sum of squares", bytes_of(static_cast<double>(n)), [=] { sum_of_squares<float>(g); }});
}

void report(const std::string& shape, std::vector<Work>& all, int rounds) {
  measure(all, rounds);
  fmt::print("\n{:<22} {:>10} {:>8} {:>8}\n", shape, "us", "GB/s", "of copy");
  for (const Work& work : all) {
    fmt::print("{:<22} {:>10.1f} {:>8.1f} {:>7.0f}%\n", work.name, work.median() * 1e6, work.rate(),
               100 * work.rate() / all.front().rate());
  }
}

void run(const std::string& filter) {
  constexpr int kRounds = 31;
  fmt::print("{}, {} threads, medians of {} interleaved rounds\n", active_isa(), default_pool().threads(), kRounds);
  const std::pair<int64_t, int64_t> shapes[] = {{2048, 128}, {2048, 384}, {2048, 1536}};
  for (const auto& [rows, n] : shapes) {
    const std::string shape = fmt::format("{} x {}", rows, n);
    if (shape.find(filter) == std::string::npos) continue;
    Data data;
    std::vector<Work> all{copy(data, rows * n)};
    add_norms(all, data, rows, n);
    add_activations(all, data, rows, n);
    add_softmax(all, data, rows, n);
    add_tables(all, data, rows, n);
    report(shape, all, kRounds);
  }
  constexpr int64_t kParameters = 10'000'000;
  const std::string shape = fmt::format("{} parameters", kParameters);
  if (shape.find(filter) == std::string::npos) return;
  Data data;
  std::vector<Work> all{copy(data, kParameters)};
  add_adamw(all, data, kParameters);
  report(shape, all, kRounds);
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  headlight::bench::run(argc > 1 ? argv[1] : "");
  return 0;
}
