#include "headlight/train/loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "support/expect_error.h"
#include "support/temp_folder.h"
#include "train/small.h"

namespace headlight {
namespace {

TEST(Train, LogsAtItsIntervals) {
  TempFolder folder;
  Trainer trainer(small_run(25));
  EXPECT_EQ(train(trainer, folder / "run", {.observe = observe_norm}), TrainEnd::kDone);
  const std::vector<LogEntry> log = read_log(folder / "run");
  std::set<int64_t> steps, validated, observed;
  for (const LogEntry& entry : log) {
    EXPECT_TRUE(steps.insert(entry.step).second) << "step " << entry.step << " twice";
    if (entry.validation) validated.insert(entry.step);
    if (!entry.observed.empty()) observed.insert(entry.step);
    EXPECT_EQ(entry.tokens, entry.step * 6 * 24);
    EXPECT_EQ(entry.loss.has_value(), entry.step > 0);
    EXPECT_EQ(entry.losses.size(), entry.step > 0 ? 2u : 0u);
  }
  EXPECT_EQ(steps, (std::set<int64_t>{0, 3, 6, 8, 9, 12, 15, 16, 18, 21, 24, 25}));
  EXPECT_EQ(validated, (std::set<int64_t>{0, 8, 16, 24, 25}));
  EXPECT_EQ(observed, (std::set<int64_t>{0, 6, 12, 18, 24, 25}));
  ASSERT_EQ(log.back().observed.size(), 2u);
  EXPECT_EQ(log.back().observed[0], observe_norm(trainer)[0]);
  EXPECT_TRUE(std::isnan(log.back().observed[1].second));
  EXPECT_EQ(log.back().validation->loss, trainer.evaluate().loss);
}

TEST(Train, LogsTheMeanLossSinceTheEntryBefore) {
  TempFolder folder;
  Trainer trainer(small_run(6));
  std::vector<double> losses;
  train(trainer, folder / "run", {.progress = [&](const Progress& p) { losses.push_back(p.last->loss); }});
  const std::vector<LogEntry> log = read_log(folder / "run");
  ASSERT_EQ(log.size(), 3u);
  // every step has as many targets, so that the mean over targets is the mean over steps
  EXPECT_NEAR(*log[1].loss, (losses[0] + losses[1] + losses[2]) / 3, 1e-12);
  EXPECT_NEAR(*log[2].loss, (losses[3] + losses[4] + losses[5]) / 3, 1e-12);
}

TEST(Train, ReportsProgressAfterEachStep) {
  TempFolder folder;
  Trainer trainer(small_run(7));
  int64_t expected = 0;
  int entries = 0;
  train(trainer, folder / "run", {.progress = [&](const Progress& p) {
          EXPECT_EQ(p.step, ++expected);
          EXPECT_EQ(p.steps, 7);
          EXPECT_EQ(p.last->step, p.step);
          EXPECT_GT(p.tokens_per_second, 0);
          EXPECT_EQ(p.seconds_left == 0, p.step == 7) << p.seconds_left;
          entries += p.entry != nullptr;
        }});
  EXPECT_EQ(expected, 7);
  EXPECT_EQ(entries, 3);
}

TEST(Train, MakesAFolderThatIsAModel) {
  TempFolder folder;
  Trainer trainer(small_run(5));
  train(trainer, folder / "run");
  const Model model = load_model(folder / "run");
  EXPECT_EQ(model.config(), trainer.model().config());
  for (int64_t i = 0; i < model.weights().count(); ++i) {
    ASSERT_EQ(model.weights()(i), trainer.model().weights()(i)) << "weight " << i;
  }
  EXPECT_EQ(load_tokenizer(folder / "run")->to_json(), trainer.options().data->tokenizer()->to_json());
}

TEST(Train, StopsAfterTheStepAndSaves) {
  TempFolder folder;
  std::atomic<bool> stop = false;
  Trainer trainer(small_run(20));
  const TrainHooks hooks{.progress = [&](const Progress& p) { stop = p.step == 7; }, .stop = &stop};
  EXPECT_EQ(train(trainer, folder / "run", hooks), TrainEnd::kStopped);
  EXPECT_EQ(trainer.step_number(), 7);
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "checkpoints" / "step-00000007" / "manifest.json"));
  EXPECT_NO_THROW(load_model(folder / "run"));
}

TEST(Train, IsDoneWhenAStopComesWithTheLastStep) {
  TempFolder folder;
  std::atomic<bool> stop = false;
  Trainer trainer(small_run(4));
  const TrainHooks hooks{.progress = [&](const Progress& p) { stop = p.step == 4; }, .stop = &stop};
  EXPECT_EQ(train(trainer, folder / "run", hooks), TrainEnd::kDone);
}

TEST(LogEntryJson, IsReadBackTheSame) {
  LogEntry entry{.step = 3, .tokens = 12, .seconds = 0.1};
  EXPECT_EQ(to_json_line(log_entry_from_json(to_json_line(entry), "log")), to_json_line(entry));
  entry.loss = 1.0 / 3;
  entry.losses = {{"z", 0.1}, {"a", std::nan("")}};
  entry.rate = 1e-300;
  entry.gradient_norm = INFINITY;
  entry.validation =
      Evaluation{5, 40, 2.5, 0.25, {{"z", 30, 2, 0.5, 3, 0.1}, {"a", 0, std::nan(""), std::nan(""), 0, 0}}};
  entry.observed = {{"head 1.0", 0.7}, {"head 0.0", 0.1 + 0.2}};
  const LogEntry read = log_entry_from_json(to_json_line(entry), "log");
  EXPECT_EQ(to_json_line(read), to_json_line(entry));
  EXPECT_EQ(read.observed, entry.observed);
  EXPECT_EQ(read.losses[0].first, "z");
}

TEST(ReadLog, NamesTheLineThatIsWrong) {
  TempFolder folder;
  expect_error(ErrorKind::kMissingInput, {"log.jsonl"}, [&] { read_log(folder.path()); });
  const std::string good = to_json_line({.step = 1}) + "\n";
  write_file_atomically(folder / "log.jsonl", good + good + "{\"step\": -1}\n");
  expect_error(ErrorKind::kBadData, {"log.jsonl, line 3", "step"}, [&] { read_log(folder.path()); });
  write_file_atomically(folder / "log.jsonl", good + good + "{\"step\": 4, \"tok");
  EXPECT_EQ(read_log(folder.path()).size(), 2u);
}

}  // namespace
}  // namespace headlight
