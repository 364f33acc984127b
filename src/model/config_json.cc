// ModelConfig as config.json and back.

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/model/config.h"

namespace headlight {
namespace {

constexpr const char* kModelType = "headlight";

// "config.json: heads 3" from the checks that the command line shares: the file's name goes in front
ModelConfig resolve_in_file(const ModelConfig& config, const std::string& where) {
  try {
    return resolve(config);
  } catch (const Error& error) {
    throw Error(ErrorKind::kBadData, where, error.what());
  }
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
  json["tied"] = c.tied;
  json["biases"] = c.biases;
  json["causal"] = c.causal;
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
  c.tied = read.boolean("tied");
  c.biases = read.boolean("biases");
  c.causal = read.boolean("causal");
  read.finish();
  return resolve_in_file(c, where);
}

}  // namespace headlight
