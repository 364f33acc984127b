#include "headlight/base/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/base/memory.h"

namespace headlight {
namespace {

// how long a worker looks for the next job before it sleeps: kernels follow each other closely
constexpr int kSpins = 4000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  const unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

int configured_threads() {
  const char* text = std::getenv("HEADLIGHT_THREADS");
  if (text == nullptr || *text == '\0') return available_processors();
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > 1024) {
    throw Error(ErrorKind::kUsage, "HEADLIGHT_THREADS", "\"" + std::string(text) + "\" is not a number of threads",
                "a whole number from 1 to 1024");
  }
  return static_cast<int>(value);
}

}  // namespace

struct ThreadPool::State {
  struct Job {
    int64_t count = 0;
    const TaskRef* task = nullptr;
    std::atomic<int64_t> next{0};
    std::mutex error_mutex;
    std::exception_ptr error;
  };

  // A job is open while its gate is not negative. Workers join an open job and the caller waits for those
  // that joined, not for all: a worker that the system has put aside delays nobody.
  static constexpr int kClosed = -(1 << 30);

  std::vector<std::thread> workers;
  std::mutex busy;  // held by the one caller whose job the workers do
  Job job;
  std::atomic<int> gate{kClosed};  // workers that joined the open job
  std::atomic<int> left{0};        // workers that joined it and have finished

  std::mutex mutex;  // guards sleeping on `wake` and `done`
  std::condition_variable wake;
  std::condition_variable done;
  std::atomic<uint64_t> generation{0};  // rises with each job
  std::atomic<bool> stop{false};

  void work(int worker) {
    for (;;) {
      const int64_t index = job.next.fetch_add(1, std::memory_order_relaxed);
      if (index >= job.count) return;
      try {
        (*job.task)(index, worker);
      } catch (...) {
        std::lock_guard lock(job.error_mutex);
        if (!job.error) job.error = std::current_exception();
      }
    }
  }

  void loop(int worker) {
    uint64_t seen = 0;
    for (;;) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_acquire) == seen; ++i) pause();
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen; });
      }
      seen = generation.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_acquire)) return;
      if (gate.fetch_add(1, std::memory_order_acq_rel) < 0) continue;  // over already
      work(worker);
      left.fetch_add(1, std::memory_order_acq_rel);
      std::lock_guard lock(mutex);
      done.notify_all();
    }
  }

  void announce() {
    {
      std::lock_guard lock(mutex);
      generation.fetch_add(1, std::memory_order_acq_rel);
    }
    wake.notify_all();
  }

  void close_job() {
    const int joined = gate.exchange(kClosed, std::memory_order_acq_rel);
    const auto all_left = [&] { return left.load(std::memory_order_acquire) == joined; };
    for (int i = 0; i < kSpins && !all_left(); ++i) pause();
    if (all_left()) return;
    std::unique_lock lock(mutex);
    done.wait(lock, all_left);
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads < 1) throw LogicError("ThreadPool", std::to_string(threads) + " threads; wanted at least 1");
  for (int worker = 1; worker < threads; ++worker) {
    state_->workers.emplace_back([state = state_.get(), worker] { state->loop(worker); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true, std::memory_order_release);
  state_->announce();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const noexcept { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::run(int64_t count, TaskRef task) {
  if (count <= 0) return;
  std::unique_lock busy(state_->busy, std::defer_lock);
  if (count == 1 || state_->workers.empty() || !busy.try_lock()) {
    for (int64_t index = 0; index < count; ++index) task(index, 0);
    return;
  }
  State::Job& job = state_->job;
  job.count = count;
  job.task = &task;
  job.error = nullptr;
  job.next.store(0, std::memory_order_relaxed);
  state_->left.store(0, std::memory_order_relaxed);
  state_->gate.store(0, std::memory_order_release);
  state_->announce();
  state_->work(0);
  state_->close_job();
  if (job.error) std::rethrow_exception(job.error);
}

namespace {

std::unique_ptr<ThreadPool>& default_slot() {
  static std::unique_ptr<ThreadPool> pool = std::make_unique<ThreadPool>(configured_threads());
  return pool;
}

struct Scratch {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  ~Scratch() { deallocate(data, bytes); }
};

}  // namespace

ThreadPool& default_pool() { return *default_slot(); }

void set_threads(int threads) { default_slot() = std::make_unique<ThreadPool>(threads); }

std::byte* scratch(std::size_t bytes) {
  thread_local Scratch memory;
  if (bytes > memory.bytes) {
    deallocate(memory.data, memory.bytes);
    memory.data = nullptr;
    memory.bytes = 0;
    memory.data = allocate(bytes);
    memory.bytes = bytes;
  }
  return memory.data;
}

}  // namespace headlight
