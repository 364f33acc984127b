// The matrix product in the three forms that training needs, as operations per second and as a share of the
// multiply-add rate measured in the same rounds, and for few rows as bytes of b read per second. With
// oneDNN beside it where that is installed; run with OMP_WAIT_POLICY=passive then.
// bench_matmul [--json] [FILTER]: shapes whose text contains FILTER. HEADLIGHT_THREADS and HEADLIGHT_ISA count.

#include "headlight/kernels/matmul.h"

#include <fmt/format.h>

#include "ceiling.h"
#include "data.h"
#include "report.h"
#ifdef HEADLIGHT_BENCH_ONEDNN
#include "peers/onednn.h"
#endif

namespace headlight::bench {
namespace {

constexpr int kRounds = 31;

struct Shape {
  int64_t m, k, n;
};

// widths 384, 128 and 64 in training, then real models of width 576 and 768
constexpr Shape kTraining[] = {{2048, 384, 384}, {2048, 384, 1152}, {2048, 384, 1536}, {2048, 1536, 384},
                               {2048, 384, 256}, {2048, 128, 128},  {2048, 128, 512},  {2048, 512, 128},
                               {2048, 128, 65},  {2048, 64, 64},    {2048, 64, 256},   {512, 576, 1536},
                               {512, 1536, 576}, {512, 768, 3072},  {512, 3072, 768},  {128, 576, 49152}};
constexpr Shape kFewRows[] = {{1, 576, 576},  {1, 576, 1536}, {1, 1536, 576}, {1, 768, 3072},
                              {2, 576, 1536}, {4, 576, 1536}, {8, 576, 1536}, {1, 576, 49152}};

Work product(const std::string& name, const Matmul<float>& args) {
  const double operations = 2.0 * static_cast<double>(args.a.size(0) * args.a.size(1) * args.b.size(1));
  return {name, operations, [args] { matmul(args); }};
}

void add_training(Report& report, const std::string& text, const Shape& s) {
  Data data;
  const View<float, 2> x = data.matrix(s.m, s.k);
  const View<float, 2> w = data.matrix(s.k, s.n);
  const View<float, 2> y = data.matrix(s.m, s.n);
  const View<float, 2> dx = data.matrix(s.m, s.k);
  const View<float, 2> dw = data.matrix(s.k, s.n);
  std::vector<Work> all{multiply_add_ceiling(default_pool().threads())};
  all.push_back(product("y = x w", {.a = x, .b = w, .c = y}));
  const View<float, 1> bias = data.vector(s.n);
  all.push_back(
      product("y = gelu(x w + b), pre",
              {.a = x, .b = w, .c = y, .bias = bias, .activation = Activation::kGelu, .pre = data.matrix(s.m, s.n)}));
  all.push_back(product("dx = dy w'", {.a = y, .b = w.swap(0, 1), .c = dx}));
  all.push_back(product("dw = x' dy", {.a = x.swap(0, 1), .b = y, .c = dw}));
#ifdef HEADLIGHT_BENCH_ONEDNN
  all.push_back(onednn_matmul("oneDNN y", x, w, y, false));
  all.push_back(onednn_matmul("oneDNN y, w packed", x, w, y, true));
  all.push_back(onednn_matmul("oneDNN dx", y, w.swap(0, 1), dx, false));
  all.push_back(onednn_matmul("oneDNN dx, w packed", y, w.swap(0, 1), dx, true));
  all.push_back(onednn_matmul("oneDNN dw", x.swap(0, 1), y, dw, false));
#endif
  report.add(text, all, "GFLOP/s");
}

// More copies of b than the caches hold, one after the other.
template <class B>
Work few_rows(const std::string& name, View<const float, 2> a, View<const B, 3> copies, bool transposed,
              View<float, 2> c) {
  const double bytes = static_cast<double>(a.size(1) * c.size(1)) * sizeof(B);
  return {name, bytes, [=, next = int64_t{0}]() mutable {
            const View<const B, 2> b = copies[next];
            next = (next + 1) % copies.size(0);
            matmul(Matmul<float, B>{.a = a, .b = transposed ? b.swap(0, 1) : b, .c = c});
          }};
}

void add_few_rows(Report& report, const std::string& text, const Shape& s) {
  constexpr int64_t kBytes = int64_t{192} << 20;
  Data data;
  const View<float, 1> memory = data.vector(std::max<int64_t>(2 * s.k * s.n, kBytes / int64_t{sizeof(float)}));
  const View<float, 2> a = data.matrix(s.m, s.k);
  const View<float, 2> c = data.matrix(s.m, s.n);
  std::vector<Work> all{read_ceiling(memory)};
  const auto add = [&](const std::string& name, auto* numbers) {
    using B = std::remove_pointer_t<decltype(numbers)>;
    const int64_t copies = memory.count() * int64_t{sizeof(float)} / (s.k * s.n * int64_t{sizeof(B)});
    all.push_back(few_rows<B>("y = x w, " + name, a, {numbers, {copies, s.k, s.n}}, false, c));
    all.push_back(few_rows<B>("y = x w', " + name, a, {numbers, {copies, s.n, s.k}}, true, c));
  };
  // any bits will do: none of these types is slower for some numbers
  add("f32", memory.data);
  add("bf16", reinterpret_cast<BFloat16*>(memory.data));
  add("f16", reinterpret_cast<Float16*>(memory.data));
  report.add(text, all, "GB/s");
}

void run(bool json, const std::string& filter) {
  Report report(json, kRounds);
  const auto each = [&](const auto& shapes, auto add) {
    for (const Shape& s : shapes) {
      const std::string text = fmt::format("{} x {} x {}", s.m, s.k, s.n);
      if (text.find(filter) != std::string::npos) add(report, text, s);
    }
  };
  each(kTraining, add_training);
  each(kFewRows, add_few_rows);
  report.finish();
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  bool json = false;
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--json") {
      json = true;
    } else {
      filter = argv[i];
    }
  }
  headlight::bench::run(json, filter);
  return 0;
}
