// Trainers in processes of their own: killed at random moments, on a full disk, with their allocations counted.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "headlight/base/random.h"
#include "support/temp_folder.h"
#include "train/small.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class Child {
 public:
  Child(std::vector<std::string> words, const fs::path& output) : begin_(Clock::now()) {
    words.insert(words.begin(), HEADLIGHT_TRAIN_CHILD);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    // only what a fork of a program with threads may do
    const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(fd, STDOUT_FILENO);
    ::execv(pointers[0], pointers.data());
    ::_exit(126);
  }
  ~Child() {
    if (pid_ > 0) kill_after(std::chrono::seconds(0));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The exit code, or -1 when it was killed.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  int kill_after(std::chrono::duration<double> time) {
    std::this_thread::sleep_until(begin_ + std::chrono::duration_cast<Clock::duration>(time));
    ::kill(pid_, SIGKILL);
    return wait();
  }

  std::chrono::duration<double> age() const { return Clock::now() - begin_; }

 private:
  Clock::time_point begin_;
  pid_t pid_ = -1;
};

TEST(KilledTraining, EndsWithTheSameBytesAfterTwentyKills) {
  TempFolder folder;
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomStream random(seed, 0, 0);
  std::string expected_weights, expected_log;
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    const auto start = [&](const fs::path& run) {
      return std::make_unique<Child>(std::vector<std::string>{"train", run.string(), std::to_string(threads)},
                                     folder / "output");
    };
    const fs::path whole = folder / ("whole-" + std::to_string(threads));
    const std::unique_ptr<Child> child = start(whole);
    ASSERT_EQ(child->wait(), 0);
    const double seconds = child->age().count();
    if (threads == 1) {
      expected_weights = weights_in(whole);
      expected_log = log_without_seconds(whole);
    }
    EXPECT_TRUE(weights_in(whole) == expected_weights) << "weights differ from those of one thread";

    int kills = 0;
    for (int run = 0; kills < 20; ++run) {
      const fs::path part = folder / ("part-" + std::to_string(threads) + "-" + std::to_string(run));
      // some kills early in the life of a process, some late, and the last one lets it end
      while (kills < 20 && start(part)->kill_after(std::chrono::duration<double>(seconds * random.uniform())) != 0) {
        ++kills;
      }
      ASSERT_EQ(start(part)->wait(), 0) << "after " << kills << " kills";
      EXPECT_TRUE(weights_in(part) == expected_weights) << "weights differ after " << kills << " kills";
      EXPECT_EQ(log_without_seconds(part), expected_log) << "after " << kills << " kills";
    }
  }
}

TEST(TrainingSteps, TakeNoMemoryAfterTheFirst) {
  TempFolder folder;
  Child child({"allocations"}, folder / "output");
  ASSERT_EQ(child.wait(), 0);
  EXPECT_EQ(read_file(folder / "output"), "0 allocations\n");
}

TEST(FullDisk, KeepsTheLastCheckpointAndNamesTheBytesNeeded) {
  TempFolder folder;
  fs::create_directory(folder / "disk");
  Child child({"full-disk", (folder / "disk").string()}, folder / "output");
  const int code = child.wait();
  if (code == 77) GTEST_SKIP() << "this system does not let a test mount a small disk";
  ASSERT_EQ(code, 0);
  const std::string output = read_file(folder / "output");
  const auto says = [&](const std::string& words) { return output.find(words) != std::string::npos; };
  EXPECT_TRUE(says("kind " + std::to_string(static_cast<int>(ErrorKind::kCannotWrite)))) << output;
  EXPECT_TRUE(says("checkpoint of step 9 needs ")) << output;
  EXPECT_TRUE(says("are free")) << output;
  EXPECT_TRUE(says("resumed at step 6")) << output;
  EXPECT_TRUE(says("model of")) << output;
}

}  // namespace
}  // namespace headlight
