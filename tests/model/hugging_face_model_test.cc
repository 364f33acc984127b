// Folders as the Hugging Face library writes them: what is written is read back, and what has no place there is
// refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/formats/safetensors.h"
#include "headlight/model/model.h"
#include "headlight/model/run.h"
#include "headlight/tensor/half.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string model_type;
  ModelConfig config;
};

std::vector<Case> cases() {
  const ModelConfig base{
      .vocabulary = 11, .context = 8, .width = 12, .blocks = 2, .heads = 3, .feed_forward_width = 20};
  std::vector<Case> list;
  const auto add = [&](const std::string& type, auto change) {
    ModelConfig config = base;
    change(config);
    list.push_back({type, resolve(config)});
  };
  const auto llama = [](ModelConfig& c) {
    c.feed_forward = FeedForward::kSiluGated;
    c.norm = NormKind::kRmsNorm;
    c.biases = kNoBiases;
    c.key_value_heads = 1;
    c.head_width = 6;
  };
  add("llama", llama);
  add("llama", [&](ModelConfig& c) {
    llama(c);
    c.tied = true;
    c.biases = {.norms = false};
    c.rotary_scaling = {.kind = RotaryScalingKind::kLlama3, .factor = 8, .original_context = 4, .low = 1, .high = 4};
  });
  add("llama", [&](ModelConfig& c) {
    llama(c);
    c.rotary_scaling = {.kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 2, .magnitude = 1.25};
  });
  add("mistral", [&](ModelConfig& c) {
    llama(c);
    c.window = 3;
  });
  add("qwen2", [&](ModelConfig& c) {
    llama(c);
    c.biases.query_key_value = true;
    c.window = 3;
    c.windowed_blocks = {1};
  });
  add("qwen3", [&](ModelConfig& c) {
    llama(c);
    c.query_key_norm = true;
    c.rotary_scaling = {.kind = RotaryScalingKind::kLinear, .factor = 2};
  });
  add("gpt2", [](ModelConfig& c) {
    c.positions = Positions::kLearned;
    c.feed_forward = FeedForward::kGeluTanh;
    c.tied = true;
  });
  add("gpt_neox", [](ModelConfig& c) {
    c.parallel = true;
    c.rotary_width = 2;
  });
  add("gpt_neox", [](ModelConfig& c) { c.biases.query_key_value = c.biases.attention_output = false; });
  const auto bert = [](ModelConfig& c) {
    c.positions = Positions::kLearned;
    c.norm_placement = NormPlacement::kPost;
    c.causal = false;
    c.token_types = 2;
    c.embedding_norm = true;
  };
  add("bert", [&](ModelConfig& c) {
    bert(c);
    c.prediction_head = c.tied = c.biases.unembedding = true;
  });
  add("bert", [&](ModelConfig& c) {
    bert(c);
    c.unembedding = false;
  });
  const auto starcoder2 = [](ModelConfig& c) {
    c.feed_forward = FeedForward::kGeluTanh;
    c.key_value_heads = 1;
  };
  add("starcoder2", [&](ModelConfig& c) {
    starcoder2(c);
    c.tied = true;
    c.window = 3;
    c.head_width = 6;
  });
  add("starcoder2", [&](ModelConfig& c) {
    starcoder2(c);
    c.biases = {.query_key_value = false, .attention_output = false, .feed_forward = false};
    c.rotary_scaling = {.kind = RotaryScalingKind::kLinear, .factor = 2};
  });
  return list;
}

Model random_model(const ModelConfig& config) {
  Model model(config);
  RandomStream random(3, 1, 0);
  for (const Parameter& p : model.parameters().all()) {
    for (int64_t i = 0; i < p.count; ++i) model.weights().data[p.offset + i] = static_cast<float>(random.normal());
  }
  return model;
}

class HuggingFaceModel : public testing::Test {
 protected:
  fs::path folder_ = fs::path(testing::TempDir()) /
                     ("headlight_hf_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  void SetUp() override { fs::remove_all(folder_); }
  ~HuggingFaceModel() override { fs::remove_all(folder_); }

  // what load_model says after `change` to the text of config.json
  std::string refusal(const std::string& from, const std::string& to) {
    const fs::path file = folder_ / "config.json";
    const std::string text = read_file(file);
    std::string changed = text;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    std::ofstream(file) << changed;
    std::string said = "loaded";
    try {
      load_model(folder_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadData);
      said = error.what();
    }
    std::ofstream(file) << text;
    return said;
  }
};

TEST_F(HuggingFaceModel, ReadsBackEveryFamilyThatItWrites) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.model_type + ": " + summary(one.config));
    fs::remove_all(folder_);
    const Model model = random_model(one.config);
    EXPECT_EQ(save_hugging_face_model(model, folder_), one.model_type);
    EXPECT_EQ(load_config(folder_), one.config);
    const Model back = load_model(folder_);
    const auto weights = [](const Model& m) {
      return std::vector<float>(m.weights().data, m.weights().data + m.weights().count());
    };
    EXPECT_EQ(weights(back), weights(model));
  }
}

TEST_F(HuggingFaceModel, RoundsToTheTypeAskedFor) {
  const Model model = random_model(cases().front().config);
  save_hugging_face_model(model, folder_, DType::kBF16);
  const Safetensors file(folder_ / "model.safetensors");
  for (const StoredTensor& tensor : file.tensors()) EXPECT_EQ(tensor.type, "BF16");
  const Model back = load_model(folder_);
  for (const Parameter& p : model.parameters().all()) {
    for (int64_t i = 0; i < p.count; ++i) {
      ASSERT_EQ(back.weights()(p.offset + i), widen(narrow<BFloat16>(model.weights()(p.offset + i)))) << p.name;
    }
  }
}

TEST_F(HuggingFaceModel, RefusesANumberThatTheTypeCannotHold) {
  Model model = random_model(cases().front().config);
  model.weights()(0) = -7e4F;  // the largest Float16 is 65,504
  save_hugging_face_model(model, folder_, DType::kBF16);
  fs::remove_all(folder_);
  try {
    save_hugging_face_model(model, folder_, DType::kF16);
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    const std::string said = error.what();
    EXPECT_NE(said.find("model.embed_tokens.weight"), std::string::npos) << said;
    EXPECT_NE(said.find("element 0 is -70000"), std::string::npos) << said;
  }
  EXPECT_FALSE(fs::exists(folder_));
  // what is infinite already stays so
  model.weights()(0) = -HUGE_VALF;
  save_hugging_face_model(model, folder_, DType::kF16);
  EXPECT_EQ(load_model(folder_).weights()(0), -HUGE_VALF);
}

TEST_F(HuggingFaceModel, SaysWhatNoFamilyHas) {
  const Model model =
      random_model(resolve({.vocabulary = 5, .width = 8, .heads = 2, .feed_forward = FeedForward::kNone}));
  try {
    save_hugging_face_model(model, folder_);
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("gpt_neox has no feed_forward none"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(HuggingFaceModel, NamesTheKeyThatItCannotHonour) {
  save_hugging_face_model(random_model(cases().front().config), folder_);
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal("\"silu\"", "\"tanh\""), "hidden_act");
  has(refusal("\"default\"", "\"longrope\", \"factor\": 2"), "rope_type");
  has(refusal("\"hidden_size\"", "\"partial_rotary_factor\": 0.5, \"hidden_size\""), "partial_rotary_factor");
  has(refusal("\"hidden_size\"", "\"attn_logit_softcapping\": 50, \"hidden_size\""), "attn_logit_softcapping");
  has(refusal("\"llama\"", "\"mamba\""), "mamba");
  has(refusal("\"num_attention_heads\": 3", "\"num_attention_heads\": 0"), "num_attention_heads");
  has(refusal("\"num_key_value_heads\": 1", "\"num_key_value_heads\": 2"), "heads 3");
  has(refusal("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1000000000"), "num_hidden_layers");
  has(refusal("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"), "model.layers.2");
  has(refusal("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"), "model.layers.1");
  has(refusal("\"vocab_size\": 11", "\"vocab_size\": 12"), "lm_head");
  EXPECT_EQ(refusal("\"hidden_size\"", "\"attention_dropout\": 0.1, \"hidden_size\""), "loaded");
}

TEST_F(HuggingFaceModel, ReadsShardsAndRefusesPickles) {
  const Model model = random_model(cases().front().config);
  save_hugging_face_model(model, folder_);
  const fs::path whole = folder_ / "model.safetensors", shard = folder_ / "model-00001-of-00001.safetensors";
  std::string map;
  const Safetensors file(whole);
  for (const StoredTensor& tensor : file.tensors()) {
    map += (map.empty() ? "\"" : ", \"") + tensor.name + "\": \"" + shard.filename().string() + "\"";
  }
  fs::rename(whole, shard);
  std::ofstream(folder_ / "model.safetensors.index.json") << "{\"metadata\": {}, \"weight_map\": {" << map << "}}";
  EXPECT_EQ(load_model(folder_).config(), model.config());
  fs::remove(folder_ / "model.safetensors.index.json");
  std::ofstream(folder_ / "pytorch_model.bin") << "pickled";
  try {
    load_model(folder_);
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("pickle"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headlight
