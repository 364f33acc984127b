#include "headlight/train/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/expect_error.h"
#include "support/temp_folder.h"
#include "train/run_folder.h"
#include "train/small.h"

namespace headlight {
namespace {

std::string as_written(const std::string& field) { return "--" + field; }

TEST(ResolveTrainerOptions, TakesVocabularyAndContextFromTheData) {
  const TrainerOptions options = resolve(small_run());
  EXPECT_EQ(options.model.vocabulary, 13);
  EXPECT_EQ(options.model.context, 24);
  EXPECT_EQ(options.model.head_width, 16);
}

TEST(ResolveTrainerOptions, NamesTheOptionThatDoesNotFit) {
  const auto refuse = [](auto change, std::initializer_list<std::string> words) {
    TrainerOptions options = small_run();
    change(options);
    expect_error(ErrorKind::kUsage, words, [&] { resolve(options, as_written); });
  };
  refuse([](TrainerOptions& o) { o.steps = 0; }, {"--steps", "found 0", "at least 1"});
  refuse([](TrainerOptions& o) { o.batch = 0; }, {"--batch"});
  refuse([](TrainerOptions& o) { o.microbatches = 4; }, {"--microbatches", "--batch 6"});
  refuse([](TrainerOptions& o) { o.seed = -1; }, {"--seed"});
  refuse([](TrainerOptions& o) { o.rate = -1; }, {"--rate"});
  refuse([](TrainerOptions& o) { o.rate = std::nan(""); }, {"--rate"});
  refuse([](TrainerOptions& o) { o.warmup = -1; }, {"--warmup"});
  refuse([](TrainerOptions& o) { o.beta2 = 1; }, {"--beta2", "less than 1"});
  refuse([](TrainerOptions& o) { o.clip = INFINITY; }, {"--clip"});
  refuse([](TrainerOptions& o) { o.log_interval = -1; }, {"--log_interval"});
  refuse([](TrainerOptions& o) { o.model.heads = 5; }, {"--width", "32"});
  EXPECT_THROW(resolve(TrainerOptions{}), LogicError);
}

TEST(TrainingJson, IsReadBackTheSame) {
  TempFolder folder;
  write_file_atomically(folder / "text.txt", std::string(2000, 'x'));
  for (const std::shared_ptr<const DataSource>& data :
       {small_run().data, log_lines({}), text_file({.path = folder / "text.txt", .context = 20})}) {
    TrainerOptions options = small_run();
    options.data = data;
    options.decay = 0.1 + 0.2;
    const std::string text = training_json(resolve(options));
    std::vector<std::string> messages;
    EXPECT_EQ(training_json(options_from_training_json(text, "training.json", messages)), text);
    EXPECT_TRUE(messages.empty());
  }
}

TEST(TrainingJson, SaysWhatIsWrong) {
  const nlohmann::json good = nlohmann::json::parse(training_json(resolve(small_run())));
  const auto refuse = [&](const std::string& patch, std::initializer_list<std::string> words) {
    nlohmann::json bad = good;
    bad.merge_patch(nlohmann::json::parse(patch));
    std::vector<std::string> messages;
    expect_error(ErrorKind::kBadData, words,
                 [&] { options_from_training_json(bad.dump(), "a/training.json", messages); });
  };
  refuse(R"({"format": 2})", {"a/training.json", "format", "2"});
  refuse(R"({"training": {"steps": 0}})", {"a/training.json", "steps", "0"});
  refuse(R"({"training": {"steps": 1.5}})", {"steps", "1.5"});
  refuse(R"({"training": {"beta1": null}})", {"beta1"});
  refuse(R"({"training": {"colour": 1}})", {"colour", "unknown"});
  refuse(R"({"model": {"heads": 5}})", {"a/training.json", "heads 5"});
  refuse(R"({"data": {"kind": "prose"}})", {"kind", "prose"});
}

TEST(TrainingJson, SaysWhenTheInstructionSetIsAnother) {
  nlohmann::json json = nlohmann::json::parse(training_json(resolve(small_run())));
  json["instruction_set"] = "abacus";
  std::vector<std::string> messages;
  options_from_training_json(json.dump(), "training.json", messages);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].find("abacus"), std::string::npos);
}

}  // namespace
}  // namespace headlight
