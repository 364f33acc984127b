// Models of other programs that are not what they should be: each is refused with a message that names the file, the
// key or tensor, what was found and what was expected. The files are those of tests/fixtures/model/families, changed.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "headlight/base/file.h"
#include "headlight/formats/gguf.h"
#include "headlight/formats/safetensors.h"
#include "headlight/model/model.h"
#include "model/families/foreign_models.h"
#include "support/expect_error.h"
#include "support/gguf_writer.h"
#include "support/mutate.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kFamilies = HEADLIGHT_SOURCE_DIR "/tests/fixtures/model/families";

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFamilies)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

json config_of(const std::string& family) { return json::parse(read_file(kFamilies / family / "config.json")); }

void refuse_config(const json& config, std::initializer_list<std::string> words) {
  SCOPED_TRACE(config.dump());
  expect_error(ErrorKind::kBadData, words, [&] { hugging_face_config(config.dump(), "config.json"); });
}

// The family's config.json with one value changed, or added.
json changed(const std::string& family, const std::string& key, const json& value) {
  json config = config_of(family);
  config[key] = value;
  return config;
}

constexpr const char* kSizes[] = {"vocab_size",          "hidden_size", "num_hidden_layers", "num_attention_heads",
                                  "num_key_value_heads", "head_dim",    "intermediate_size", "max_position_embeddings",
                                  "type_vocab_size",     "n_embd",      "n_layer",           "n_head",
                                  "n_positions",         "n_inner"};

TEST(BadConfig, SizesThatAreNoneAreNamed) {
  const json wrong[] = {
      0, -1, 1.5, "4", true, json::array({4}), 1e30, uint64_t{1} << 63, ~uint64_t{0}, int64_t{1} << 40};
  for (const std::string& family : family_names()) {
    const json config = config_of(family);
    for (const char* key : kSizes) {
      if (!config.contains(key) || config[key].is_null()) continue;
      for (const json& value : wrong) refuse_config(changed(family, key, value), {"config.json", key, "expected"});
    }
  }
}

TEST(BadConfig, MissingSizesAreNamed) {
  const std::map<std::string, std::vector<std::string>> needed = {
      {"gpt2", {"n_embd", "n_layer", "n_head", "vocab_size"}},
      {"gpt_neox", {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}},
      {"llama", {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}},
      {"starcoder2", {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}},
      {"bert", {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}}};
  for (const auto& [family, keys] : needed) {
    for (const std::string& key : keys) {
      json config = config_of(family);
      config.erase(key);
      refuse_config(config, {"config.json", key, "missing"});
    }
  }
}

TEST(BadConfig, SizesThatDoNotFitOneAnotherAreRefused) {
  refuse_config(changed("gpt2", "n_head", 5), {"config.json", "24", "5"});
  refuse_config(changed("gpt_neox", "num_attention_heads", 5), {"config.json", "32", "5"});
  refuse_config(changed("bert", "num_attention_heads", 5), {"config.json", "24", "5"});
  refuse_config(changed("llama", "num_key_value_heads", 3), {"config.json", "4", "3"});
  refuse_config(changed("llama", "head_dim", 11), {"config.json", "11"});
  for (const char* family : {"llama", "gpt_neox", "bert", "qwen3", "qwen2_window"}) {
    refuse_config(changed(family, "num_hidden_layers", 1'000'000'000), {"num_hidden_layers", "1000000000", "10000"});
  }
  refuse_config(changed("gpt2", "n_layer", 1'000'000'000), {"n_layer", "1000000000", "10000"});
}

TEST(BadConfig, WhatChangesTheMathematicsIsRefusedByName) {
  const std::map<std::string, std::vector<std::pair<std::string, json>>> unknown = {
      {"gpt2",
       {{"scale_attn_weights", false},
        {"scale_attn_by_inverse_layer_idx", true},
        {"add_cross_attention", true},
        {"activation_function", "tanh"},
        {"activation_function", 1},
        {"layer_norm_epsilon", -1}}},
      {"gpt_neox", {{"hidden_act", "silu"}, {"rotary_pct", 2.0}, {"use_parallel_residual", 1}}},
      {"llama",
       {{"hidden_act", "gelu"},
        {"attention_multiplier", 0.1},
        {"logits_scaling", 8.0},
        {"rms_norm_eps", "small"},
        {"rope_parameters", {{"rope_type", "dynamic"}, {"rope_theta", 1e4}, {"factor", 2.0}}},
        {"rope_parameters", {{"rope_type", "longrope"}, {"rope_theta", 1e4}, {"factor", 2.0}}},
        {"rope_parameters", {{"rope_type", "linear"}, {"rope_theta", 1e4}}},
        {"rope_parameters", {{"rope_type", "linear"}, {"rope_theta", 0}, {"factor", 2.0}}},
        {"rope_parameters", 3}}},
      {"mistral", {{"sliding_window", -4}, {"sliding_window", "long"}}},
      {"qwen2_window", {{"use_sliding_window", "yes"}, {"max_window_layers", -1}}},
      {"qwen3_window",
       {{"layer_types", {"sliding_attention"}},
        {"layer_types", {"sliding_attention", "linear_attention"}},
        {"layer_types", "full_attention"}}},
      {"starcoder2",
       {{"sliding_window", 0}, {"layer_types", {"full_attention", "full_attention"}}, {"use_bias", "no"}}},
      {"bert", {{"is_decoder", true}, {"position_embedding_type", "relative_key"}, {"hidden_act", "mish"}}},
  };
  for (const auto& [family, changes] : unknown) {
    for (const auto& [key, value] : changes) refuse_config(changed(family, key, value), {"config.json", key});
  }
  for (const std::string& family : family_names()) {
    for (const char* key :
         {"attn_logit_softcapping", "final_logit_softcapping", "num_experts", "quantization_config"}) {
      refuse_config(changed(family, key, 30), {"config.json", key});
    }
  }
}

TEST(BadConfig, ModelsThatAreNotReadAreNamed) {
  refuse_config(changed("llama", "model_type", "mamba"), {"config.json", "model_type", "mamba", "llama"});
  refuse_config(changed("llama", "model_type", 3), {"config.json", "model_type"});
}

TEST(BadConfig, BearsAnyMutation) {
  int refused = 0;
  for (const std::string& family : family_names()) {
    const std::string text = config_of(family).dump();
    expect_every_cut_refused(text, [](auto bytes) {
      hugging_face_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "config.json");
    });
    const Mutations mutations{.seed = 31, .bytes = "0123456789[]{}\",:-.e\\", .trials = 1000};
    refused += expect_mutations_borne(text, mutations, [](auto bytes) {
      hugging_face_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "config.json");
    });
  }
  EXPECT_GT(refused, 5000);
}

// A copy of a family's folder.
class BadFolder : public testing::Test {
 protected:
  fs::path copy_of(const std::string& family) {
    const fs::path to = folder_ / (family + std::to_string(copies_++));
    fs::copy(kFamilies / family, to);
    fs::remove(to / "expected.safetensors");
    return to;
  }

  // The folder with one of its tensors changed; an empty name takes it out.
  fs::path with_tensor(const std::string& family, const std::string& name, const TensorToWrite& now) {
    const fs::path to = copy_of(family);
    const Safetensors file(kFamilies / family / "model.safetensors");
    std::vector<TensorToWrite> tensors;
    for (const StoredTensor& tensor : file.tensors()) {
      if (tensor.name != name) tensors.push_back({tensor.name, *tensor.dtype, tensor.shape, tensor.bytes});
    }
    if (!now.name.empty()) tensors.push_back(now);
    write_safetensors(to / "model.safetensors", tensors);
    return to;
  }

  void refuse(const fs::path& path, std::initializer_list<std::string> words, ErrorKind kind = ErrorKind::kBadData) {
    expect_error(kind, words, [&] { load_model(path); });
  }

  TempFolder folder_;
  int copies_ = 0;
};

TEST_F(BadFolder, TensorsThatAreNotThoseOfTheConfigurationAreNamed) {
  const std::string norm = "model.norm.weight", other = "model.layers.0.self_attn.sinks";
  const std::vector<float> numbers(36, 1.0F);
  const std::vector<int32_t> wholes(36, 1);
  const auto floats = std::as_bytes(std::span(numbers));
  refuse(with_tensor("smollm", norm, {}), {"model.safetensors", norm, "missing"});
  refuse(with_tensor("smollm", norm, {norm, DType::kF32, {6, 6}, floats}), {norm, "(6, 6)", "(36)"});
  refuse(with_tensor("smollm", norm, {norm, DType::kI32, {36}, std::as_bytes(std::span(wholes))}), {norm, "I32"});
  refuse(with_tensor("smollm", norm, {norm, DType::kF32, {35}, floats.first(140)}), {norm, "(35)", "(36)"});
  refuse(with_tensor("smollm", "", {other, DType::kF32, {36}, floats}), {"model.safetensors", other});
}

TEST_F(BadFolder, TakesNoMemoryForLayersThatTheFileLacks) {
  const fs::path folder = copy_of("llama");
  std::ofstream(folder / "config.json") << changed("llama", "num_hidden_layers", 9999).dump();
  refuse(folder, {"model.safetensors", "layers.", "is missing"});
  std::ofstream(folder / "config.json") << changed("llama", "vocab_size", 1 << 24).dump();
  refuse(folder, {"model.safetensors", "(47, 28)", "(16777216, 28)"});
}

TEST_F(BadFolder, ShardsThatAreOutsideMissingOrIncompleteAreNamed) {
  const std::string index_name = "model.safetensors.index.json";
  const auto with_place = [&](const std::string& place) {
    const fs::path folder = copy_of("gpt2_bare");
    json index = json::parse(read_file(folder / index_name));
    index["weight_map"]["ln_f.weight"] = place;
    std::ofstream(folder / index_name) << index.dump();
    return folder;
  };
  refuse(with_place("../other.safetensors"), {index_name, "ln_f.weight", "outside"});
  refuse(with_place("/etc/passwd"), {index_name, "ln_f.weight", "outside"});
  refuse(with_place("absent.safetensors"), {index_name, "absent.safetensors"});
  refuse(with_place("model-00001-of-00004.safetensors"), {index_name, "model-00001-of-00004.safetensors"});

  const fs::path twice = copy_of("gpt2_bare");
  std::string text = read_file(twice / index_name);
  text.replace(text.find("\"ln_f.weight\""), 13, "\"ln_f.bias\" ");
  std::ofstream(twice / index_name) << text;
  refuse(twice, {index_name, "ln_f.bias", "twice"});

  const fs::path lacking = copy_of("gpt2_bare");
  fs::remove(lacking / "model-00003-of-00004.safetensors");
  refuse(lacking, {index_name, "model-00003-of-00004.safetensors"});

  const fs::path cut = copy_of("gpt2_bare");
  fs::resize_file(cut / "model-00003-of-00004.safetensors", 500);
  refuse(cut, {"model-00003-of-00004.safetensors"});
}

TEST_F(BadFolder, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  for (const char* name : {"config.json", "model.safetensors"}) {
    const fs::path pipe = copy_of("smollm"), directory = copy_of("smollm"), device = copy_of("smollm");
    for (const fs::path& folder : {pipe, directory, device}) fs::remove(folder / name);
    ASSERT_EQ(::mkfifo((pipe / name).c_str(), 0600), 0);
    fs::create_directory(directory / name);
    fs::create_symlink("/dev/zero", device / name);
    refuse(pipe, {name, "pipe"});
    refuse(directory, {name, "folder"});
    refuse(device, {name, "device"});
    std::ofstream(directory / "empty").close();
    fs::remove(pipe / name);
    std::ofstream(pipe / name).close();
    refuse(pipe, {name, std::string(name) == "config.json" ? "byte 0" : "0 bytes"});
    fs::remove(pipe / name);
    refuse(pipe, {name}, ErrorKind::kMissingInput);
  }
}

TEST_F(BadFolder, APickleIsRefusedWithAdvice) {
  const fs::path folder = copy_of("smollm");
  fs::remove(folder / "model.safetensors");
  std::ofstream(folder / "pytorch_model.bin", std::ios::binary) << std::string("PK\3\4\0\0\x08\x08\0\0\0\0", 12);
  refuse(folder, {"pytorch_model.bin", "pickle", "safetensors"});
  refuse(folder / "pytorch_model.bin", {"pytorch_model.bin", "pickle", "safetensors"});
  fs::rename(folder / "pytorch_model.bin", folder / "model.safetensors");
  refuse(folder, {"model.safetensors", "pickle", "safetensors"});
}

// A GGUF file with one of its values changed, or taken out when `value` is empty.
std::string with_value(const Gguf& file, const std::string& key, const std::string& value) {
  std::vector<std::string> values, records;
  for (const GgufValue& old : file.values()) {
    if (old.key == key) continue;
    const std::string bytes(reinterpret_cast<const char*>(old.bytes.data()), old.bytes.size());
    const auto type = static_cast<uint32_t>(old.type);
    values.push_back(old.is_array ? gguf_array(old.key, type, old.count, bytes) : gguf_value(old.key, type, bytes));
  }
  if (!value.empty()) values.push_back(value);
  std::string data;
  for (const GgufTensor& tensor : file.tensors()) {
    records.push_back(
        gguf_tensor(tensor.name, {tensor.shape.rbegin(), tensor.shape.rend()}, tensor.type_id, data.size()));
    data.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    data.resize((data.size() + 31) / 32 * 32, '\0');
  }
  return gguf_file(values, records, data);
}

class BadGguf : public BadFolder {
 protected:
  void refuse_value(const std::string& family, const std::string& key, const std::string& value,
                    std::initializer_list<std::string> words) {
    SCOPED_TRACE(family + ", " + key);
    const Gguf file(kFamilies / family / "model.gguf");
    const fs::path path = folder_ / "m.gguf";
    std::ofstream(path, std::ios::binary) << with_value(file, key, value);
    refuse(path, words);
  }
};

const std::pair<const char*, const char*> kGgufFamilies[] = {
    {"llama", "llama"}, {"qwen2", "qwen2"}, {"qwen3", "qwen3"}, {"gpt2", "gpt2"}, {"gpt_neox", "gptneox"}};
constexpr uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kText = 8, kU64 = 10;

TEST_F(BadGguf, SizesThatAreNoneAreNamed) {
  for (const auto& [family, architecture] : kGgufFamilies) {
    for (const char* name :
         {"context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count"}) {
      const std::string key = std::string(architecture) + "." + name;
      refuse_value(family, key, "", {"m.gguf", key, "missing"});
      refuse_value(family, key, gguf_value(key, kU32, raw(uint32_t{0})), {"m.gguf", key, "found 0"});
      refuse_value(family, key, gguf_value(key, kI32, raw(int32_t{-1})), {"m.gguf", key, "found -1"});
      refuse_value(family, key, gguf_value(key, kF32, raw(4.0F)), {"m.gguf", key, "found f32"});
      refuse_value(family, key, gguf_value(key, kText, gguf_text("4")), {"m.gguf", key, "found string"});
      refuse_value(family, key, gguf_value(key, kU64, raw(uint64_t{1} << 63)), {"m.gguf", key, "9223372036854775808"});
      refuse_value(family, key, gguf_array(key, kU32, 1, raw(uint32_t{4})), {"m.gguf", key, "array"});
    }
  }
}

TEST_F(BadGguf, SizesThatDoNotFitOneAnotherOrTheTensorsAreRefused) {
  const auto u32 = [](const std::string& key, uint32_t value) { return gguf_value(key, kU32, raw(value)); };
  for (const auto& [family, architecture] : kGgufFamilies) {
    const std::string prefix = std::string(architecture) + ".";
    refuse_value(family, prefix + "block_count", u32(prefix + "block_count", 1'000'000'000), {"m.gguf", "1000000000"});
    refuse_value(family, prefix + "attention.head_count", u32(prefix + "attention.head_count", 5), {"m.gguf"});
    refuse_value(family, prefix + "embedding_length", u32(prefix + "embedding_length", 20), {"m.gguf"});
  }
  refuse_value("qwen3", "qwen3.block_count", u32("qwen3.block_count", 9999), {"m.gguf", "blk.", "is missing"});
  refuse_value("llama", "llama.attention.head_count_kv", u32("llama.attention.head_count_kv", 3), {"m.gguf", "4", "3"});
  refuse_value("gpt2", "general.architecture", gguf_value("general.architecture", kText, gguf_text("mamba")),
               {"m.gguf", "general.architecture", "mamba"});
}

}  // namespace
}  // namespace headlight
