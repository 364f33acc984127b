// GGUF's llama files as models and tokenizers.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "headlight/base/error.h"
#include "headlight/model/model.h"
#include "support/gguf_writer.h"

namespace headlight {
namespace {

constexpr uint32_t kU32 = 4, kF32 = 6, kText = 8;

ModelConfig small_config(bool tied) {
  ModelConfig config;
  config.vocabulary = 6;
  config.context = 16;
  config.width = 8;
  config.blocks = 2;
  config.heads = 2;
  config.key_value_heads = 1;
  config.feed_forward = FeedForward::kSiluGated;
  config.feed_forward_width = 12;
  config.norm = NormKind::kRmsNorm;
  config.norm_epsilon = 0.0625;
  config.rotary_base = 5000;
  config.tied = tied;
  config.biases = kNoBiases;
  return resolve(config);
}

// What a file is made of, to be changed before it is written.
struct Parts {
  std::vector<std::string> values;
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> numbers;
  };
  std::vector<Tensor> tensors;

  void write(const std::filesystem::path& path) const {
    std::vector<std::string> records;
    std::string data;
    for (const Tensor& tensor : tensors) {
      const std::vector<uint64_t> sizes(tensor.shape.rbegin(), tensor.shape.rend());
      records.push_back(gguf_tensor(tensor.name, sizes, 0, data.size()));
      for (const float x : tensor.numbers) data += raw(x);
      data.resize((data.size() + 31) / 32 * 32, '\0');
    }
    const std::string bytes = gguf_file(values, records, data);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
};

// `turned`: within each four outputs, a head's, pairs (0, 2) and (1, 3) lie side by side
void add_matrix(Parts& parts, const Model& model, const std::string& parameter, const std::string& tensor,
                bool turned = false) {
  const View<const float, 2> w = model.matrix(parameter);
  Parts::Tensor out{tensor, {w.size(1), w.size(0)}, {}};
  const int64_t places[] = {0, 2, 1, 3};
  for (int64_t c = 0; c < w.size(1); ++c) {
    const int64_t from = turned ? c / 4 * 4 + places[c % 4] : c;
    for (int64_t r = 0; r < w.size(0); ++r) out.numbers.push_back(w(r, from));
  }
  parts.tensors.push_back(out);
}

void add_rows(Parts& parts, const Model& model, const std::string& parameter, const std::string& tensor) {
  const Parameter& p = model.parameters()[model.parameters().find(parameter)];
  const float* data = model.weights().data + p.offset;
  parts.tensors.push_back({tensor, p.shape, {data, data + p.count}});
}

Parts parts_of(const Model& model) {
  const ModelConfig& c = model.config();
  Parts parts;
  const auto number = [&](const std::string& key, int64_t value) {
    parts.values.push_back(gguf_value("llama." + key, kU32, raw(static_cast<uint32_t>(value))));
  };
  parts.values.push_back(gguf_value("general.architecture", kText, gguf_text("llama")));
  number("context_length", c.context);
  number("embedding_length", c.width);
  number("block_count", c.blocks);
  number("attention.head_count", c.heads);
  number("attention.head_count_kv", c.key_value_heads);
  number("feed_forward_length", c.feed_forward_width);
  number("rope.dimension_count", c.rotary_width);
  parts.values.push_back(gguf_value("llama.rope.freq_base", kF32, raw(static_cast<float>(c.rotary_base))));
  parts.values.push_back(
      gguf_value("llama.attention.layer_norm_rms_epsilon", kF32, raw(static_cast<float>(c.norm_epsilon))));
  add_rows(parts, model, "embed.W_E", "token_embd.weight");
  add_rows(parts, model, "ln_final.w", "output_norm.weight");
  if (!c.tied) add_matrix(parts, model, "unembed.W_U", "output.weight");
  for (int64_t block = 0; block < c.blocks; ++block) {
    const std::string from = "blocks." + std::to_string(block) + ".", to = "blk." + std::to_string(block) + ".";
    add_rows(parts, model, from + "ln1.w", to + "attn_norm.weight");
    add_rows(parts, model, from + "ln2.w", to + "ffn_norm.weight");
    const std::pair<const char*, const char*> maps[] = {
        {"attn.W_Q", "attn_q"},     {"attn.W_K", "attn_k"}, {"attn.W_V", "attn_v"},   {"attn.W_O", "attn_output"},
        {"mlp.W_gate", "ffn_gate"}, {"mlp.W_in", "ffn_up"}, {"mlp.W_out", "ffn_down"}};
    for (const auto& [parameter, tensor] : maps) {
      const bool turned = std::string(tensor) == "attn_q" || std::string(tensor) == "attn_k";
      add_matrix(parts, model, from + parameter, to + tensor + ".weight", turned);
    }
  }
  return parts;
}

class GgufModel : public testing::Test {
 protected:
  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      ("headlight_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".gguf");
  ~GgufModel() override { std::filesystem::remove(path_); }

  static Model random_model(bool tied) {
    Model model(small_config(tied));
    initialise(model, 5);
    return model;
  }

  // what the reader says to the parts of a right file once changed
  std::string refusal(const std::function<void(Parts&)>& change) {
    Parts parts = parts_of(random_model(true));
    change(parts);
    parts.write(path_);
    try {
      load_model(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadData);
      return error.what();
    }
    return "loaded";
  }
};

TEST_F(GgufModel, HasTheConfigurationAndWeightsOfTheFile) {
  for (const bool tied : {true, false}) {
    const Model expected = random_model(tied);
    parts_of(expected).write(path_);
    EXPECT_EQ(load_config(path_), expected.config());
    const Model model = load_model(path_);
    EXPECT_EQ(model.config(), expected.config());
    EXPECT_TRUE(
        std::equal(model.weights().data, model.weights().data + model.weights().count(), expected.weights().data));
  }
}

TEST_F(GgufModel, RefusesWhatItDoesNotUnderstandByName) {
  ASSERT_EQ(refusal([](Parts&) {}), "loaded");
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal([](Parts& p) { p.values[0] = gguf_value("general.architecture", kText, gguf_text("mamba")); }), "mamba");
  has(refusal([](Parts& p) { p.values.push_back(gguf_value("llama.expert_count", kU32, raw(uint32_t{8}))); }),
      "llama.expert_count");
  has(refusal(
          [](Parts& p) { p.values.push_back(gguf_value("llama.rope.scaling.type", kText, gguf_text("longrope"))); }),
      "longrope");
  has(refusal([](Parts& p) { p.values.erase(p.values.begin() + 2); }), "llama.embedding_length");
  has(refusal([](Parts& p) { p.tensors.erase(p.tensors.begin()); }), "token_embd.weight");
  has(refusal([](Parts& p) { p.tensors.pop_back(); }), "ffn_down");
  has(refusal([](Parts& p) { p.tensors[1].shape = {4}, p.tensors[1].numbers.resize(4); }), "output_norm.weight");
  has(refusal([](Parts& p) { p.tensors.push_back({"rope_freqs.weight", {3}, {1, 1, 1}}); }), "rotary_scaling.divisors");
  has(refusal([](Parts& p) { p.tensors.push_back({"blk.0.attn_sinks.weight", {2}, {1, 1}}); }), "attn_sinks");
}

TEST_F(GgufModel, CarriesItsTokenizer) {
  Parts parts = parts_of(random_model(true));
  const auto texts = [](const std::vector<std::string>& list) {
    std::string bytes;
    for (const std::string& text : list) bytes += gguf_text(text);
    return bytes;
  };
  const std::vector<std::string> tokens{"a", "b", "c", "ab", "abc", "<end>"};
  parts.values.push_back(gguf_value("tokenizer.ggml.model", kText, gguf_text("gpt2")));
  parts.values.push_back(gguf_value("tokenizer.ggml.pre", kText, gguf_text("gpt-2")));
  parts.values.push_back(gguf_array("tokenizer.ggml.tokens", kText, tokens.size(), texts(tokens)));
  parts.values.push_back(gguf_array("tokenizer.ggml.merges", kText, 2, texts({"a b", "ab c"})));
  std::string types;
  for (const int32_t type : {1, 1, 1, 1, 1, 3}) types += raw(type);
  parts.values.push_back(gguf_array("tokenizer.ggml.token_type", 5, 6, types));
  parts.values.push_back(gguf_value("tokenizer.ggml.eos_token_id", kU32, raw(uint32_t{5})));
  parts.write(path_);
  const auto tokenizer = load_tokenizer_of(path_);
  EXPECT_EQ(tokenizer->encode("abcab"), (std::vector<int32_t>{4, 3}));
  EXPECT_EQ(tokenizer->special_ids().end, 5);
}

}  // namespace
}  // namespace headlight
