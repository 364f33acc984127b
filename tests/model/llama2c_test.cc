// Llama2.c's files as models. tests/fixtures/tinystories_260k is a trained model of 260,000 parameters with its
// licence.

#include "headlight/formats/llama2c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/model/model.h"

namespace headlight {
namespace {

const std::string kCheckpoint = HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/checkpoint_v1.bin";

TEST(LoadLlama2c, TakesTheConfigurationFromTheSizes) {
  const ModelConfig config = load_config(kCheckpoint);
  EXPECT_EQ(config, load_model(kCheckpoint).config());
  EXPECT_EQ(config.blocks, 5);
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.key_value_heads, 4);
  EXPECT_EQ(config.width, 64);
  EXPECT_EQ(config.feed_forward_width, 172);
  EXPECT_EQ(config.vocabulary, 512);
  EXPECT_EQ(config.context, 512);
  EXPECT_TRUE(config.tied);
  EXPECT_EQ(config.rotary_pairs, RotaryPairs::kHalves);
}

TEST(LoadLlama2c, TurnsLinearMapsAndTakesEachBlocksPart) {
  const MappedFile file(kCheckpoint);
  const Llama2cContent content = parse_llama2c(file.bytes(), kCheckpoint);
  const Model model = load_model(kCheckpoint);
  const auto at = [&](const std::string& name, int64_t index) {
    float x = 0;
    std::memcpy(&x, content.tensor(name).bytes.data() + index * 4, sizeof(x));
    return x;
  };
  // (L, out, in) there, (in, out) here; of a key's 8 coordinates the pairs (2c, 2c + 1) are (c, c + 4) here
  const int64_t there[] = {0, 2, 4, 6, 1, 3, 5, 7};
  const View<const float, 2> w_k = model.matrix("blocks.3.attn.W_K"), w_out = model.matrix("blocks.4.mlp.W_out");
  const View<const float, 1> norm = model.vector("blocks.2.ln2.w");
  for (int64_t in = 0; in < 64; ++in) {
    for (int64_t out = 0; out < 32; ++out) {
      ASSERT_EQ(w_k(in, out), at("wk", (3 * 32 + out / 8 * 8 + there[out % 8]) * 64 + in));
    }
    ASSERT_EQ(norm(in), at("ffn_norm", 2 * 64 + in));
  }
  for (int64_t in = 0; in < 172; ++in) {
    for (int64_t out = 0; out < 64; ++out) ASSERT_EQ(w_out(in, out), at("w2", (4 * 64 + out) * 172 + in));
  }
}

// Version 0 of the same model: another header, another order, tables of cosines and sines, perhaps a classifier.
std::vector<std::byte> as_version_0(const Llama2cContent& content, bool shared) {
  std::vector<std::byte> bytes;
  const Llama2cSizes& s = content.sizes;
  for (const int64_t size :
       {s.width, s.hidden, s.blocks, s.heads, s.key_value_heads, shared ? s.vocabulary : -s.vocabulary, s.context}) {
    const auto number = static_cast<int32_t>(size);
    const auto* begin = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), begin, begin + sizeof(number));
  }
  for (const char* name :
       {"tok_embeddings", "attention_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3", "norm"}) {
    const StoredTensor& tensor = content.tensor(name);
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  bytes.resize(bytes.size() + static_cast<std::size_t>(s.context * s.width / s.heads) * sizeof(float));
  if (!shared) {
    const StoredTensor& tensor = content.tensor("tok_embeddings");
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return bytes;
}

TEST(LoadLlama2c, ReadsTheSameModelFromVersion0) {
  const MappedFile file(kCheckpoint);
  const Llama2cContent content = parse_llama2c(file.bytes(), kCheckpoint);
  const Model expected = load_model(kCheckpoint);
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "headlight_llama2c_v0.bin";
  for (const bool shared : {true, false}) {
    const std::vector<std::byte> bytes = as_version_0(content, shared);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const Model model = load_model(path);
    EXPECT_EQ(model.config().tied, shared);
    for (const Parameter& p : expected.parameters().all()) {
      const Parameter& own = model.parameters()[model.parameters().find(p.name)];
      EXPECT_EQ(std::memcmp(model.weights().data + own.offset, expected.weights().data + p.offset,
                            static_cast<std::size_t>(p.count) * sizeof(float)),
                0)
          << p.name;
    }
    const View<const float, 2> a = model.unembedding(), b = expected.unembedding();
    for (int64_t c = 0; c < a.size(0); ++c) {
      for (int64_t v = 0; v < a.size(1); ++v) ASSERT_EQ(a(c, v), b(c, v));
    }
  }
  std::filesystem::remove(path);
}

TEST(LoadModel, RefusesWhatIsNoModel) {
  const auto kind_of = [](const std::filesystem::path& path) {
    try {
      load_model(path);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      return error.kind();
    }
    return ErrorKind::kRuntime;
  };
  EXPECT_EQ(kind_of("absent.bin"), ErrorKind::kMissingInput);
  EXPECT_EQ(kind_of(HEADLIGHT_SOURCE_DIR "/README.md"), ErrorKind::kBadData);
  EXPECT_EQ(kind_of(HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/tokenizer.bin"), ErrorKind::kBadData);
}

}  // namespace
}  // namespace headlight
