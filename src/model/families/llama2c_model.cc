// llama2.c's files: Llama's arrangement, neighbouring coordinates turned.

#include "headlight/base/file.h"
#include "headlight/formats/llama2c.h"
#include "model/families/foreign_models.h"
#include "model/families/transfer.h"

namespace headlight {
namespace {

// as the file lies
ModelConfig stored_config(const Llama2cSizes& sizes) {
  ModelConfig config;
  config.feed_forward = FeedForward::kSiluGated;
  config.norm = NormKind::kRmsNorm;
  config.norm_epsilon = 1e-5;
  config.positions = Positions::kRotary;
  config.rotary_pairs = RotaryPairs::kAdjacent;
  config.biases = kNoBiases;
  config.vocabulary = sizes.vocabulary;
  config.context = sizes.context;
  config.width = sizes.width;
  config.blocks = sizes.blocks;
  config.heads = sizes.heads;
  config.key_value_heads = sizes.key_value_heads;
  config.feed_forward_width = sizes.hidden;
  config.tied = sizes.shared;
  return resolve(config);
}

}  // namespace

ModelConfig llama2c_config(const std::filesystem::path& path) {
  const MappedFile file(path);
  return with_halves(stored_config(parse_llama2c(file.bytes(), path.string()).sizes));
}

Model load_llama2c(const std::filesystem::path& path, DType matrices) {
  const MappedFile file(path);
  const Llama2cContent content = parse_llama2c(file.bytes(), path.string());
  const ModelConfig stored = stored_config(content.sizes);
  const Family& family = families().front();
  return load_parts(with_halves(stored), family, family.parts(stored, Naming::kLlama2c),
                    *tensor_file(content, path.string()), matrices);
}

}  // namespace headlight
