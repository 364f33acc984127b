#pragma once
// The parts of a family, gathered by its names: what the file in hand calls the tensor of each parameter.

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/model/config.h"
#include "model/families/tensor_part.h"

namespace headlight {

enum class Naming { kHuggingFace, kGguf, kLlama2c };

// What one thing is called here and in files, without what stands before and after ("model.layers.0.", ".weight").
// "attn.?_Q" is W_Q and b_Q; a norm is named without its ".w" and ".b".
struct PartNames {
  const char* parameter;
  const char* hugging_face;
  const char* gguf = "";
  const char* llama2c = "";
};

class PartList {
 public:
  // `block` is what stands before names of a block, `{}` its number: "model.layers.{}.".
  PartList(Naming naming, std::string block) : naming_(naming), block_(std::move(block)) {}

  Naming naming() const { return naming_; }

  // A tensor of no block; names are whole. `transposed`: a matrix (out, in) in the file.
  void whole(const PartNames& names, bool transposed = false);
  // Of a block: a norm with its bias or without, a weight of another kind, a linear map with its bias or without.
  void norm(int64_t block, const PartNames& names, bool biased);
  void map(int64_t block, const PartNames& names, bool biased, bool transposed, const OutputOrder& order = {});

  std::vector<TensorPart> take() { return std::move(parts_); }

 private:
  std::string tensor(int64_t block, const PartNames& names, const char* kind) const;

  Naming naming_;
  std::string block_;
  std::vector<TensorPart> parts_;
};

}  // namespace headlight
