// llama2.c's files as models: Llama's arrangement, neighbouring coordinates turned.

#include "model/llama2c.h"

#include "headlight/base/file.h"
#include "headlight/formats/llama2c.h"
#include "model/llama_parts.h"
#include "model/loading.h"

namespace headlight {
namespace {

ModelConfig config_of(const Llama2cSizes& sizes) {
  ModelConfig config = llama_arrangement();
  config.vocabulary = sizes.vocabulary;
  config.context = sizes.context;
  config.width = sizes.width;
  config.blocks = sizes.blocks;
  config.heads = sizes.heads;
  config.key_value_heads = sizes.key_value_heads;
  config.feed_forward_width = sizes.hidden;
  config.norm_epsilon = 1e-5;
  config.tied = sizes.shared;
  return resolve(config);
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
  for (const LlamaPart& source : llama_parts(model.config())) {
    const Parameter& parameter = model.parameters()[model.parameters().find(source.parameter)];
    const StoredTensor tensor = part_of(content.tensor(source.llama2c), source.block);
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
