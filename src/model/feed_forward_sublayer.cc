#include "model/feed_forward_sublayer.h"

#include "headlight/kernels/activation.h"
#include "headlight/kernels/matmul.h"
#include "model/linear.h"
#include "model/run_state.h"

namespace headlight {
namespace {

template <class T>
class FeedForwardLayer final : public Sublayer<T> {
 public:
  FeedForwardLayer(const ModelConfig& config, const std::string& prefix, Architecture<T>& architecture)
      : activation_(activation_of(config.feed_forward)), hidden_(config.feed_forward_width) {
    ParameterTable& parameters = architecture.parameters;
    w_in_ = add_matrix(parameters, prefix + "W_in", config.width, hidden_);
    b_in_ = add_bias(parameters, config.biases.feed_forward, prefix + "b_in", hidden_);
    w_out_ = add_writer(parameters, config, prefix + "W_out", hidden_);
    b_out_ = add_bias(parameters, config.biases.feed_forward, prefix + "b_out", config.width);

    SiteTable& sites = architecture.sites;
    const std::vector<int64_t> shape{kBatchSize, kTimeSize, hidden_};
    pre_ = sites.add({.name = prefix + "hook_pre",
                      .shape = shape,
                      .use = SlotUse::kOnRequest,
                      .saved = true,
                      .meaning = "before the activation"});
    post_ = sites.add({.name = prefix + "hook_post", .shape = shape, .saved = true, .meaning = "after the activation"});
    d_hidden_ = sites.add({.name = prefix + "d_hidden", .shape = shape, .use = SlotUse::kWorkspace, .is_site = false});
  }

  void forward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> residual, View<T, 2> out) const override {
    auto& run = pass.run;
    const View<T, 2> post = run.rows(post_, hidden_);
    if (run.is_wanted(pre_)) {
      // the value before the activation may be changed, so the two cannot be one step
      const View<T, 2> pre = run.rows(pre_, hidden_);
      linear_forward<T>(pass, w_in_, b_in_, in, {}, pre);
      intervene<T>(pass.batch, run, pre_);
      activation_forward<T>(activation_, pre, post);
    } else {
      multiply<T>({.a = in,
                   .b = {},
                   .c = post,
                   .bias = pass.weight_vector(b_in_),
                   .activation = activation_,
                   .pre = run.rows(pre_, hidden_)},
                  pass.weight(w_in_));
    }
    intervene<T>(pass.batch, run, post_);
    linear_forward<T>(pass, w_out_, b_out_, post, residual, out);
  }

  void backward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> d_out, View<T, 2> d_in,
                bool accumulate) const override {
    auto& run = pass.run;
    const View<T, 2> d = run.rows(d_hidden_, hidden_);
    // out = post W_out + b_out
    linear_backward_weights<T>(pass, w_out_, b_out_, run.rows(post_, hidden_), d_out);
    linear_backward_input<T>(pass, w_out_, d_out, d, false);
    // post = f(pre)
    activation_backward<T>(activation_, run.rows(pre_, hidden_), d, d);
    // pre = in W_in + b_in
    linear_backward_weights<T>(pass, w_in_, b_in_, in, d);
    linear_backward_input<T>(pass, w_in_, d, d_in, accumulate);
  }

 private:
  Activation activation_;
  int64_t hidden_;  // F
  int w_in_, b_in_, w_out_, b_out_;
  int pre_, post_, d_hidden_;
};

template <class T>
class GatedFeedForwardLayer final : public Sublayer<T> {
 public:
  GatedFeedForwardLayer(const ModelConfig& config, const std::string& prefix, Architecture<T>& architecture)
      : hidden_(config.feed_forward_width) {
    ParameterTable& parameters = architecture.parameters;
    w_gate_ = add_matrix(parameters, prefix + "W_gate", config.width, hidden_);
    b_gate_ = add_bias(parameters, config.biases.feed_forward, prefix + "b_gate", hidden_);
    w_in_ = add_matrix(parameters, prefix + "W_in", config.width, hidden_);
    b_in_ = add_bias(parameters, config.biases.feed_forward, prefix + "b_in", hidden_);
    w_out_ = add_writer(parameters, config, prefix + "W_out", hidden_);
    b_out_ = add_bias(parameters, config.biases.feed_forward, prefix + "b_out", config.width);

    SiteTable& sites = architecture.sites;
    const std::vector<int64_t> shape{kBatchSize, kTimeSize, hidden_};
    gate_ = sites.add({.name = prefix + "hook_pre", .shape = shape, .saved = true, .meaning = "the gate before SiLU"});
    linear_ = sites.add(
        {.name = prefix + "hook_pre_linear", .shape = shape, .saved = true, .meaning = "what the gate multiplies"});
    post_ = sites.add({.name = prefix + "hook_post", .shape = shape, .saved = true, .meaning = "silu(gate) * linear"});
    d_gate_ = sites.add({.name = prefix + "d_gate", .shape = shape, .use = SlotUse::kWorkspace, .is_site = false});
    d_linear_ = sites.add({.name = prefix + "d_linear", .shape = shape, .use = SlotUse::kWorkspace, .is_site = false});
  }

  void forward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> residual, View<T, 2> out) const override {
    auto& run = pass.run;
    const View<T, 2> gate = run.rows(gate_, hidden_);
    const View<T, 2> up = run.rows(linear_, hidden_);
    const View<T, 2> post = run.rows(post_, hidden_);
    multiply(std::array{linear<T>(pass, w_gate_, b_gate_, in, {}, gate), linear<T>(pass, w_in_, b_in_, in, {}, up)});
    intervene<T>(pass.batch, run, gate_);
    intervene<T>(pass.batch, run, linear_);
    silu_gate_forward<T>(gate, up, post);
    intervene<T>(pass.batch, run, post_);
    linear_forward<T>(pass, w_out_, b_out_, post, residual, out);
  }

  void backward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> d_out, View<T, 2> d_in,
                bool accumulate) const override {
    auto& run = pass.run;
    const View<T, 2> d_gate = run.rows(d_gate_, hidden_);
    const View<T, 2> d_linear = run.rows(d_linear_, hidden_);
    // out = post W_out + b_out
    linear_backward_weights<T>(pass, w_out_, b_out_, run.rows(post_, hidden_), d_out);
    linear_backward_input<T>(pass, w_out_, d_out, d_gate, false);
    // post = silu(gate) * linear
    silu_gate_backward<T>(run.rows(gate_, hidden_), run.rows(linear_, hidden_), d_gate, d_gate, d_linear);
    // gate = in W_gate + b_gate, linear = in W_in + b_in
    linear_backward_weights<T>(pass, w_gate_, b_gate_, in, d_gate);
    linear_backward_input<T>(pass, w_gate_, d_gate, d_in, accumulate);
    linear_backward_weights<T>(pass, w_in_, b_in_, in, d_linear);
    linear_backward_input<T>(pass, w_in_, d_linear, d_in, true);
  }

 private:
  int64_t hidden_;  // F
  int w_gate_, b_gate_, w_in_, b_in_, w_out_, b_out_;
  int gate_, linear_, post_, d_gate_, d_linear_;
};

}  // namespace

Activation activation_of(FeedForward kind) {
  switch (kind) {
    case FeedForward::kRelu:
      return Activation::kRelu;
    case FeedForward::kGelu:
      return Activation::kGelu;
    case FeedForward::kGeluTanh:
      return Activation::kGeluTanh;
    default:
      throw LogicError("feed-forward", "this kind has no activation");
  }
}

template <class T>
std::unique_ptr<Sublayer<T>> make_feed_forward(const ModelConfig& config, const std::string& prefix,
                                               Architecture<T>& architecture) {
  if (config.feed_forward == FeedForward::kSiluGated) {
    return std::make_unique<GatedFeedForwardLayer<T>>(config, prefix, architecture);
  }
  return std::make_unique<FeedForwardLayer<T>>(config, prefix, architecture);
}

template std::unique_ptr<Sublayer<float>> make_feed_forward(const ModelConfig&, const std::string&,
                                                            Architecture<float>&);
template std::unique_ptr<Sublayer<double>> make_feed_forward(const ModelConfig&, const std::string&,
                                                             Architecture<double>&);

}  // namespace headlight
