// oneDNN for compare_attention.sh: attention composed of its matrix product and softmax primitives, in the fastest of
// several cuts and layouts. Driven over pipes.

#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "peers/serve.h"

namespace headlight::bench {
namespace {

using Tensor = View<float, 4>;  // (B, heads, rows, columns)

dnnl::memory::desc desc_of(const Tensor& x) {
  const auto list = [](const std::array<int64_t, 4>& n) { return dnnl::memory::dims(n.begin(), n.end()); };
  return {list(x.sizes), dnnl::memory::data_type::f32, list(x.strides)};
}

struct Machine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  dnnl::memory memory(const Tensor& x) { return {desc_of(x), engine, x.data}; }
};

// The plain loops that oneDNN falls back on are no contender.
template <class Description>
const Description& fast(const Description& description) {
  const std::string name = description.impl_info_str();
  if (name.find("ref") != std::string::npos) throw std::runtime_error("only " + name);
  return description;
}

// c = factor a b + added
class Product {
 public:
  Product(Machine& machine, const Tensor& a, const Tensor& b, const Tensor& c, float factor, const Tensor& added)
      : added_(added) {
    dnnl::post_ops then;
    dnnl::primitive_attr attributes;
#if DNNL_VERSION_MAJOR >= 3
    if (factor != 1) then.append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0);
#else
    if (factor != 1) then.append_eltwise(1, dnnl::algorithm::eltwise_linear, factor, 0);
#endif
    if (added.data != nullptr) then.append_binary(dnnl::algorithm::binary_add, desc_of(added));
    attributes.set_post_ops(then);
    added_at_ = DNNL_ARG_ATTR_MULTIPLE_POST_OP(factor != 1 ? 1 : 0) | DNNL_ARG_SRC_1;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc plan(machine.engine, desc_of(a), desc_of(b), desc_of(c), attributes);
#else
    const dnnl::matmul::primitive_desc plan({desc_of(a), desc_of(b), desc_of(c)}, attributes, machine.engine);
#endif
    matmul_ = dnnl::matmul(fast(plan));
  }

  void run(Machine& machine, const Tensor& a, const Tensor& b, const Tensor& c) {
    std::unordered_map<int, dnnl::memory> arguments{
        {DNNL_ARG_SRC, machine.memory(a)}, {DNNL_ARG_WEIGHTS, machine.memory(b)}, {DNNL_ARG_DST, machine.memory(c)}};
    if (added_.data != nullptr) arguments.emplace(added_at_, machine.memory(added_));
    matmul_.execute(machine.stream, arguments);
  }

 private:
  Tensor added_;
  int added_at_;
  dnnl::matmul matmul_;
};

// Over the last dimension, in place.
class Softmax {
 public:
  Softmax(Machine& machine, const Tensor& x) {
    const dnnl::memory::desc d = desc_of(x);
#if DNNL_VERSION_MAJOR >= 3
    const auto kind = dnnl::algorithm::softmax_accurate;
    const dnnl::softmax_forward::primitive_desc there(machine.engine, dnnl::prop_kind::forward_training, kind, d, d, 3);
    const dnnl::softmax_backward::primitive_desc back(machine.engine, kind, d, d, d, 3, there);
#else
    const dnnl::softmax_forward::primitive_desc there({dnnl::prop_kind::forward_training, d, 3}, machine.engine);
    const dnnl::softmax_backward::primitive_desc back({d, d, 3}, machine.engine, there);
#endif
    forward_ = dnnl::softmax_forward(fast(there));
    backward_ = dnnl::softmax_backward(fast(back));
  }

  void forward(Machine& machine, const Tensor& x) {
    const dnnl::memory memory = machine.memory(x);
    forward_.execute(machine.stream, {{DNNL_ARG_SRC, memory}, {DNNL_ARG_DST, memory}});
  }
  void backward(Machine& machine, const Tensor& weights, const Tensor& d) {
    const dnnl::memory memory = machine.memory(d);
    backward_.execute(
        machine.stream,
        {{DNNL_ARG_DST, machine.memory(weights)}, {DNNL_ARG_DIFF_DST, memory}, {DNNL_ARG_DIFF_SRC, memory}});
  }

 private:
  dnnl::softmax_forward forward_;
  dnnl::softmax_backward backward_;
};

// How the work is given to oneDNN.
struct Cut {
  bool copied;      // rows of a head follow each other in memory; else (B, T, H, K)
  bool one_by_one;  // a call for each head; else one for all
};

// The queries of a key/value head are its rows.
class Composition {
 public:
  Composition(const std::shared_ptr<Operands>& operands, Cut cut)
      : all_(operands), p_(all_->p), cut_(cut), rows_(p_.Tq * (p_.H / p_.Hkv)) {
    q_ = of_queries(all_->q);
    o_ = of_queries(all_->o);
    for (int64_t set = 0; set < p_.sets; ++set) {
      k_.push_back(arrange(all_->keys(set).swap(1, 2)));
      v_.push_back(arrange(all_->values(set).swap(1, 2)));
    }
    weights_ = Buffer<float>((p_.has_gradients() || !cut.one_by_one ? p_.B * p_.Hkv : 1) * rows_ * p_.Tk);
    if (p_.causal && p_.Tq > 1) hide();
    const Tensor q = chunk(q_, 0), k = chunk(k_[0], 0), v = chunk(v_[0], 0), weights = weights_of(0);
    scores_ = std::make_unique<Product>(machine_, q, k.swap(2, 3), weights, scale(), hidden_view_);
    softmax_ = std::make_unique<Softmax>(machine_, weights);
    outputs_ = std::make_unique<Product>(machine_, weights, v, chunk(o_, 0), 1, Tensor());
    if (p_.has_gradients()) prepare_backward();
  }

  void forward(int64_t set) {
    for (int64_t i = 0; i < chunks(); ++i) {
      const Tensor weights = weights_of(i);
      scores_->run(machine_, chunk(q_, i), chunk(k_[set], i).swap(2, 3), weights);
      softmax_->forward(machine_, weights);
      outputs_->run(machine_, weights, chunk(v_[set], i), chunk(o_, i));
    }
    machine_.stream.wait();
  }

  // dV = P^T dO,  dP = dO V^T,  dQ = scale dS K,  dK = scale dS^T Q
  void backward() {
    for (int64_t i = 0; i < chunks(); ++i) {
      const Tensor weights = weights_of(i), d = d_weights_.view<4>(weights.sizes);
      dv_product_->run(machine_, weights.swap(2, 3), chunk(d_o_, i), chunk(dv_, i));
      dp_product_->run(machine_, chunk(d_o_, i), chunk(v_[0], i).swap(2, 3), d);
      softmax_->backward(machine_, weights, d);
      dq_product_->run(machine_, d, chunk(k_[0], i), chunk(dq_, i));
      dk_product_->run(machine_, d.swap(2, 3), chunk(q_, i), chunk(dk_, i));
    }
    machine_.stream.wait();
  }

  std::map<std::string, Tensor> results() const {
    if (!p_.has_gradients()) return {{"o", by_row(o_)}};
    return {{"dq", by_row(dq_)}, {"dk", by_row(dk_)}, {"dv", by_row(dv_)}};
  }

 private:
  float scale() const { return 1 / std::sqrt(static_cast<float>(p_.K)); }
  int64_t chunks() const { return cut_.one_by_one ? p_.B * p_.Hkv : 1; }

  // (B, heads, rows, K), where it lies or in memory of its own
  Tensor arrange(const Tensor& x) {
    if (!cut_.copied) return x;
    const Tensor to = copies_.emplace_back(x.count()).view<4>(x.sizes);
    for (int64_t b = 0; b < x.size(0); ++b) {
      for (int64_t h = 0; h < x.size(1); ++h) {
        for (int64_t i = 0; i < x.size(2); ++i) std::copy_n(&x(b, h, i, 0), x.size(3), &to(b, h, i, 0));
      }
    }
    return to;
  }
  Tensor of_queries(Buffer<float>& buffer) {
    const Tensor x = all_->of_queries(buffer);  // (B, Tq, H, K)
    if (p_.H == p_.Hkv) return arrange(x.swap(1, 2));
    return arrange({x.data, {p_.B, p_.Hkv, rows_, p_.K}});  // of a single row
  }
  // (B, T, H, K)
  Tensor by_row(const Tensor& x) const {
    if (p_.H == p_.Hkv) return x.swap(1, 2);
    return {x.data, {p_.B, p_.Tq, p_.H, p_.K}};
  }

  Tensor chunk(const Tensor& x, int64_t index) const {
    if (!cut_.one_by_one) return x;
    const int64_t b = index / p_.Hkv, h = index % p_.Hkv;
    return x.slice(0, b, b + 1).slice(1, h, h + 1);
  }
  Tensor weights_of(int64_t index) {
    if (!cut_.one_by_one) return weights_.view<4>({p_.B, p_.Hkv, rows_, p_.Tk});
    return weights_.view<4>({1, 1, rows_, p_.Tk}, p_.has_gradients() ? index * rows_ * p_.Tk : 0);
  }

  void hide() {
    hidden_ = Buffer<float>(p_.Tq * p_.Tk);
    hidden_view_ = hidden_.view<4>({1, 1, p_.Tq, p_.Tk});
    for (int64_t i = 0; i < p_.Tq; ++i) {
      for (int64_t j = i + 1; j < p_.Tk; ++j) hidden_[i * p_.Tk + j] = -std::numeric_limits<float>::infinity();
    }
  }

  void prepare_backward() {
    d_o_ = of_queries(all_->d_o);
    dq_ = of_queries(all_->dq);
    dk_ = arrange(all_->of_keys(all_->dk).swap(1, 2));
    dv_ = arrange(all_->of_keys(all_->dv).swap(1, 2));
    const Tensor weights = weights_of(0), q = chunk(q_, 0), k = chunk(k_[0], 0), d_o = chunk(d_o_, 0);
    d_weights_ = Buffer<float>(weights.count());
    const auto product = [&](const Tensor& a, const Tensor& b, const Tensor& c, float factor) {
      return std::make_unique<Product>(machine_, a, b, c, factor, Tensor());
    };
    dv_product_ = product(weights.swap(2, 3), d_o, chunk(dv_, 0), 1);
    dp_product_ = product(d_o, chunk(v_[0], 0).swap(2, 3), weights, 1);
    dq_product_ = product(weights, k, chunk(dq_, 0), scale());
    dk_product_ = product(weights.swap(2, 3), q, chunk(dk_, 0), scale());
  }

  std::shared_ptr<Operands> all_;
  const Problem p_;
  const Cut cut_;
  const int64_t rows_;
  Machine machine_;
  std::deque<Buffer<float>> copies_;
  Tensor q_, o_, d_o_, dq_, dk_, dv_;
  std::vector<Tensor> k_, v_;  // of each set
  Buffer<float> weights_, d_weights_, hidden_;
  Tensor hidden_view_;
  std::unique_ptr<Softmax> softmax_;
  std::unique_ptr<Product> scores_, outputs_, dv_product_, dp_product_, dq_product_, dk_product_;
};

Contender contender(const Problem& p, Cut cut) {
  const auto composition = std::make_shared<Composition>(std::make_shared<Operands>(p), cut);
  const bool goes_forward = p.kind != Kind::kBackward, goes_back = p.has_gradients();
  if (!goes_forward) composition->forward(0);
  const std::string layout = cut.copied ? "(B,H,T,K) in memory" : "(B,T,H,K) in memory";
  const std::string version = std::to_string(DNNL_VERSION_MAJOR) + "." + std::to_string(DNNL_VERSION_MINOR);
  return {"oneDNN composed", version + ", " + (cut.one_by_one ? "a head at a time, " : "all heads, ") + layout, 0,
          [=](int64_t set) {
            if (goes_forward) composition->forward(set);
            if (goes_back) composition->backward();
          },
          composition->results()};
}

std::vector<Contender> contenders_for(const Problem& p) {
  Contender best;
  double least = std::numeric_limits<double>::infinity();
  for (const Cut cut : {Cut{false, false}, Cut{false, true}, Cut{true, false}, Cut{true, true}}) {
    try {
      const Contender made = contender(p, cut);
      made.run(0);
      for (int i = 0; i < 3; ++i) {
        const double time = seconds_of(made, 1, 1, CLOCK_MONOTONIC);
        if (time < least) {
          least = time;
          best = made;
        }
      }
    } catch (const std::exception&) {
      // oneDNN has nothing for this cut
    }
  }
  if (!best.run) return {};
  return {best};
}

}  // namespace
}  // namespace headlight::bench

int main() {
  headlight::bench::serve(headlight::bench::contenders_for);
  return 0;
}
