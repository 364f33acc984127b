// Folders as the Hugging Face library writes them: config.json and safetensors.

#include <fmt/format.h>

#include <algorithm>

#include "headlight/formats/safetensors.h"
#include "model/families/foreign_models.h"
#include "model/families/transfer.h"

namespace headlight {
namespace {

struct Described {
  const Family& family;
  ModelConfig config;
};

Described described(const std::string& text, const std::string& where) {
  const nlohmann::json json = parse_json(text, where);
  HuggingFaceConfig read(json, where);
  const std::string type = read.text_or("model_type", "");
  std::vector<std::string> known{"headlight"};
  for (const Family& family : families()) {
    known.insert(known.end(), family.model_types.begin(), family.model_types.end());
    if (std::find(family.model_types.begin(), family.model_types.end(), type) == family.model_types.end()) continue;
    const ModelConfig config = family.from_hugging_face(read);
    read.finish();
    return {family, resolve_in_file(config, where)};
  }
  read.fail("model_type", in_quotes(type), fmt::format("expected one of {}", fmt::join(known, ", ")));
}

}  // namespace

ModelConfig hugging_face_config(const std::string& text, const std::string& where) {
  return described(text, where).config;
}

Model load_hugging_face(const std::string& text, const std::string& where, const std::filesystem::path& weights) {
  const Described model = described(text, where);
  const Safetensors file(weights);
  return load_parts(model.config, model.family, model.family.parts(model.config, Naming::kHuggingFace),
                    *tensor_file(file));
}

}  // namespace headlight
