// The attention kernel alone: three tokens whose keys are their queries, causal, and the weights behind the output.

#include <headlight/kernels/attention.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace headlight;

int main() {
  std::vector<float> k{1, 0, 0, 1, 1, 1};
  std::vector<float> v{1, 0, 0, 2, 3, 3};
  std::vector<float> o(6), weights(9);
  std::vector<RowStatistic<float>> statistics(3);
  const View<const float, 4> keys(k.data(), {1, 3, 1, 2});  // (B, T, H, K)
  const AttentionPattern<float> causal{.scale = 1 / std::sqrt(2.0f), .right = 0};

  attention_forward({.q = keys,
                     .k = keys,
                     .v = {v.data(), {1, 3, 1, 2}},
                     .o = {o.data(), {1, 3, 1, 2}},
                     .statistics = {statistics.data(), {1, 1, 3}},
                     .pattern = causal});
  attention_rows({.q = keys,
                  .k = keys,
                  .statistics = {statistics.data(), {1, 1, 3}},
                  .weights = {weights.data(), {1, 1, 3, 3}},
                  .pattern = causal});
  for (int i = 0; i < 3; ++i) {
    const auto at = [&](const std::vector<float>& x, int width, int c) {
      return static_cast<double>(x[static_cast<std::size_t>(i * width + c)]);
    };
    std::printf("token %d reads %.6f %.6f %.6f and gets %.6f %.6f\n", i, at(weights, 3, 0), at(weights, 3, 1),
                at(weights, 3, 2), at(o, 2, 0), at(o, 2, 1));
  }
  return 0;
}
