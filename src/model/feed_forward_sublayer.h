#pragma once
// The feed-forward sublayer: out = f(x W_in + b_in) W_out + b_out, or with a SiLU gate.

#include <memory>
#include <string>

#include "headlight/kernels/activation.h"
#include "model/architecture.h"

namespace headlight {

// Declares parameters `prefix`W_in, W_gate, W_out (and biases) and the sites `prefix`hook_pre, hook_pre_linear,
// hook_post. config.feed_forward is not kNone.
template <class T>
std::unique_ptr<Sublayer<T>> make_feed_forward(const ModelConfig& config, const std::string& prefix,
                                               Architecture<T>& architecture);

// f of a kind without a gate. Throws LogicError for the others.
Activation activation_of(FeedForward kind);

}  // namespace headlight
