// The architecture `llama` of GGUF: Llama, Mistral and SmolLM. Its queries and keys are stored for turning
// neighbouring coordinates.

#include "model/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "headlight/base/error.h"
#include "headlight/formats/gguf.h"
#include "headlight/text/tokenizer_metadata.h"
#include "model/llama_parts.h"
#include "model/loading.h"

namespace headlight {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;

[[noreturn]] void refuse(const Gguf& file, const std::string& what, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorKind::kBadData, file.name() + ": " + what, found, expected);
}

// keys below `llama.` that are read here, and those that say nothing about the mathematics
constexpr std::string_view kRead[] = {"context_length",
                                      "embedding_length",
                                      "block_count",
                                      "feed_forward_length",
                                      "attention.head_count",
                                      "attention.head_count_kv",
                                      "attention.key_length",
                                      "attention.value_length",
                                      "attention.layer_norm_rms_epsilon",
                                      "rope.dimension_count",
                                      "rope.freq_base",
                                      "rope.scaling.type",
                                      "vocab_size"};

void refuse_unknown_keys(const Gguf& file, const std::string& prefix) {
  for (const GgufValue& value : file.values()) {
    if (value.key.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string key = value.key.substr(prefix.size());
    if (std::find(std::begin(kRead), std::end(kRead), key) != std::end(kRead)) continue;
    refuse(file, "key " + value.key, "may change the mathematics and is not supported", "expected a plain model");
  }
}

ModelConfig config_of(const Gguf& file) {
  const std::string architecture = file.text("general.architecture");
  if (architecture != "llama") refuse(file, "general.architecture", architecture, "expected llama");
  const std::string prefix = architecture + ".";
  refuse_unknown_keys(file, prefix);
  const auto size = [&](const char* key) { return file.whole(prefix + key, 1, kMost); };
  const auto size_or = [&](const char* key, int64_t otherwise) {
    return file.has(prefix + key) ? size(key) : otherwise;
  };
  ModelConfig config = llama_arrangement();
  config.context = size("context_length");
  config.width = size("embedding_length");
  config.blocks = size("block_count");
  config.heads = size("attention.head_count");
  config.key_value_heads = size_or("attention.head_count_kv", config.heads);
  config.head_width = size_or("attention.key_length", 0);
  config.value_width = size_or("attention.value_length", 0);
  config.feed_forward_width = size("feed_forward_length");
  config.norm_epsilon = file.number(prefix + "attention.layer_norm_rms_epsilon", 1e-12, 0.1);
  config.rotary_width = size_or("rope.dimension_count", 0);
  const std::string base = prefix + "rope.freq_base", scaling = prefix + "rope.scaling.type";
  config.rotary_base = file.has(base) ? file.number(base, 1.0001, 1e12) : 10000;
  if (file.has(scaling) && file.text(scaling) != "none") {
    refuse(file, "key " + scaling, file.text(scaling), "expected none");
  }
  config.tied = file.find("output.weight") == nullptr;
  const GgufTensor* embedding = file.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    refuse(file, "tensor token_embd.weight", embedding == nullptr ? "is missing" : "is no matrix", "expected a matrix");
  }
  config.vocabulary = embedding->shape[0];
  return resolve(config);
}

// The tensor of each source, in order. All shapes are checked before memory is taken for weights.
std::vector<const GgufTensor*> tensors_of(const Gguf& file, const ModelConfig& config,
                                          const std::vector<LlamaPart>& sources) {
  const ParameterTable table = parameter_table(config);
  std::vector<const GgufTensor*> out;
  for (const LlamaPart& source : sources) {
    std::vector<int64_t> shape = table[table.find(source.parameter)].shape;
    if (source.transposed) std::swap(shape[0], shape[1]);
    out.push_back(&file.tensor(source.gguf, shape));
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (std::find(out.begin(), out.end(), &tensor) != out.end()) continue;
    refuse(file, "tensor " + tensor.name, "belongs to no part of the model",
           fmt::format("expected the {} tensors of a plain llama", sources.size()));
  }
  return out;
}

}  // namespace

ModelConfig gguf_config(const std::filesystem::path& path) { return config_of(Gguf(path)); }

Model load_gguf(const std::filesystem::path& path) {
  const Gguf file(path);
  const ModelConfig config = config_of(file);
  const std::vector<LlamaPart> sources = llama_parts(config);
  const std::vector<const GgufTensor*> tensors = tensors_of(file, config, sources);
  Model model(config);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const GgufTensor& tensor = *tensors[i];
    const auto read = [&](int64_t first, std::span<float> rows) { read_rows(tensor, first, rows); };
    if (tensor.shape.size() == 1) {
      const View<float, 1> to = model.vector(sources[i].parameter);
      read_floats(tensor, {to.data, static_cast<std::size_t>(to.count())});
    } else if (sources[i].transposed) {
      load_transposed(model.matrix(sources[i].parameter), read);
    } else {
      load_rows(model.matrix(sources[i].parameter), read);
    }
  }
  return model;
}

std::shared_ptr<const Tokenizer> gguf_tokenizer(const std::filesystem::path& path) {
  const Gguf file(path);
  const std::string prefix = "tokenizer.ggml.";
  TokenizerMetadata out;
  out.model = file.text(prefix + "model");
  out.tokens = file.texts(prefix + "tokens");
  if (file.has(prefix + "pre")) out.pre = file.text(prefix + "pre");
  if (file.has(prefix + "scores")) out.scores = file.numbers(prefix + "scores");
  if (file.has(prefix + "merges")) out.merges = file.texts(prefix + "merges");
  if (file.has(prefix + "token_type")) {
    for (const int64_t type : file.wholes(prefix + "token_type", 0, 255)) {
      out.token_types.push_back(static_cast<int32_t>(type));
    }
  }
  if (file.has(prefix + "precompiled_charsmap")) {
    for (const int64_t byte : file.wholes(prefix + "precompiled_charsmap", -128, 255)) {
      out.precompiled_charsmap.push_back(static_cast<char>(byte));
    }
  }
  const auto id = [&](const char* key, std::optional<int64_t>& to) {
    if (file.has(prefix + key)) to = file.whole(prefix + key, 0, kMost);
  };
  id("bos_token_id", out.bos);
  id("eos_token_id", out.eos);
  id("unknown_token_id", out.unknown);
  id("padding_token_id", out.padding);
  id("seperator_token_id", out.separator);  // spelled so in the format
  id("mask_token_id", out.mask);
  const auto flag = [&](const char* key, std::optional<bool>& to) {
    if (file.has(prefix + key)) to = file.boolean(prefix + key);
  };
  flag("add_bos_token", out.add_bos);
  flag("add_eos_token", out.add_eos);
  flag("add_space_prefix", out.add_space_prefix);
  flag("remove_extra_whitespaces", out.remove_extra_whitespaces);
  return tokenizer_from_metadata(out, file.name());
}

}  // namespace headlight
