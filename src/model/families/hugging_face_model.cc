// Folders as the Hugging Face library writes them: config.json and safetensors.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/formats/safetensors.h"
#include "headlight/tensor/half.h"
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

// A tensor's values in another type, packed.
template <class T>
std::vector<std::byte> packed_as(const NamedTensor& tensor, DType type) {
  const Buffer<float>& values = tensor.values;
  std::vector<std::byte> bytes(static_cast<std::size_t>(values.count()) * sizeof(T));
  for (int64_t i = 0; i < values.count(); ++i) {
    const T value = narrow<T>(values[i]);
    if (std::isfinite(values[i]) && !std::isfinite(widen(value))) {
      throw Error(ErrorKind::kUsage, tensor.name, fmt::format("element {} is {}", i, values[i]),
                  fmt::format("{} holds no number so large", dtype_info(type).name));
    }
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

std::vector<std::byte> packed(const NamedTensor& tensor, DType type) {
  switch (type) {
    case DType::kF16:
      return packed_as<Float16>(tensor, type);
    case DType::kBF16:
      return packed_as<BFloat16>(tensor, type);
    case DType::kF32:
      return packed_as<float>(tensor, type);
    default:
      throw LogicError("save_hugging_face_model", "type " + std::string(dtype_info(type).name));
  }
}

// The first family that has all of the model, and what its config.json says.
const Family& family_for(const ModelConfig& config, nlohmann::ordered_json& json) {
  std::string why;
  for (const Family& family : families()) {
    json = nlohmann::ordered_json::object();
    const std::string misfit = family.to_hugging_face(config, json);
    if (misfit.empty()) return family;
    why += fmt::format("{}{} has no {}", why.empty() ? "" : ", ", family.name, misfit);
  }
  throw Error(ErrorKind::kUsage, "the model", "is of none of its families: " + why, "");
}

}  // namespace

std::string save_hugging_face_model(const Model& model, const std::filesystem::path& folder, DType type) {
  nlohmann::ordered_json json;
  const Family& family = family_for(model.config(), json);
  json["torch_dtype"] = type == DType::kF32 ? "float32" : type == DType::kF16 ? "float16" : "bfloat16";
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorToWrite> tensors;
  for_each_tensor(model, family.parts(model.config(), Naming::kHuggingFace), [&](const NamedTensor& tensor) {
    bytes.push_back(packed(tensor, type));
    tensors.push_back({tensor.name, type, tensor.shape, bytes.back()});
  });
  make_folder(folder);
  write_safetensors(folder / "model.safetensors", std::move(tensors), {{"format", "pt"}});
  write_file_atomically(folder / "config.json", pretty_json(json));
  return json["model_type"];
}

ModelConfig hugging_face_config(const std::string& text, const std::string& where) {
  return described(text, where).config;
}

Model load_hugging_face(const std::string& text, const std::string& where, const std::filesystem::path& weights,
                        DType matrices) {
  const Described model = described(text, where);
  const Safetensors file(weights);
  return load_parts(model.config, model.family, model.family.parts(model.config, Naming::kHuggingFace),
                    *tensor_file(file), matrices);
}

}  // namespace headlight
