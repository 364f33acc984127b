// llama2.c's files as models: Llama's arrangement, neighbouring coordinates turned.

#include "model/llama2c.h"

#include "headlight/base/file.h"
#include "headlight/formats/llama2c.h"
#include "model/loading.h"

namespace headlight {
namespace {

ModelConfig config_of(const Llama2cSizes& sizes) {
  ModelConfig config;
  config.vocabulary = sizes.vocabulary;
  config.context = sizes.context;
  config.width = sizes.width;
  config.blocks = sizes.blocks;
  config.heads = sizes.heads;
  config.key_value_heads = sizes.key_value_heads;
  config.feed_forward = FeedForward::kSiluGated;
  config.feed_forward_width = sizes.hidden;
  config.norm = NormKind::kRmsNorm;
  config.norm_epsilon = 1e-5;
  config.positions = Positions::kRotary;
  config.rotary_pairs = RotaryPairs::kAdjacent;
  config.tied = sizes.shared;
  config.biases = false;
  return resolve(config);
}

// One parameter and where the file has it.
struct Source {
  std::string parameter;
  std::string tensor;
  int64_t block;    // the part of the tensor that is meant; -1: all of it
  bool transposed;  // (out, in) in the file, (in, out) here
};

std::vector<Source> sources_of(const ModelConfig& config) {
  std::vector<Source> out{{"embed.W_E", "tok_embeddings", -1, false}, {"ln_final.w", "norm", -1, false}};
  if (!config.tied) out.push_back({"unembed.W_U", "output", -1, true});
  for (int64_t block = 0; block < config.blocks; ++block) {
    const auto add = [&](const char* parameter, const char* tensor, bool transposed) {
      out.push_back({"blocks." + std::to_string(block) + "." + parameter, tensor, block, transposed});
    };
    add("ln1.w", "attention_norm", false);
    add("attn.W_Q", "wq", true);
    add("attn.W_K", "wk", true);
    add("attn.W_V", "wv", true);
    add("attn.W_O", "wo", true);
    add("ln2.w", "ffn_norm", false);
    add("mlp.W_gate", "w1", true);
    add("mlp.W_in", "w3", true);
    add("mlp.W_out", "w2", true);
  }
  return out;
}

// the floats of one block of a tensor, or all
StoredTensor part_of(const StoredTensor& tensor, int64_t block) {
  if (block < 0) return tensor;
  StoredTensor part = tensor;
  part.count /= tensor.shape[0];
  part.bytes = tensor.bytes.subspan(static_cast<std::size_t>(block * part.count) * sizeof(float),
                                    static_cast<std::size_t>(part.count) * sizeof(float));
  return part;
}

// rows of a matrix from `first` on
void read_rows(const StoredTensor& matrix, int64_t row_length, int64_t first, std::span<float> rows) {
  StoredTensor part = matrix;
  part.count = static_cast<int64_t>(rows.size());
  part.bytes = matrix.bytes.subspan(static_cast<std::size_t>(first * row_length) * sizeof(float), rows.size_bytes());
  read_floats(part, rows);
}

}  // namespace

ModelConfig llama2c_config(const std::filesystem::path& path) {
  const MappedFile file(path);
  return config_of(parse_llama2c(file.bytes(), path.string()).sizes);
}

Model load_llama2c(const std::filesystem::path& path) {
  const MappedFile file(path);
  const Llama2cContent content = parse_llama2c(file.bytes(), path.string());
  Model model(config_of(content.sizes));
  for (const Source& source : sources_of(model.config())) {
    const Parameter& parameter = model.parameters()[model.parameters().find(source.parameter)];
    const StoredTensor tensor = part_of(content.tensor(source.tensor), source.block);
    if (source.transposed) {
      const View<float, 2> to = model.matrix(source.parameter);
      load_transposed(to, [&](int64_t first, std::span<float> rows) { read_rows(tensor, to.size(0), first, rows); });
    } else {
      read_floats(tensor, {model.weights().data + parameter.offset, static_cast<std::size_t>(parameter.count)});
    }
  }
  return model;
}

}  // namespace headlight
