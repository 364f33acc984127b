#include "headlight/model/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "headlight/base/error.h"

namespace headlight {
namespace {

std::string same_name(const std::string& field) { return field; }

class Checker {
 public:
  explicit Checker(std::string (*naming)(const std::string&)) : name_(naming != nullptr ? naming : same_name) {}

  [[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected) const {
    throw Error(ErrorKind::kUsage, name_(field) + " " + found, expected);
  }
  void in_range(const std::string& field, int64_t value, int64_t least, int64_t most) const {
    if (value < least || value > most)
      refuse(field, fmt::format("{}", value), fmt::format("is not from {} to {}", least, most));
  }
  std::string name(const std::string& field) const { return name_(field); }

 private:
  std::string (*name_)(const std::string&);
};

// the multiples of `heads` next to `width`
std::string neighbours(int64_t width, int64_t heads) {
  const int64_t below = width / heads * heads;
  if (below == 0) return fmt::format("use {}", heads);
  return fmt::format("use {} or {}", below, below + heads);
}

constexpr int64_t kLargest = int64_t{1} << 24;  // of a width or a vocabulary

void check_sizes(const ModelConfig& c, const Checker& check) {
  check.in_range("vocabulary", c.vocabulary, 1, kLargest);
  check.in_range("context", c.context, 1, int64_t{1} << 30);
  check.in_range("width", c.width, 1, kLargest);
  check.in_range("blocks", c.blocks, 0, kMostBlocks);
  check.in_range("heads", c.heads, 1, 65536);
  check.in_range("key_value_heads", c.key_value_heads, 0, 65536);
  check.in_range("head_width", c.head_width, 0, kLargest);
  check.in_range("value_width", c.value_width, 0, kLargest);
  check.in_range("feed_forward_width", c.feed_forward_width, 0, kLargest);
  check.in_range("rotary_width", c.rotary_width, 0, kLargest);
  if (!(c.norm_epsilon > 0 && c.norm_epsilon < 1)) {
    check.refuse("norm_epsilon", fmt::format("{}", c.norm_epsilon), "is not between 0 and 1");
  }
  if (!(c.rotary_base > 1)) check.refuse("rotary_base", fmt::format("{}", c.rotary_base), "is not above 1");
}

void resolve_heads(ModelConfig& c, const Checker& check) {
  if (c.key_value_heads == 0) c.key_value_heads = c.heads;
  if (c.heads % c.key_value_heads != 0) {
    check.refuse("heads", fmt::format("{}", c.heads),
                 fmt::format("is not a multiple of {} {}", check.name("key_value_heads"), c.key_value_heads));
  }
  if (c.head_width == 0) {
    if (c.width % c.heads != 0) {
      check.refuse("width", fmt::format("{}", c.width),
                   fmt::format("is not a multiple of {} {}; {}, or set {}", check.name("heads"), c.heads,
                               neighbours(c.width, c.heads), check.name("head_width")));
    }
    c.head_width = c.width / c.heads;
  }
  if (c.value_width == 0) c.value_width = c.head_width;
}

void check_scaling(const ModelConfig& c, const Checker& check) {
  const RotaryScaling& scaling = c.rotary_scaling;
  const auto demand = [&](bool holds, const char* part, double found, const char* expected) {
    if (!holds) check.refuse(std::string("rotary_scaling.") + part, fmt::format("{}", found), expected);
  };
  if (scaling.kind == RotaryScalingKind::kNone) return;
  if (scaling.kind == RotaryScalingKind::kListed) {
    demand(static_cast<int64_t>(scaling.divisors.size()) == c.rotary_width / 2, "divisors",
           static_cast<double>(scaling.divisors.size()), "is not one number for each pair");
    for (const double divisor : scaling.divisors) demand(divisor > 0, "divisors", divisor, "is not above 0");
    return;
  }
  demand(scaling.factor > 0, "factor", scaling.factor, "is not above 0");
  if (scaling.kind == RotaryScalingKind::kLinear) return;
  demand(scaling.original_context >= 1, "original_context", scaling.original_context, "is not at least 1");
  if (scaling.kind == RotaryScalingKind::kLlama3) {
    demand(scaling.low > 0, "low", scaling.low, "is not above 0");
    demand(scaling.high > scaling.low, "high", scaling.high, "is not above low");
    return;
  }
  demand(scaling.slow > 0, "slow", scaling.slow, "is not above 0");
  demand(scaling.fast > 0, "fast", scaling.fast, "is not above 0");
  demand(scaling.magnitude > 0, "magnitude", scaling.magnitude, "is not above 0");
}

void resolve_positions(ModelConfig& c, const Checker& check) {
  if (c.positions != Positions::kRotary) {
    c.rotary_width = 0;
    if (c.rotary_scaling.kind != RotaryScalingKind::kNone) {
      check.refuse("rotary_scaling", to_string(c.rotary_scaling.kind),
                   fmt::format("does not go with {} {}", check.name("positions"), to_string(c.positions)));
    }
    return;
  }
  if (c.rotary_width == 0) c.rotary_width = c.head_width;
  if (c.rotary_width % 2 != 0 || c.rotary_width > c.head_width) {
    check.refuse("rotary_width", fmt::format("{}", c.rotary_width),
                 fmt::format("is not an even number up to {} {}", check.name("head_width"), c.head_width));
  }
  check_scaling(c, check);
}

void check_windows(const ModelConfig& c, const Checker& check) {
  check.in_range("window", c.window, 0, int64_t{1} << 30);
  if (c.window > 0 && !c.causal) check.refuse("window", fmt::format("{}", c.window), "is for a causal model");
  int64_t least = 0;
  for (const int64_t block : c.windowed_blocks) {
    check.in_range("windowed_blocks", block, least, c.blocks - 1);
    least = block + 1;
  }
  if (c.window == 0 && !c.windowed_blocks.empty()) {
    check.refuse("windowed_blocks", "are given", fmt::format("without {}", check.name("window")));
  }
}

void check_ends(const ModelConfig& c, const Checker& check) {
  check.in_range("token_types", c.token_types, 0, kLargest);
  const auto refuse_if = [&](bool holds, const char* field, const char* why) {
    if (holds) check.refuse(field, "true", why);
  };
  refuse_if(c.embedding_norm && c.norm == NormKind::kNone, "embedding_norm", "does not go with a model without norms");
  refuse_if(!c.unembedding && c.tied, "tied", "is for a model with an unembedding");
  refuse_if(!c.unembedding && c.prediction_head, "prediction_head", "is for a model with an unembedding");
  refuse_if(!c.unembedding && c.biases.unembedding, "biases.unembedding", "is for a model with an unembedding");
  refuse_if(c.prediction_head && (c.norm == NormKind::kNone || c.feed_forward == FeedForward::kNone ||
                                  c.feed_forward == FeedForward::kSiluGated),
            "prediction_head", "needs a norm and a feed-forward layer without a gate");
}

void resolve_feed_forward(ModelConfig& c, const Checker& check) {
  if (c.feed_forward == FeedForward::kNone) {
    c.feed_forward_width = 0;
  } else if (c.feed_forward_width == 0) {
    const bool gated = c.feed_forward == FeedForward::kSiluGated;
    c.feed_forward_width = gated ? (c.width * 8 / 3 + 15) / 16 * 16 : 4 * c.width;
  }
  if (c.parallel && c.norm_placement == NormPlacement::kPost) {
    check.refuse("parallel", "true", fmt::format("does not go with {} post", check.name("norm_placement")));
  }
}

}  // namespace

ModelConfig resolve(const ModelConfig& config, std::string (*name_of_field)(const std::string&)) {
  const Checker check(name_of_field);
  ModelConfig c = config;
  check_sizes(c, check);
  resolve_heads(c, check);
  resolve_positions(c, check);
  resolve_feed_forward(c, check);
  check_windows(c, check);
  check_ends(c, check);
  return c;
}

ModelConfig resolve_in_file(const ModelConfig& config, const std::string& where) {
  try {
    return resolve(config);
  } catch (const Error& error) {
    throw Error(ErrorKind::kBadData, where, error.what());
  }
}

int64_t window_of(const ModelConfig& config, int64_t block) {
  const std::vector<int64_t>& some = config.windowed_blocks;
  return some.empty() || std::binary_search(some.begin(), some.end(), block) ? config.window : 0;
}

std::string to_string(Positions choice) {
  switch (choice) {
    case Positions::kNone:
      return "none";
    case Positions::kLearned:
      return "learned";
    case Positions::kSinusoidal:
      return "sinusoidal";
    case Positions::kRotary:
      return "rotary";
    case Positions::kAlibi:
      return "alibi";
  }
  throw LogicError("to_string", "no such kind of positions");
}

std::string to_string(FeedForward choice) {
  switch (choice) {
    case FeedForward::kNone:
      return "none";
    case FeedForward::kRelu:
      return "relu";
    case FeedForward::kGelu:
      return "gelu";
    case FeedForward::kGeluTanh:
      return "gelu_tanh";
    case FeedForward::kSiluGated:
      return "silu_gated";
  }
  throw LogicError("to_string", "no such kind of feed-forward layer");
}

std::string to_string(NormKind choice) {
  switch (choice) {
    case NormKind::kNone:
      return "none";
    case NormKind::kLayerNorm:
      return "layer_norm";
    case NormKind::kRmsNorm:
      return "rms_norm";
  }
  throw LogicError("to_string", "no such kind of norm");
}

std::string to_string(RotaryScalingKind choice) {
  switch (choice) {
    case RotaryScalingKind::kNone:
      return "none";
    case RotaryScalingKind::kLinear:
      return "linear";
    case RotaryScalingKind::kLlama3:
      return "llama3";
    case RotaryScalingKind::kYarn:
      return "yarn";
    case RotaryScalingKind::kListed:
      return "listed";
  }
  throw LogicError("to_string", "no such scaling of rotary positions");
}

std::string to_string(NormPlacement choice) { return choice == NormPlacement::kPre ? "pre" : "post"; }

std::string summary(const ModelConfig& given) {
  const ModelConfig c = resolve(given);
  std::string text =
      fmt::format("{} block{} x {} head{}", c.blocks, c.blocks == 1 ? "" : "s", c.heads, c.heads == 1 ? "" : "s");
  if (c.key_value_heads != c.heads) text += fmt::format(" ({} key/value)", c.key_value_heads);
  text += fmt::format(", width {}", c.width);
  text += c.positions == Positions::kNone ? ", no positions" : ", " + to_string(c.positions) + " positions";
  text += c.feed_forward == FeedForward::kNone
              ? ", attention only"
              : fmt::format(", {} feed-forward {}", to_string(c.feed_forward), c.feed_forward_width);
  if (c.parallel) text += ", parallel";
  if (c.norm_placement == NormPlacement::kPost) text += ", post-norm";
  if (c.norm == NormKind::kNone) text += ", no norm";
  if (c.query_key_norm) text += ", normalised queries and keys";
  if (c.window > 0) {
    text += fmt::format(", window {}", c.window);
    if (!c.windowed_blocks.empty()) text += fmt::format(" in {} blocks", c.windowed_blocks.size());
  }
  if (!c.causal) text += ", bidirectional";
  if (!c.unembedding) text += ", predicts no token";
  return text;
}

}  // namespace headlight
