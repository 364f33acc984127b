// Models on disk: a folder with config.json and model.safetensors, or what other programs wrote.

#include <map>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/formats/safetensors.h"
#include "headlight/model/model.h"
#include "headlight/text/tokenizer_metadata.h"
#include "model/families/foreign_models.h"
#include "model/load_parameter.h"

namespace headlight {
namespace {

constexpr const char* kModelType = "headlight";

struct ModelFiles {
  std::filesystem::path config;
  std::filesystem::path weights;
};

bool is_llama2c(const std::filesystem::path& path) { return path.extension() == ".bin"; }
bool is_gguf(const std::filesystem::path& path) { return path.extension() == ".gguf"; }

constexpr const char* kModels =
    "expected a model: a folder with config.json and model.safetensors (or its shards and their index), its "
    ".safetensors file, .gguf, or llama2.c's .bin";

void demand_there(const std::filesystem::path& path) {
  std::error_code problem;
  if (std::filesystem::exists(path, problem)) return;
  throw Error(ErrorKind::kMissingInput, path.string(), problem ? problem.message() : "no such file or folder", kModels);
}

// PyTorch's own files run code when they are read
void refuse_pickles(const std::filesystem::path& folder) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth"}) {
    if (!std::filesystem::exists(folder / name)) continue;
    throw Error(ErrorKind::kBadData, (folder / name).string(), "is a pickle, which runs code when it is read",
                "expected model.safetensors: save the model with safe_serialization=True");
  }
}

ModelFiles files_of(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    const std::filesystem::path whole = path / "model.safetensors", index = path / "model.safetensors.index.json";
    const bool sharded = !std::filesystem::exists(whole) && std::filesystem::exists(index);
    if (!sharded && !std::filesystem::exists(whole)) refuse_pickles(path);
    return {path / "config.json", sharded ? index : whole};
  }
  if (path.extension() != ".safetensors") {
    throw Error(ErrorKind::kBadData, path.string(), "is no model", kModels);
  }
  return {path.parent_path() / "config.json", path};
}

// Whether a config.json is of our own runs; one that says nothing is taken for one, and refused there.
bool is_ours(const std::string& text, const std::filesystem::path& path) {
  const nlohmann::json json = parse_json(text, path.string());
  JsonReader read(json, path.string());
  return !read.has("model_type") || read.text("model_type") == kModelType;
}

void refuse_unknown_tensors(const Safetensors& file, const ParameterTable& table) {
  for (const StoredTensor& tensor : file.tensors()) {
    if (table.contains(tensor.name)) continue;
    throw Error(ErrorKind::kBadData, file.name(), "tensor " + tensor.name + " belongs to no part of the model",
                "expected the " + std::to_string(table.all().size()) + " tensors that config.json describes");
  }
}

}  // namespace

ModelConfig load_config(const std::filesystem::path& path) {
  demand_there(path);
  if (is_llama2c(path)) return llama2c_config(path);
  if (is_gguf(path)) return gguf_config(path);
  const std::filesystem::path file = path.extension() == ".json" ? path : files_of(path).config;
  const std::string text = read_file(file);
  return is_ours(text, file) ? model_config_from_json(text, file.string()) : hugging_face_config(text, file.string());
}

Model load_model(const std::filesystem::path& path, DType matrices) {
  demand_there(path);
  if (is_llama2c(path)) return load_llama2c(path, matrices);
  if (is_gguf(path)) return load_gguf(path, matrices);
  const ModelFiles files = files_of(path);
  const std::string text = read_file(files.config);
  if (!is_ours(text, files.config)) return load_hugging_face(text, files.config.string(), files.weights, matrices);
  const ModelConfig config = model_config_from_json(text, files.config.string());
  const Safetensors file(files.weights);
  // what the file holds is checked before memory is taken for what config.json claims
  const ParameterTable table = parameter_table(config);
  refuse_unknown_tensors(file, table);
  for (const Parameter& p : table.all()) file.tensor(p.name, p.shape);
  Model model(config, matrices);
  for (const Parameter& p : table.all()) {
    load_parameter(model, table.find(p.name), [&](float* to) {
      read_floats(file.tensor(p.name, p.shape), {to, static_cast<std::size_t>(p.count)});
    });
  }
  return model;
}

std::shared_ptr<const Tokenizer> load_tokenizer_of(const std::filesystem::path& path) {
  demand_there(path);
  if (is_gguf(path)) return gguf_tokenizer(path);
  if (!is_llama2c(path)) return load_tokenizer(std::filesystem::is_directory(path) ? path : path.parent_path());
  const std::filesystem::path file = path.parent_path() / "tokenizer.bin";
  const MappedFile tokens(file);
  return llama2c_tokenizer(tokens.bytes(), load_config(path).vocabulary, file.string());
}

void save_model(const Model& model, const std::filesystem::path& folder) {
  make_folder(folder);
  std::vector<TensorToWrite> tensors;
  for (const Parameter& p : model.parameters().all()) {
    const std::span<const float> values(model.weights().data + p.offset, static_cast<std::size_t>(p.count));
    tensors.push_back({p.name, DType::kF32, p.shape, std::as_bytes(values)});
  }
  write_safetensors(folder / "model.safetensors", std::move(tensors), {{"format", "headlight"}});
  write_file_atomically(folder / "config.json", to_json(model.config()));
}

}  // namespace headlight
