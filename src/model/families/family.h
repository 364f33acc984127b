#pragma once
// A family of models as other programs store it: how its configuration reads, and how its tensors are called. Each is
// one file beside this one and one row of families(); docs/adding-a-model.md.

#include <string>
#include <vector>

#include "headlight/model/config.h"
#include "model/families/gguf_keys.h"
#include "model/families/hugging_face_config.h"
#include "model/families/part_list.h"

namespace headlight {

struct Family {
  std::string name;
  // The `model_type`s of config.json and the `general.architecture`s of GGUF that it reads.
  std::vector<std::string> model_types;
  std::vector<std::string> architectures;
  // What a checkpoint of the model without its unembedding leaves out at the beginning of each name: "model."
  std::string prefix;
  // Tensors that are no part of what is computed here, `*` for any run of characters.
  std::vector<std::string> skipped;

  // Throw Error (bad data) naming the key, what was found and expected.
  ModelConfig (*from_hugging_face)(HuggingFaceConfig& json);
  ModelConfig (*from_gguf)(GgufKeys& keys);  // nullptr where there are no `architectures`
  // Every parameter of a model of this configuration, once.
  std::vector<TensorPart> (*parts)(const ModelConfig& config, Naming naming);
  // Writes config.json's keys, `model_type` first; what in `config` the family cannot say comes back as
  // "positions none", else "".
  std::string (*to_hugging_face)(const ModelConfig& config, nlohmann::ordered_json& json);
};

// All, in the order in which a writer tries them.
const std::vector<Family>& families();

}  // namespace headlight
