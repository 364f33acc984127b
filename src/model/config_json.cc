// ModelConfig as config.json and back.

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/model/config.h"

namespace headlight {
namespace {

constexpr const char* kModelType = "headlight";

nlohmann::ordered_json biases_to_json(const Biases& biases) {
  return {{"query_key_value", biases.query_key_value},
          {"attention_output", biases.attention_output},
          {"feed_forward", biases.feed_forward},
          {"norms", biases.norms},
          {"unembedding", biases.unembedding}};
}

// one for all but the unembedding's, as older runs write it, or one by one
Biases biases_from_json(JsonReader& parent) {
  if (parent.value("biases").is_boolean()) return parent.boolean("biases") ? Biases{} : kNoBiases;
  JsonReader read = parent.object("biases");
  Biases out;
  out.query_key_value = read.boolean("query_key_value");
  out.attention_output = read.boolean("attention_output");
  out.feed_forward = read.boolean("feed_forward");
  out.norms = read.boolean("norms");
  out.unembedding = read.boolean("unembedding");
  read.finish();
  return out;
}

nlohmann::ordered_json scaling_to_json(const RotaryScaling& scaling) {
  nlohmann::ordered_json json{{"kind", to_string(scaling.kind)}};
  if (scaling.kind == RotaryScalingKind::kListed) {
    json["divisors"] = scaling.divisors;
    return json;
  }
  json["factor"] = scaling.factor;
  if (scaling.kind == RotaryScalingKind::kLinear) return json;
  json["original_context"] = scaling.original_context;
  if (scaling.kind == RotaryScalingKind::kLlama3) {
    json["low"] = scaling.low;
    json["high"] = scaling.high;
    return json;
  }
  json["fast"] = scaling.fast;
  json["slow"] = scaling.slow;
  json["magnitude"] = scaling.magnitude;
  json["whole_pairs"] = scaling.whole_pairs;
  return json;
}

RotaryScaling scaling_from_json(JsonReader read) {
  constexpr double kMost = 1e12;
  RotaryScaling out;
  out.kind = static_cast<RotaryScalingKind>(read.choice("kind", {"none", "linear", "llama3", "yarn", "listed"}));
  if (out.kind == RotaryScalingKind::kListed) {
    out.divisors = read.numbers("divisors", 0, kMost);
  } else if (out.kind != RotaryScalingKind::kNone) {
    out.factor = read.number("factor", 0, kMost);
    if (out.kind != RotaryScalingKind::kLinear) out.original_context = read.number("original_context", 1, kMost);
  }
  if (out.kind == RotaryScalingKind::kLlama3) {
    out.low = read.number("low", 0, kMost);
    out.high = read.number("high", 0, kMost);
  } else if (out.kind == RotaryScalingKind::kYarn) {
    out.fast = read.number("fast", 0, kMost);
    out.slow = read.number("slow", 0, kMost);
    out.magnitude = read.number("magnitude", 0, kMost);
    out.whole_pairs = read.boolean("whole_pairs");
  }
  read.finish();
  return out;
}

}  // namespace

std::string to_json(const ModelConfig& given) {
  const ModelConfig c = resolve(given);
  nlohmann::ordered_json json;
  json["model_type"] = kModelType;
  json["vocabulary"] = c.vocabulary;
  json["context"] = c.context;
  json["width"] = c.width;
  json["blocks"] = c.blocks;
  json["heads"] = c.heads;
  json["key_value_heads"] = c.key_value_heads;
  json["head_width"] = c.head_width;
  json["value_width"] = c.value_width;
  json["feed_forward"] = to_string(c.feed_forward);
  json["feed_forward_width"] = c.feed_forward_width;
  json["norm"] = to_string(c.norm);
  json["norm_placement"] = to_string(c.norm_placement);
  json["parallel"] = c.parallel;
  json["norm_epsilon"] = c.norm_epsilon;
  json["positions"] = to_string(c.positions);
  json["rotary_base"] = c.rotary_base;
  json["rotary_width"] = c.rotary_width;
  json["rotary_pairs"] = c.rotary_pairs == RotaryPairs::kHalves ? "halves" : "adjacent";
  if (c.rotary_scaling.kind != RotaryScalingKind::kNone) json["rotary_scaling"] = scaling_to_json(c.rotary_scaling);
  json["query_key_norm"] = c.query_key_norm;
  json["causal"] = c.causal;
  json["window"] = c.window;
  if (!c.windowed_blocks.empty()) json["windowed_blocks"] = c.windowed_blocks;
  json["token_types"] = c.token_types;
  json["embedding_norm"] = c.embedding_norm;
  json["unembedding"] = c.unembedding;
  json["tied"] = c.tied;
  json["prediction_head"] = c.prediction_head;
  json["biases"] = biases_to_json(c.biases);
  return pretty_json(json);
}

ModelConfig model_config_from_json(const std::string& text, const std::string& where) {
  const nlohmann::json json = parse_json(text, where);
  JsonReader read(json, where);
  const std::string type = read.text("model_type");
  if (type != kModelType) read.fail("model_type", in_quotes(type), std::string("expected \"") + kModelType + "\"");
  ModelConfig c;
  c.vocabulary = read.whole("vocabulary", 1);
  c.context = read.whole("context", 1);
  c.width = read.whole("width", 1);
  c.blocks = read.whole("blocks", 0);
  c.heads = read.whole("heads", 1);
  c.key_value_heads = read.whole("key_value_heads", 1);
  c.head_width = read.whole("head_width", 1);
  c.value_width = read.whole("value_width", 1);
  c.feed_forward =
      static_cast<FeedForward>(read.choice("feed_forward", {"none", "relu", "gelu", "gelu_tanh", "silu_gated"}));
  c.feed_forward_width = read.whole("feed_forward_width", 0);
  c.norm = static_cast<NormKind>(read.choice("norm", {"none", "layer_norm", "rms_norm"}));
  c.norm_placement = static_cast<NormPlacement>(read.choice("norm_placement", {"pre", "post"}));
  c.parallel = read.boolean("parallel");
  c.norm_epsilon = read.number("norm_epsilon", 0, 1);
  c.positions = static_cast<Positions>(read.choice("positions", {"none", "learned", "sinusoidal", "rotary", "alibi"}));
  c.rotary_base = read.number("rotary_base", 1, 1e12);
  c.rotary_width = read.whole("rotary_width", 0);
  c.rotary_pairs = static_cast<RotaryPairs>(read.choice("rotary_pairs", {"halves", "adjacent"}));
  if (read.has("rotary_scaling")) c.rotary_scaling = scaling_from_json(read.object("rotary_scaling"));
  c.causal = read.boolean("causal");
  c.tied = read.boolean("tied");
  c.biases = biases_from_json(read);
  // keys that older runs do not have
  const auto optional_boolean = [&](const char* key, bool& to) {
    if (read.has(key)) to = read.boolean(key);
  };
  const auto optional_whole = [&](const char* key, int64_t& to) {
    if (read.has(key)) to = read.whole(key, 0);
  };
  optional_boolean("query_key_norm", c.query_key_norm);
  optional_boolean("embedding_norm", c.embedding_norm);
  optional_boolean("unembedding", c.unembedding);
  optional_boolean("prediction_head", c.prediction_head);
  optional_whole("window", c.window);
  optional_whole("token_types", c.token_types);
  if (read.has("windowed_blocks")) c.windowed_blocks = read.wholes("windowed_blocks", 0);
  read.finish();
  return resolve_in_file(c, where);
}

}  // namespace headlight
