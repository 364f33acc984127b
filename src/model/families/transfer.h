#pragma once
// Weights from a file's tensors into a model, and from a model into tensors, by a family's parts.

#include <functional>
#include <string>
#include <vector>

#include "headlight/model/model.h"
#include "model/families/family.h"
#include "model/families/tensor_file.h"

namespace headlight {

// The configuration of a model whose file holds rotary pairs side by side: here they lie in halves.
inline ModelConfig with_halves(ModelConfig config) {
  config.rotary_pairs = RotaryPairs::kHalves;
  return config;
}

// A model of `config` that keeps its matrices as `matrices`. Every tensor is found and its shape checked before memory
// is taken for weights. Throws Error (bad data) naming the tensor: missing, of another shape, or one that belongs to no
// part of the model and is not among `family.skipped`.
Model load_parts(const ModelConfig& config, const Family& family, const std::vector<TensorPart>& parts,
                 const TensorFile& file, DType matrices);

struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  Buffer<float> values;
};

// Calls `each` with every tensor of `parts`, one after the other, by name.
void for_each_tensor(const Model& model, const std::vector<TensorPart>& parts,
                     const std::function<void(const NamedTensor&)>& each);

}  // namespace headlight
