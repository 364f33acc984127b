// The contenders of compare_attention.sh that are our own: the attention kernels, the same composed of matrix products
// and softmax, the scalar loop, and the ceilings. HEADLIGHT_THREADS and HEADLIGHT_ISA count. Driven over pipes.

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>

#include "ceiling.h"
#include "headlight/base/thread_pool.h"
#include "headlight/kernels/attention.h"
#include "headlight/kernels/isa.h"
#include "headlight/kernels/matmul.h"
#include "headlight/kernels/softmax.h"
#include "peers/serve.h"

namespace headlight::bench {
namespace {

// the scalar loop takes seconds on anything larger
constexpr int64_t kMostLoopPairs = 1 << 19;

float scale_of(const Problem& p) { return 1 / std::sqrt(static_cast<float>(p.K)); }

// rows of one head of (B, T, heads, K)
View<float, 2> head_of(const View<float, 4>& tensor, int64_t b, int64_t h) { return tensor[b].swap(0, 1)[h]; }

// The kernels of the library, on keys and values (B, T, heads, K) or (B, heads, T, K) in memory.
class Fused {
 public:
  Fused(const std::shared_ptr<Operands>& operands, bool by_head)
      : all_(operands), statistics_(all_->p.B * all_->p.H * all_->p.Tq) {
    for (int64_t set = 0; set < all_->p.sets; ++set) {
      k_.push_back(by_head ? copied_by_head(all_->keys(set)) : all_->keys(set));
      v_.push_back(by_head ? copied_by_head(all_->values(set)) : all_->values(set));
    }
    pattern_.scale = scale_of(all_->p);
    if (all_->p.causal) pattern_.right = 0;
    pattern_.pos0 = all_->p.Tk - all_->p.Tq;
  }

  void forward(int64_t set) {
    attention_forward({.q = all_->of_queries(all_->q),
                       .k = k_[static_cast<std::size_t>(set)],
                       .v = v_[static_cast<std::size_t>(set)],
                       .o = all_->of_queries(all_->o),
                       .statistics = statistics(),
                       .pattern = pattern_});
  }

  void backward() {
    attention_backward({.q = all_->of_queries(all_->q),
                        .k = k_[0],
                        .v = v_[0],
                        .o = all_->of_queries(all_->o),
                        .statistics = statistics(),
                        .d_o = all_->of_queries(all_->d_o),
                        .dq = all_->of_queries(all_->dq),
                        .dk = all_->of_keys(all_->dk),
                        .dv = all_->of_keys(all_->dv),
                        .pattern = pattern_});
  }

 private:
  View<RowStatistic<float>, 3> statistics() { return statistics_.view<3>({all_->p.B, all_->p.H, all_->p.Tq}); }

  View<float, 4> copied_by_head(const View<float, 4>& from) {
    const auto& n = from.sizes;
    const View<float, 4> to = copies_.emplace_back(from.count()).view<4>({n[0], n[2], n[1], n[3]}).swap(1, 2);
    for (int64_t b = 0; b < n[0]; ++b) {
      for (int64_t i = 0; i < n[1]; ++i) {
        for (int64_t h = 0; h < n[2]; ++h) std::copy_n(&from(b, i, h, 0), n[3], &to(b, i, h, 0));
      }
    }
    return to;
  }

  std::shared_ptr<Operands> all_;
  std::deque<Buffer<float>> copies_;
  std::vector<View<float, 4>> k_, v_;  // of each set
  Buffer<RowStatistic<float>> statistics_;
  AttentionPattern<float> pattern_;
};

// Matrix product, softmax, matrix product, one key/value head with its queries at a time; the backward has the weights
// of all heads from the forward. Scaled queries and keys are made beforehand.
class Composed {
 public:
  explicit Composed(const std::shared_ptr<Operands>& operands)
      : all_(operands),
        weights_((all_->p.has_gradients() ? all_->p.B * all_->p.Hkv : 1) * weights_per_head()),
        d_weights_(all_->p.has_gradients() ? weights_per_head() : 0),
        q_(all_->q.count()),
        k_(all_->p.has_gradients() ? all_->key_count() : 0) {
    const float scale = scale_of(all_->p);
    for (int64_t i = 0; i < q_.count(); ++i) q_[i] = scale * all_->q[i];
    for (int64_t i = 0; i < k_.count(); ++i) k_[i] = scale * all_->memory[i];
    if (all_->p.has_gradients()) forward(0);
  }

  void forward(int64_t set) {
    const Problem& p = all_->p;
    for (int64_t b = 0; b < p.B; ++b) {
      for (int64_t g = 0; g < p.Hkv; ++g) {
        const View<float, 2> weights = weights_of(p.has_gradients() ? b * p.Hkv + g : 0);
        matmul<float>({.a = queries(q_, b, g), .b = head_of(all_->keys(set), b, g).swap(0, 1), .c = weights});
        if (p.causal && p.Tq > 1) hide(weights);  // a single query sees all
        softmax_forward<float>(weights, weights);
        matmul<float>({.a = weights, .b = head_of(all_->values(set), b, g), .c = queries(all_->o, b, g)});
      }
    }
  }

  // of the same weights, P:  dV = P^T dO,  dP = dO V^T,  dQ = scale dS K,  dK = dS^T scale Q
  void backward() {
    const Problem& p = all_->p;
    for (int64_t b = 0; b < p.B; ++b) {
      for (int64_t g = 0; g < p.Hkv; ++g) {
        const View<float, 2> weights = weights_of(b * p.Hkv + g), d = d_weights_.view<2>(weights.sizes);
        const View<float, 2> d_o = queries(all_->d_o, b, g);
        matmul<float>({.a = weights.swap(0, 1), .b = d_o, .c = head_of(all_->of_keys(all_->dv), b, g)});
        matmul<float>({.a = d_o, .b = head_of(all_->values(0), b, g).swap(0, 1), .c = d});
        softmax_backward<float>(weights, d, d);
        matmul<float>({.a = d, .b = head_of(all_->of_keys(k_), b, g), .c = queries(all_->dq, b, g)});
        matmul<float>({.a = d.swap(0, 1), .b = queries(q_, b, g), .c = head_of(all_->of_keys(all_->dk), b, g)});
      }
    }
  }

 private:
  int64_t group() const { return all_->p.H / all_->p.Hkv; }
  int64_t weights_per_head() const { return all_->p.Tq * group() * all_->p.Tk; }
  View<float, 2> weights_of(int64_t head) {
    return weights_.view<2>({all_->p.Tq * group(), all_->p.Tk}, head * weights_per_head());
  }

  // The rows of all queries of a key/value head; grouped ones are single rows.
  View<float, 2> queries(Buffer<float>& buffer, int64_t b, int64_t g) {
    const View<float, 4> all = all_->of_queries(buffer);
    return group() == 1 ? head_of(all, b, g) : all[b][0].slice(0, g * group(), (g + 1) * group());
  }

  static void hide(View<float, 2> scores) {
    for (int64_t i = 0; i < scores.size(0); ++i) {
      float* row = &scores(i, 0);
      for (int64_t j = i + 1; j < scores.size(1); ++j) row[j] = -std::numeric_limits<float>::infinity();
    }
  }

  std::shared_ptr<Operands> all_;
  Buffer<float> weights_, d_weights_;  // of one head; weights of all heads for the backward
  Buffer<float> q_, k_;                // scaled
};

// As a first program would have it: three loops over rows, keys and columns, one thread.
void scalar_loop(Operands& all) {
  const Problem& p = all.p;
  const View<float, 4> q = all.of_queries(all.q), k = all.keys(0), v = all.values(0), o = all.of_queries(all.o);
  std::vector<float> weights(static_cast<std::size_t>(p.Tk));
  for (int64_t b = 0; b < p.B; ++b) {
    for (int64_t h = 0; h < p.H; ++h) {
      for (int64_t i = 0; i < p.Tq; ++i) {
        const int64_t keys = p.causal ? i + 1 : p.Tk;
        const float* query = &q(b, i, h, 0);
        float* out = &o(b, i, h, 0);
        float max = -std::numeric_limits<float>::infinity(), sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const float* key = &k(b, j, h, 0);
          float score = 0;
          for (int64_t c = 0; c < p.K; ++c) score += query[c] * key[c];
          weights[static_cast<std::size_t>(j)] = scale_of(p) * score;
          max = std::max(max, weights[static_cast<std::size_t>(j)]);
        }
        std::fill(out, out + p.K, 0.0f);
        for (int64_t j = 0; j < keys; ++j) {
          const float weight = std::exp(weights[static_cast<std::size_t>(j)] - max);
          const float* value = &v(b, j, h, 0);
          sum += weight;
          for (int64_t c = 0; c < p.K; ++c) out[c] += weight * value[c];
        }
        for (int64_t c = 0; c < p.K; ++c) out[c] /= sum;
      }
    }
  }
}

void add_ceilings(const std::shared_ptr<Operands>& all, std::vector<Contender>& list) {
  const Work rate = multiply_add_ceiling(default_pool().threads());
  list.push_back({"multiply-adds", active_isa(), rate.amount, [rate](int64_t) { rate.run(); }});
  if (all->p.kind != Kind::kDecode) return;
  const int64_t count = 2 * all->key_count();
  const double bytes = static_cast<double>(count) * sizeof(float);
  list.push_back({"read", "the same keys and values, summed", bytes,
                  [all, count](int64_t set) { read_ceiling(all->memory.view<1>({count}, set * count)).run(); }});
}

std::vector<Contender> contenders_for(const Problem& p) {
  const auto all = std::make_shared<Operands>(p);
  const auto fused = std::make_shared<Fused>(all, false);
  const auto composed = std::make_shared<Composed>(all);
  std::vector<Contender> list;
  const auto add = [&](const std::string& name, const std::string& variant, std::function<void(int64_t)> run) {
    std::map<std::string, View<float, 4>> results{{"o", all->of_queries(all->o)}};
    if (p.has_gradients()) {
      results = {{"dq", all->of_queries(all->dq)}, {"dk", all->of_keys(all->dk)}, {"dv", all->of_keys(all->dv)}};
    }
    list.push_back({name, variant, 0, std::move(run), results});
  };
  const bool goes_forward = p.kind != Kind::kBackward, goes_back = p.has_gradients();
  if (!goes_forward) fused->forward(0);
  add("headlight", active_isa(), [=](int64_t set) {
    if (goes_forward) fused->forward(set);
    if (goes_back) fused->backward();
  });
  if (p.kind == Kind::kDecode) {
    const auto by_head = std::make_shared<Fused>(all, true);
    add("headlight by head", "keys and values (B,H,T,K)", [=](int64_t set) { by_head->forward(set); });
  }
  add("composed", "our products and softmax", [=](int64_t set) {
    if (goes_forward) composed->forward(set);
    if (goes_back) composed->backward();
  });
  const bool small = p.B * p.H * p.Tq * p.Tk <= kMostLoopPairs && p.kind == Kind::kForward;
  if (small) add("scalar loop", "one thread", [all](int64_t) { scalar_loop(*all); });
  add_ceilings(all, list);
  return list;
}

}  // namespace
}  // namespace headlight::bench

int main() {
  headlight::bench::serve(headlight::bench::contenders_for);
  return 0;
}
