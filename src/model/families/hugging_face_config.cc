#include "model/families/hugging_face_config.h"

#include <fmt/format.h>

#include <cmath>

namespace headlight {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;
constexpr double kMostNumber = 1e12;

// keys that change nothing of a forward
constexpr const char* kHarmless[] = {
    // who wrote it, with what, and for which tokens
    "_attn_implementation", "_attn_implementation_autoset", "_name_or_path", "architectures", "bos_token_id",
    "decoder_start_token_id", "dtype", "eos_token_id", "model_type", "pad_token_id", "sep_token_id", "tokenizer_class",
    "torch_dtype", "transformers_version", "unk_token_id", "language", "name",
    // how it was and would be trained
    "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop", "classifier_dropout", "embd_pdrop",
    "finetuning_task", "gradient_checkpointing", "hidden_dropout", "hidden_dropout_prob", "initializer_range",
    "resid_pdrop", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj",
    // how its library runs it, generates with it and labels what comes out
    "_num_labels", "chunk_size_feed_forward", "id2label", "label2id", "num_labels", "output_attentions",
    "output_hidden_states", "pretraining_tp", "problem_type", "return_dict", "task_specific_params", "torchscript",
    "transformers.js_config", "use_bfloat16", "use_cache"};

}  // namespace

int64_t HuggingFaceConfig::size(const char* key) { return read_.whole(key, 1, kMost); }
int64_t HuggingFaceConfig::blocks(const char* key) { return read_.whole(key, 1, kMostBlocks); }
int64_t HuggingFaceConfig::size_or(const char* key, int64_t otherwise) { return has(key) ? size(key) : otherwise; }

double HuggingFaceConfig::number_or(const char* key, double otherwise, double min, double max) {
  return has(key) ? read_.number(key, min, max) : otherwise;
}
bool HuggingFaceConfig::boolean_or(const char* key, bool otherwise) {
  return has(key) ? read_.boolean(key) : otherwise;
}
std::string HuggingFaceConfig::text_or(const char* key, const std::string& otherwise) {
  return has(key) ? read_.text(key) : otherwise;
}

std::vector<std::string> HuggingFaceConfig::texts(const char* key) {
  return has(key) ? read_.texts(key) : std::vector<std::string>{};
}

void HuggingFaceConfig::sizes(ModelConfig& config, int64_t context) {
  config.vocabulary = size("vocab_size");
  config.context = size_or("max_position_embeddings", context);
  config.width = size("hidden_size");
  config.blocks = blocks("num_hidden_layers");
  config.heads = size("num_attention_heads");
  config.feed_forward_width = size("intermediate_size");
}

void HuggingFaceConfig::demand(const char* key, bool only) {
  if (boolean_or(key, only) != only) {
    fail(key, only ? "false" : "true", "changes the mathematics and is not supported");
  }
}

FeedForward HuggingFaceConfig::activation(const char* key, const std::string& otherwise) {
  const std::string name = text_or(key, otherwise);
  if (name == "relu") return FeedForward::kRelu;
  if (name == "gelu" || name == "gelu_python") return FeedForward::kGelu;
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") return FeedForward::kGeluTanh;
  fail(key, in_quotes(name), "expected relu, gelu, gelu_new, gelu_fast or gelu_pytorch_tanh");
}

void HuggingFaceConfig::scaling(JsonReader& read, ModelConfig& config) {
  RotaryScaling& to = config.rotary_scaling;
  const std::string key = read.has("rope_type") ? "rope_type" : "type";
  // both spellings may stand side by side
  const std::string type = read.has(key) ? read.text(key) : "default";
  read.has("type");
  const auto number_or = [&](const char* name, double otherwise) {
    return read.has(name) ? read.number(name, 0, kMostNumber) : otherwise;
  };
  if (type == "default") return;
  to.factor = read.number("factor", 1e-6, kMostNumber);
  if (type == "linear") {
    to.kind = RotaryScalingKind::kLinear;
    return;
  }
  to.original_context = number_or("original_max_position_embeddings", static_cast<double>(config.context));
  if (type == "llama3") {
    to.kind = RotaryScalingKind::kLlama3;
    to.low = read.number("low_freq_factor", 1e-6, kMostNumber);
    to.high = read.number("high_freq_factor", 1e-6, kMostNumber);
    return;
  }
  if (type != "yarn") read.fail(key, in_quotes(type), "expected default, linear, llama3 or yarn");
  to.kind = RotaryScalingKind::kYarn;
  to.fast = number_or("beta_fast", 32);
  to.slow = number_or("beta_slow", 1);
  to.whole_pairs = !read.has("truncate") || read.boolean("truncate");
  // 0.1 m ln(factor) + 1
  const auto magnitude = [&](double m) { return to.factor <= 1 ? 1 : 0.1 * m * std::log(to.factor) + 1; };
  const double over = number_or("mscale", 0), under = number_or("mscale_all_dim", 0);
  to.magnitude =
      number_or("attention_factor", over > 0 && under > 0 ? magnitude(over) / magnitude(under) : magnitude(1));
}

void HuggingFaceConfig::rotary(ModelConfig& config, std::optional<double> usual_part) {
  double part = usual_part.value_or(1);
  config.positions = Positions::kRotary;
  config.rotary_pairs = RotaryPairs::kHalves;
  config.rotary_base = 10000;
  for (const char* key : {"rope_theta", "rotary_emb_base"}) {
    config.rotary_base = number_or(key, config.rotary_base, 1, kMostNumber);
  }
  for (const char* key : {"rotary_pct", "partial_rotary_factor"}) part = number_or(key, part, 0, 1);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!has(key)) continue;
    JsonReader read = read_.object(key);
    if (read.has("rope_theta")) config.rotary_base = read.number("rope_theta", 1, kMostNumber);
    if (read.has("partial_rotary_factor")) part = read.number("partial_rotary_factor", 0, 1);
    scaling(read, config);
    read.finish();
  }
  if (!usual_part && part != 1) {
    fail("partial_rotary_factor", fmt::format("{}", part), "expected 1: the library turns whole heads in this family");
  }
  const int64_t width = config.head_width != 0 ? config.head_width : config.width / std::max<int64_t>(1, config.heads);
  config.rotary_width = static_cast<int64_t>(static_cast<double>(width) * part);
  if (config.rotary_width == 0) fail("partial_rotary_factor", fmt::format("{}", part), "turns no coordinate of a head");
}

void HuggingFaceConfig::windows(ModelConfig& config, int64_t window, int64_t first_block) {
  const std::vector<std::string> types = texts("layer_types");
  if (!types.empty() && static_cast<int64_t>(types.size()) != config.blocks) {
    fail("layer_types", fmt::format("{} layers", types.size()), fmt::format("expected {}", config.blocks));
  }
  std::vector<int64_t> some;
  for (int64_t block = 0; block < config.blocks; ++block) {
    bool windowed = window > 0 && block >= first_block;
    if (!types.empty()) {
      const std::string& type = types[static_cast<std::size_t>(block)];
      windowed = type == "sliding_attention";
      if (!windowed && type != "full_attention") {
        fail("layer_types", in_quotes(type), "expected full_attention or sliding_attention");
      }
      if (windowed && window == 0) fail("layer_types", in_quotes(type), "expected a sliding_window beside it");
    }
    if (windowed) some.push_back(block);
  }
  if (some.empty()) return;
  config.window = window;
  if (static_cast<int64_t>(some.size()) < config.blocks) config.windowed_blocks = some;
}

bool HuggingFaceConfig::predicts() {
  const std::vector<std::string> names = texts("architectures");
  const auto ends_with = [](const std::string& name, std::string_view end) {
    return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  for (const std::string& name : names) {
    for (const char* head : {"ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining", "DoubleHeadsModel"}) {
      if (ends_with(name, head)) return true;
    }
  }
  return names.empty();
}

void HuggingFaceConfig::finish() {
  for (const char* key : kHarmless) read_.has(key);
  for (const char* key : {"is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder"}) demand(key, false);
  read_.finish();
}

void write_sizes(const ModelConfig& config, nlohmann::ordered_json& json) {
  json["vocab_size"] = config.vocabulary;
  json["max_position_embeddings"] = config.context;
  json["hidden_size"] = config.width;
  json["num_hidden_layers"] = config.blocks;
  json["num_attention_heads"] = config.heads;
  json["intermediate_size"] = config.feed_forward_width;
  json["hidden_act"] = activation_name(config.feed_forward);
}

void write_rotary(const ModelConfig& config, nlohmann::ordered_json& json) {
  const RotaryScaling& scaling = config.rotary_scaling;
  nlohmann::ordered_json rope{
      {"rope_type", scaling.kind == RotaryScalingKind::kNone ? "default" : to_string(scaling.kind)},
      {"rope_theta", config.rotary_base}};
  if (config.rotary_width != config.head_width) {
    rope["partial_rotary_factor"] = static_cast<double>(config.rotary_width) / static_cast<double>(config.head_width);
  }
  if (scaling.kind != RotaryScalingKind::kNone) rope["factor"] = scaling.factor;
  if (scaling.kind == RotaryScalingKind::kLlama3 || scaling.kind == RotaryScalingKind::kYarn) {
    rope["original_max_position_embeddings"] = static_cast<int64_t>(scaling.original_context);
  }
  if (scaling.kind == RotaryScalingKind::kLlama3) {
    rope["low_freq_factor"] = scaling.low;
    rope["high_freq_factor"] = scaling.high;
  }
  if (scaling.kind == RotaryScalingKind::kYarn) {
    rope["beta_fast"] = scaling.fast;
    rope["beta_slow"] = scaling.slow;
    rope["attention_factor"] = scaling.magnitude;
    rope["truncate"] = scaling.whole_pairs;
  }
  json["rope_parameters"] = rope;
}

void write_layer_types(const ModelConfig& config, nlohmann::ordered_json& json) {
  std::vector<std::string> types;
  for (int64_t block = 0; block < config.blocks; ++block) {
    types.push_back(window_of(config, block) > 0 ? "sliding_attention" : "full_attention");
  }
  json["layer_types"] = types;
}

std::string first_misfit(std::initializer_list<std::pair<bool, std::string>> demands) {
  for (const auto& [holds, what] : demands) {
    if (!holds) return what;
  }
  return "";
}

std::string layer_norm_misfit(const ModelConfig& c) {
  return first_misfit({
      {c.norm == NormKind::kLayerNorm, "norm " + to_string(c.norm)},
      {c.norm_placement == NormPlacement::kPre, "norm_placement post"},
      {c.feed_forward != FeedForward::kNone && c.feed_forward != FeedForward::kSiluGated,
       "feed_forward " + to_string(c.feed_forward)},
  });
}

std::string rotary_misfit(const ModelConfig& c) {
  return first_misfit({
      {c.positions == Positions::kRotary, "positions " + to_string(c.positions)},
      {c.rotary_pairs == RotaryPairs::kHalves, "rotary_pairs adjacent"},
      {c.rotary_scaling.kind != RotaryScalingKind::kListed, "rotary_scaling listed"},
  });
}

std::string decoder_misfit(const ModelConfig& c) {
  return first_misfit({
      {c.causal, "a bidirectional model"},
      {c.token_types == 0 && !c.embedding_norm && !c.prediction_head, "the ends of BERT"},
  });
}

std::string first_of(std::initializer_list<std::string> misfits) {
  for (const std::string& misfit : misfits) {
    if (!misfit.empty()) return misfit;
  }
  return "";
}

std::string activation_name(FeedForward kind) {
  switch (kind) {
    case FeedForward::kRelu:
      return "relu";
    case FeedForward::kGelu:
      return "gelu";
    case FeedForward::kGeluTanh:
      return "gelu_new";
    case FeedForward::kSiluGated:
      return "silu";
    case FeedForward::kNone:
      break;
  }
  return "none";
}

}  // namespace headlight
