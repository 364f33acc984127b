#include <gtest/gtest.h>

#include <filesystem>

#include "headlight/base/error.h"
#include "headlight/text/tasks.h"
#include "headlight/train/trainer.h"

namespace headlight {
namespace {

TEST(ReadTrainingOptions, GivesWhatTheRunWasBegunWithWhileATrainerHoldsIt) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "read_training_options";
  std::filesystem::remove_all(folder);
  TrainerOptions options;
  options.data = repeats({});
  options.model.width = 16;
  options.model.heads = 2;
  options.steps = 3;
  options.rate = 0.125;
  Trainer trainer(options);
  trainer.open(folder);
  const TrainerOptions read = read_training_options(folder);
  EXPECT_EQ(read.model, trainer.options().model);
  EXPECT_EQ(read.steps, 3);
  EXPECT_EQ(read.rate, 0.125);
  EXPECT_EQ(read.data->to_json(), options.data->to_json());
}

TEST(ReadTrainingOptions, SaysThatAFolderHoldsNoRun) {
  try {
    read_training_options(testing::TempDir());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMissingInput) << error.what();
  }
}

}  // namespace
}  // namespace headlight
