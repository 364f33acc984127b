#include "headlight/model/config.h"

#include <fmt/format.h>

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
constexpr int64_t kMostBlocks = 10000;

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

void resolve_positions(ModelConfig& c, const Checker& check) {
  if (c.positions != Positions::kRotary) {
    c.rotary_width = 0;
    return;
  }
  if (c.rotary_width == 0) c.rotary_width = c.head_width;
  if (c.rotary_width % 2 != 0 || c.rotary_width > c.head_width) {
    check.refuse("rotary_width", fmt::format("{}", c.rotary_width),
                 fmt::format("is not an even number up to {} {}", check.name("head_width"), c.head_width));
  }
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
  return c;
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
  if (!c.causal) text += ", bidirectional";
  return text;
}

}  // namespace headlight
