// Runs that were interrupted end like those that were not.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "headlight/base/random.h"
#include "headlight/train/loop.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"
#include "train/small.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

// Trains in `folder` until `last_step`, from the start or from where the folder's run stands.
TrainEnd train_until(const fs::path& folder, int64_t last_step, std::vector<std::string>* messages = nullptr) {
  std::atomic<bool> stop = false;
  const TrainHooks hooks{
      .progress = [&](const Progress& p) { stop = p.step >= last_step; }, .observe = observe_norm, .stop = &stop};
  Trainer trainer = fs::exists(folder / "training.json") ? Trainer::resume(folder, messages) : Trainer(small_run());
  return train(trainer, folder, hooks);
}

std::set<std::string> checkpoints_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints"))
    names.insert(entry.path().filename().string());
  return names;
}

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    train_until(whole_, small_run().steps);
    weights_ = weights_in(whole_);
    log_ = log_without_seconds(whole_);
  }

  // Finishes the run and compares it with the uninterrupted one.
  void expect_same_end(std::vector<std::string>* messages = nullptr) {
    EXPECT_EQ(train_until(part_, small_run().steps, messages), TrainEnd::kDone);
    EXPECT_TRUE(weights_in(part_) == weights_) << "weights differ from the uninterrupted run's";
    EXPECT_EQ(log_without_seconds(part_), log_);
  }

  static void damage(const fs::path& file) {
    std::string content = read_file(file);
    content[content.size() / 2] ^= 4;
    write_file_atomically(file, content);
  }

  TempFolder folder_;
  fs::path whole_ = folder_ / "whole";
  fs::path part_ = folder_ / "part";
  std::string weights_;
  std::string log_;
};

TEST_F(Resume, EndsWithTheSameBitsForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    const Threads set(threads);
    fs::remove_all(part_);
    for (const int64_t stop : {1, 7, 8, 15}) train_until(part_, stop);
    expect_same_end();
  }
}

TEST_F(Resume, GoesOnFromTheLastCheckpointAndCutsTheLog) {
  train_until(part_, 12);
  // as if killed after step 12: the checkpoint of the stop is gone, those of steps 5 and 10 stay
  fs::remove_all(part_ / "checkpoints" / "step-00000012");
  std::ofstream(part_ / "log.jsonl", std::ios::app) << "{\"step\": 13, \"tok";
  Trainer trainer = Trainer::resume(part_);
  EXPECT_EQ(trainer.step_number(), 10);
  EXPECT_EQ(read_log(part_).back().step, 9);
}

TEST_F(Resume, StartsAgainWhenThereWasNoCheckpointYet) {
  train_until(part_, 4);
  fs::remove_all(part_ / "checkpoints");
  fs::remove(part_ / "tokenizer.json");
  fs::remove(part_ / "config.json");
  expect_same_end();
  EXPECT_NO_THROW(load_tokenizer(part_));
}

TEST_F(Resume, CanBeStoppedBeforeItsFirstStep) {
  std::atomic<bool> stop = true;
  {
    Trainer trainer(small_run());
    EXPECT_EQ(train(trainer, part_, {.observe = observe_norm, .stop = &stop}), TrainEnd::kStopped);
  }
  expect_same_end();
}

TEST_F(Resume, OfAFinishedRunChangesNothing) {
  std::vector<std::string> messages;
  EXPECT_EQ(train_until(whole_, small_run().steps, &messages), TrainEnd::kDone);
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(weights_in(whole_) == weights_);
  EXPECT_EQ(log_without_seconds(whole_), log_);
}

TEST_F(Resume, KeepsTheLastTwoCheckpoints) {
  EXPECT_EQ(checkpoints_in(whole_), (std::set<std::string>{"step-00000020", "step-00000024"}));
  train_until(part_, 11);
  EXPECT_EQ(checkpoints_in(part_), (std::set<std::string>{"step-00000010", "step-00000011"}));
}

TEST_F(Resume, FallsBackWhenACheckpointIsDamaged) {
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "config.json", "manifest.json"}) {
    for (const bool cut : {false, true}) {
      SCOPED_TRACE(std::string(name) + (cut ? " cut short" : " changed"));
      fs::remove_all(part_);
      train_until(part_, 12);
      const fs::path file = part_ / "checkpoints" / "step-00000012" / name;
      cut ? fs::resize_file(file, fs::file_size(file) / 2) : damage(file);
      std::vector<std::string> messages;
      expect_same_end(&messages);
      ASSERT_EQ(messages.size(), 1u);
      EXPECT_NE(messages[0].find("step-00000012"), std::string::npos) << messages[0];
      EXPECT_NE(messages[0].find("trying the checkpoint before"), std::string::npos) << messages[0];
    }
  }
}

TEST_F(Resume, IgnoresACheckpointThatWasNotFinished) {
  train_until(part_, 12);
  fs::remove(part_ / "checkpoints" / "step-00000012" / "manifest.json");
  std::ofstream(part_ / "checkpoints" / "step-00000012" / "model.safetensors.tmp-77") << "half";
  std::vector<std::string> messages;
  {
    Trainer trainer = Trainer::resume(part_, &messages);
    EXPECT_EQ(trainer.step_number(), 10);
  }
  EXPECT_FALSE(fs::exists(part_ / "checkpoints" / "step-00000012" / "model.safetensors.tmp-77"));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].find("not finished"), std::string::npos) << messages[0];
  expect_same_end();
  EXPECT_EQ(checkpoints_in(part_), (std::set<std::string>{"step-00000020", "step-00000024"}));
}

TEST_F(Resume, RefusesWhenNoCheckpointIsWhole) {
  train_until(part_, 12);
  for (const std::string& name : checkpoints_in(part_)) damage(part_ / "checkpoints" / name / "optimizer.safetensors");
  expect_error(ErrorKind::kBadData, {"no checkpoint is whole", "optimizer.safetensors", "content hash"},
               [&] { Trainer::resume(part_); });
}

TEST_F(Resume, RefusesAFolderWithoutARun) {
  expect_error(ErrorKind::kMissingInput, {"no such folder"}, [&] { Trainer::resume(folder_ / "none"); });
  fs::create_directory(folder_ / "empty");
  expect_error(ErrorKind::kMissingInput, {"training.json"}, [&] { Trainer::resume(folder_ / "empty"); });
}

TEST_F(Resume, RefusesATextThatChanged) {
  const fs::path text = folder_ / "text.txt";
  write_file_atomically(text, std::string(1000, 'a'));
  TrainerOptions options = small_run(4);
  options.data = text_file({.path = text, .context = 24});
  {
    Trainer trainer(options);
    train(trainer, part_);
  }
  write_file_atomically(text, std::string(1001, 'a'));
  expect_error(ErrorKind::kBadData, {"text.txt", "changed"}, [&] { Trainer::resume(part_); });
}

TEST_F(Resume, LetsOneTrainerUseAFolder) {
  Trainer first = Trainer::resume(whole_);
  expect_error(ErrorKind::kRuntime, {"whole", "another trainer"}, [&] { Trainer::resume(whole_); });
  Trainer fresh(small_run());
  expect_error(ErrorKind::kRuntime, {"another trainer"}, [&] { fresh.save(whole_); });
  Trainer moved = std::move(first);
  moved = Trainer(small_run());
  EXPECT_NO_THROW(Trainer::resume(whole_));
}

TEST_F(Resume, NewRunsLeaveWhatIsThere) {
  Trainer trainer(small_run());
  expect_error(ErrorKind::kCannotCreate, {"holds a run", "--resume", "--out"}, [&] { train(trainer, whole_); });
  EXPECT_TRUE(weights_in(whole_) == weights_);
  EXPECT_EQ(trainer.step_number(), 0);
  save_model(trainer.model(), folder_ / "model");
  expect_error(ErrorKind::kCannotCreate, {"model.safetensors", "--out"}, [&] { train(trainer, folder_ / "model"); });
  EXPECT_NO_THROW(train(trainer, folder_ / "new"));
}

TEST_F(Resume, WorksWithStepsTakenByHand) {
  Trainer trainer(small_run());
  for (int i = 0; i < 9; ++i) trainer.step();
  trainer.save(part_);
  trainer.step();
  trainer.save(part_);
  trainer = Trainer(small_run());  // lets go of the folder
  trainer = Trainer::resume(part_);
  EXPECT_EQ(trainer.step_number(), 10);
  while (trainer.step()) {
  }
  trainer.save(part_);
  EXPECT_TRUE(weights_in(part_) == weights_);
}

}  // namespace
}  // namespace headlight
