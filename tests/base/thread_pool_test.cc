#include "headlight/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "headlight/base/error.h"

namespace headlight {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceForAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 5, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {-1, 0, 1, 2, 7, 100, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(std::max<int64_t>(count, 0)));
      pool.run(count, [&](int64_t task, int worker) {
        done[static_cast<std::size_t>(task)]++;
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
      });
      for (std::size_t i = 0; i < done.size(); ++i) {
        ASSERT_EQ(done[i], 1) << "task " << i << " of " << count << ", " << threads << " threads";
      }
    }
  }
}

TEST(ThreadPool, GivesEachWorkerOneTaskAtATime) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(4);  // not atomic: a thread sanitizer sees two tasks on one worker
  for (int round = 0; round < 50; ++round) {
    pool.run(200, [&](int64_t task, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, 4);
      sums[static_cast<std::size_t>(worker)] += task;
    });
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), 50 * 199 * 200 / 2);
}

TEST(ThreadPool, ShowsTheCallerWhatTasksWroteInManySmallJobs) {
  ThreadPool pool(3);
  std::vector<int64_t> values(64, 0);
  for (int64_t job = 1; job <= 5000; ++job) {
    pool.run(static_cast<int64_t>(values.size()),
             [&](int64_t task, int) { values[static_cast<std::size_t>(task)] += job; });
    ASSERT_EQ(values[static_cast<std::size_t>(job) % values.size()], job * (job + 1) / 2) << "job " << job;
  }
}

TEST(ThreadPool, ReturnsOnlyWhenTheLastTaskHasEnded) {
  ThreadPool pool(2);
  std::atomic<int> begun{0};
  bool ended = false;  // not atomic: the return orders it
  pool.run(2, [&](int64_t, int worker) {
    // both threads have a task; the caller's ends at once, the other's long after
    begun++;
    while (begun < 2) std::this_thread::yield();
    if (worker == 0) return;
    std::atomic<int> count{0};
    while (count < 10'000'000) count++;
    ended = true;
  });
  EXPECT_TRUE(ended);
}

TEST(ThreadPool, RunsACallFromInsideATaskOnItsOwnThread) {
  ThreadPool pool(3);
  std::atomic<int> done{0};
  pool.run(8, [&](int64_t, int) {
    const std::thread::id self = std::this_thread::get_id();
    pool.run(5, [&](int64_t, int) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      done++;
    });
  });
  EXPECT_EQ(done, 40);
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int job = 0; job < 300; ++job) pool.run(20, [&](int64_t task, int) { total += task; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 300 * 190);
}

TEST(ThreadPool, ThrowsATasksExceptionAgainAndWorksOn) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 100; ++round) {
      EXPECT_THROW(pool.run(50,
                            [](int64_t task, int) {
                              if (task % 7 == 3) throw std::runtime_error("task " + std::to_string(task));
                            }),
                   std::runtime_error);
      std::atomic<int> done{0};
      pool.run(10, [&](int64_t, int) { done++; });
      ASSERT_EQ(done, 10);
    }
  }
}

TEST(ThreadPool, RefusesToHaveNoThreads) {
  EXPECT_THROW(ThreadPool(0), LogicError);
  EXPECT_THROW(ThreadPool(-2), LogicError);
}

TEST(ThreadPool, EndsWithoutEverHavingWorked) {
  for (int i = 0; i < 200; ++i) ThreadPool pool(4);
}

// The exit code of a fresh process that asks for the default pool: its threads, or 200 + the error's kind.
[[noreturn]] void exit_with_default_threads(const char* setting) {
  ::setenv("HEADLIGHT_THREADS", setting, 1);
  try {
    std::_Exit(default_pool().threads());
  } catch (const Error& error) {
    std::_Exit(200 + static_cast<int>(error.kind()));
  }
}

TEST(DefaultPoolDeathTest, HasAsManyThreadsAsHeadlightThreadsSays) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(exit_with_default_threads("3"), ::testing::ExitedWithCode(3), "");
  for (const char* wrong : {"0", "-1", "1025", "two", "2x", "99999999999999999999"}) {
    EXPECT_EXIT(exit_with_default_threads(wrong), ::testing::ExitedWithCode(200 + static_cast<int>(ErrorKind::kUsage)),
                "")
        << wrong;
  }
}

TEST(SetThreads, ReplacesTheDefaultPool) {
  set_threads(2);
  EXPECT_EQ(default_pool().threads(), 2);
  set_threads(5);
  EXPECT_EQ(default_pool().threads(), 5);
  EXPECT_THROW(set_threads(0), LogicError);
  EXPECT_EQ(default_pool().threads(), 5);
}

TEST(Scratch, IsAlignedGrowsAndBelongsToItsThread) {
  std::byte* const first = scratch(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(scratch(50), first);
  std::byte* const large = scratch(1 << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % 64, 0u);
  large[(1 << 20) - 1] = std::byte{1};
  std::thread([&] { EXPECT_NE(scratch(100), large); }).join();
}

}  // namespace
}  // namespace headlight
