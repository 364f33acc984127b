#include <algorithm>
#include <cmath>

#include "explain/parts.h"
#include "headlight/explain/identities.h"
#include "kernels/reference/attention.h"
#include "model/attention_sublayer.h"

namespace headlight {
namespace {

// One sequence of a captured site in float64, (1, n, heads, width).
struct Operand {
  Buffer<double> buffer;
  View<double, 4> view;

  Operand(View<const float, 4> site, const Batch& batch, int64_t b)
      : buffer(batch.lengths[b] * site.size(2) * site.size(3)),
        view(buffer.view<4>({1, batch.lengths[b], site.size(2), site.size(3)})) {
    const float* const rows = &site(b, batch.begins[b], 0, 0);
    std::copy(rows, rows + buffer.count(), buffer.begin());
  }
};

// Weights and outputs of chosen rows of one block, kernel against reference.
class AttentionCheck {
 public:
  AttentionCheck(const Model& model, const Batch& batch, const Run& run, int64_t b)
      : model_(model), config_(model.config()), batch_(batch), run_(run), b_(b), n_(batch.lengths[b]) {
    slopes_ = Buffer<double>(config_.positions == Positions::kAlibi ? config_.heads : 0);
    for (int64_t h = 0; h < slopes_.count(); ++h) {
      // the kernel holds them in fp32
      slopes_[h] = static_cast<double>(static_cast<float>(alibi_slopes(config_.heads)[static_cast<std::size_t>(h)]));
    }
  }

  void compare(int64_t block, Largest& error) const {
    const std::string prefix = "blocks." + std::to_string(block) + ".attn.";
    const Operand q(run_.site(queries_site(config_, prefix)), batch_, b_);
    const Operand k(run_.site(keys_site(config_, prefix)), batch_, b_);
    const Operand v(run_.site(prefix + "hook_v"), batch_, b_);
    const View<const float, 4> z = run_.site(prefix + "hook_z");
    AttentionPattern<double> pattern = attention_pattern<double>(config_, block);
    if (slopes_.count() > 0) pattern.slopes = slopes_.view<1>({config_.heads});
    Buffer<double> wanted(config_.heads * n_);
    Buffer<float> found(batch_.size * config_.heads * batch_.time);
    constexpr int64_t kMostRows = 16;
    const int64_t every = std::max<int64_t>(1, (n_ + kMostRows - 1) / kMostRows);
    // from the last row back: it sees most
    for (int64_t i = n_ - 1; i >= 0; i -= every) {
      const View<double, 4> reference = wanted.view<4>({1, config_.heads, 1, n_});
      reference::attention_rows<double>(
          {.q = q.view, .k = k.view, .statistics = {}, .row_begin = i, .weights = reference, .pattern = pattern});
      const View<float, 4> weights = found.view<4>({batch_.size, config_.heads, 1, batch_.time});
      pattern_rows<float>(model_, batch_, run_, block, 0, batch_.begins[b_] + i, weights);
      for (int64_t h = 0; h < config_.heads; ++h) {
        const double scale = 1 + score_size(q, k, pattern, i, h);
        for (int64_t j = 0; j < n_; ++j) {
          const double kernel = static_cast<double>(weights(b_, h, 0, batch_.begins[b_] + j));
          error.take(std::abs(kernel - reference(0, h, 0, j)) / scale);
        }
        compare_z(v, reference, &z(b_, batch_.begins[b_] + i, h, 0), h, scale, error);
      }
    }
  }

 private:
  // the largest sum of the absolute terms of a score of row i: what its rounding is relative to
  double score_size(const Operand& q, const Operand& k, const AttentionPattern<double>& pattern, int64_t i,
                    int64_t h) const {
    const int64_t g = h / (config_.heads / config_.key_value_heads);
    double largest = 0;
    const int64_t begin = pattern.left ? std::max<int64_t>(0, i - *pattern.left) : 0;
    const int64_t end = pattern.right ? std::min(n_, i + *pattern.right + 1) : n_;
    for (int64_t j = begin; j < end; ++j) {
      double size = 0;
      for (int64_t c = 0; c < config_.head_width; ++c) size += std::abs(q.view(0, i, h, c) * k.view(0, j, g, c));
      size *= pattern.scale;
      if (slopes_.count() > 0) size += slopes_[h] * static_cast<double>(std::abs(i - j));
      largest = std::max(largest, size);
    }
    return largest;
  }

  void compare_z(const Operand& v, View<const double, 4> p, const float* z, int64_t h, double scale,
                 Largest& error) const {
    const int64_t g = h / (config_.heads / config_.key_value_heads);
    for (int64_t c = 0; c < config_.value_width; ++c) {
      double sum = 0;
      double magnitude = 0;
      for (int64_t j = 0; j < n_; ++j) {
        const double term = p(0, h, 0, j) * v.view(0, j, g, c);
        sum += term;
        magnitude += std::abs(term);
      }
      const double deviation = std::abs(static_cast<double>(z[c]) - sum);
      if (deviation != 0) error.take(deviation / magnitude / scale);
    }
  }

  const Model& model_;
  const ModelConfig& config_;
  const Batch& batch_;
  const Run& run_;
  const int64_t b_;  // the sequence
  const int64_t n_;  // its length
  Buffer<double> slopes_;
};

}  // namespace

Check check_attention(const Model& model, const Batch& batch, const Run& run) {
  const ModelConfig& config = model.config();
  Largest error;
  int64_t b = 0;
  while (b + 1 < batch.size && batch.lengths[b] == 0) ++b;
  if (batch.size > 0 && batch.lengths[b] > 0) {
    const AttentionCheck check(model, batch, run, b);
    for (int64_t block = 0; block < config.blocks; ++block) check.compare(block, error);
  }
  // scores: K + 4 roundings each, twice (a weight's own and the sum's); sums over T keys of weights and of values
  const double roundings = 2 * (static_cast<double>(config.head_width) + 4) + 3 * static_cast<double>(batch.time) + 16;
  return {.name = "attention = reference",
          .definition =
              "weights and z of up to 16 rows of all heads against plain loops in float64; deviations relative to "
              "1 + the largest sum of |q k| of the row (and, for z, to the sum of P |v|)",
          .error = error.value(),
          .bound = 0x1p-24 * roundings,
          .passed = error.value() <= 0x1p-24 * roundings};
}

}  // namespace headlight
