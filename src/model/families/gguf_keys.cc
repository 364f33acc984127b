#include "model/families/gguf_keys.h"

#include <fmt/format.h>

#include <cmath>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;
constexpr double kMostNumber = 1e12;

}  // namespace

GgufKeys::GgufKeys(const Gguf& file) : file_(file), architecture_(file.text("general.architecture")) {}

std::string GgufKeys::full(const std::string& key) {
  std::string name = architecture_ + "." + key;
  asked_.insert(name);
  return name;
}

bool GgufKeys::has(const std::string& key) { return file_.has(full(key)); }
int64_t GgufKeys::size(const std::string& key) { return file_.whole(full(key), 1, kMost); }
int64_t GgufKeys::size_or(const std::string& key, int64_t otherwise) { return has(key) ? size(key) : otherwise; }
double GgufKeys::number(const std::string& key, double min, double max) { return file_.number(full(key), min, max); }
double GgufKeys::number_or(const std::string& key, double otherwise, double min, double max) {
  return has(key) ? number(key, min, max) : otherwise;
}
bool GgufKeys::boolean_or(const std::string& key, bool otherwise) {
  return has(key) ? file_.boolean(full(key)) : otherwise;
}
std::string GgufKeys::text_or(const std::string& key, const std::string& otherwise) {
  return has(key) ? file_.text(full(key)) : otherwise;
}

void GgufKeys::sizes(ModelConfig& config) {
  config.context = size("context_length");
  config.width = size("embedding_length");
  config.blocks = file_.whole(full("block_count"), 1, kMostBlocks);
  config.heads = size("attention.head_count");
  config.key_value_heads = size_or("attention.head_count_kv", config.heads);
  config.head_width = size_or("attention.key_length", 0);
  config.value_width = size_or("attention.value_length", 0);
  config.feed_forward_width = size("feed_forward_length");
  config.tied = !has_tensor("output.weight");
  const GgufTensor* embedding = file_.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    fail("tensor token_embd.weight", embedding == nullptr ? "is missing" : "is no matrix", "expected a matrix");
  }
  config.vocabulary = embedding->shape[0];
  has("vocab_size");  // said by the embedding
}

void GgufKeys::rotary(ModelConfig& config) {
  config.positions = Positions::kRotary;
  config.rotary_width = size_or("rope.dimension_count", 0);
  config.rotary_base = number_or("rope.freq_base", 10000, 1.0001, kMostNumber);
  RotaryScaling& scaling = config.rotary_scaling;
  const std::string type = text_or("rope.scaling.type", "none");
  has("rope.scaling.finetuned");
  if (type == "linear" || type == "yarn") {
    scaling.kind = type == "linear" ? RotaryScalingKind::kLinear : RotaryScalingKind::kYarn;
    scaling.factor = number("rope.scaling.factor", 1e-6, kMostNumber);
  } else if (type != "none") {
    fail("key " + full("rope.scaling.type"), type, "expected none, linear or yarn");
  }
  if (type == "yarn") {
    scaling.original_context = static_cast<double>(size("rope.scaling.original_context_length"));
    scaling.fast = number_or("rope.scaling.yarn_beta_fast", 32, 1e-6, kMostNumber);
    scaling.slow = number_or("rope.scaling.yarn_beta_slow", 1, 1e-6, kMostNumber);
    const double natural = scaling.factor <= 1 ? 1 : 0.1 * std::log(scaling.factor) + 1;
    scaling.magnitude = natural * number_or("rope.scaling.attn_factor", 1, 1e-6, kMostNumber);
  }
  if (const GgufTensor* divisors = file_.find("rope_freqs.weight")) {
    if (scaling.kind != RotaryScalingKind::kNone)
      fail("tensor rope_freqs.weight", "stands beside rope.scaling", "expected one of the two");
    if (divisors->count > kMost)
      fail("tensor rope_freqs.weight", fmt::format("{} numbers", divisors->count), "expected one for each pair");
    std::vector<float> numbers(static_cast<std::size_t>(divisors->count));
    read_floats(*divisors, numbers);
    scaling.kind = RotaryScalingKind::kListed;
    scaling.divisors.assign(numbers.begin(), numbers.end());
  }
}

void GgufKeys::finish() const {
  const std::string prefix = architecture_ + ".";
  for (const GgufValue& value : file_.values()) {
    if (value.key.compare(0, prefix.size(), prefix) != 0 || asked_.count(value.key) != 0) continue;
    fail("key " + value.key, "may change the mathematics and is not supported", "expected a plain model");
  }
}

void GgufKeys::fail(const std::string& what, const std::string& found, const std::string& expected) const {
  throw Error(ErrorKind::kBadData, file_.name() + ": " + what, found, expected);
}

}  // namespace headlight
