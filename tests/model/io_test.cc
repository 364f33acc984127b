#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "headlight/base/file.h"
#include "headlight/model/model.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

class ModelFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "headlight-model-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  ErrorKind kind_of_loading(const fs::path& path) {
    try {
      load_model(path);
    } catch (const Error& error) {
      message = error.what();
      return error.kind();
    }
    ADD_FAILURE() << "expected an error";
    return ErrorKind::kRuntime;
  }

  fs::path folder;
  std::string message;
};

TEST_F(ModelFiles, RoundTripEveryArrangementExactly) {
  for (const Arrangement& arrangement : all_arrangements()) {
    Model model(arrangement.config);
    initialise(model, 9);
    save_model(model, folder / arrangement.name);
    for (const fs::path& path : {folder / arrangement.name, folder / arrangement.name / "model.safetensors"}) {
      const Model loaded = load_model(path);
      EXPECT_EQ(loaded.config(), model.config());
      for (int64_t i = 0; i < model.weights().count(); ++i) ASSERT_EQ(loaded.weights()(i), model.weights()(i));
    }
  }
}

TEST_F(ModelFiles, RefuseAFileCutShortAtAnyByte) {
  Model model(ModelConfig{.vocabulary = 3, .context = 4, .width = 4, .blocks = 1, .heads = 2});
  save_model(model, folder);
  const std::string whole = read_file(folder / "model.safetensors");
  for (std::size_t length = 0; length < whole.size(); length += 1 + length / 16) {
    std::ofstream(folder / "model.safetensors", std::ios::binary) << whole.substr(0, length);
    EXPECT_EQ(kind_of_loading(folder), ErrorKind::kBadData) << length << " bytes";
  }
}

TEST_F(ModelFiles, SayWhatIsMissingOrOfTheWrongShape) {
  EXPECT_EQ(kind_of_loading(folder / "nothing"), ErrorKind::kMissingInput);
  EXPECT_EQ(kind_of_loading(folder), ErrorKind::kMissingInput);
  Model model(ModelConfig{.vocabulary = 3, .context = 4, .width = 4, .blocks = 1, .heads = 2});
  save_model(model, folder);
  std::string config = read_file(folder / "config.json");
  config.replace(config.find("\"vocabulary\": 3"), 15, "\"vocabulary\": 5");
  std::ofstream(folder / "config.json") << config;
  EXPECT_EQ(kind_of_loading(folder), ErrorKind::kBadData);
  EXPECT_NE(message.find("embed.W_E"), std::string::npos) << message;
}

TEST_F(ModelFiles, TakeNoMemoryForWhatTheConfigurationClaims) {
  Model model(ModelConfig{.vocabulary = 3, .context = 4, .width = 4, .blocks = 1, .heads = 2});
  save_model(model, folder);
  std::string config = read_file(folder / "config.json");
  config.replace(config.find("\"blocks\": 1"), 11, "\"blocks\": 9999");
  std::ofstream(folder / "config.json") << config;
  EXPECT_EQ(kind_of_loading(folder), ErrorKind::kBadData);
}

TEST_F(ModelFiles, AreNotAFolderOfAnotherKind) {
  std::ofstream(folder / "notes.txt") << "hello";
  EXPECT_EQ(kind_of_loading(folder / "notes.txt"), ErrorKind::kBadData);
}

}  // namespace
}  // namespace headlight
