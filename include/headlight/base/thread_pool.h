#pragma once
// Worker threads for the kernels. Work is split into tasks by shape alone, never by the number of
// threads, so that results have the same bits whatever that number is.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace headlight {

// A borrowed callable `void(int64_t task, int worker)`; it must outlive the call it is passed to.
class TaskRef {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, TaskRef>>>
  TaskRef(F&& f)  // NOLINT: implicit by design, like a function parameter
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* object, int64_t task, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task, worker);
        }) {}
  void operator()(int64_t task, int worker) const { call_(object_, task, worker); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int);
};

class ThreadPool {
 public:
  // `threads` >= 1 workers, the calling thread included. Throws LogicError otherwise.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept;

  // Calls task(index, worker) once for each index of [0, count), in rising order of start, and returns
  // when all are done; worker is in [0, threads()). The first exception that a task throws is thrown
  // again here, after the others have ended. When the pool is already busy (another thread's call, or a
  // call from inside a task) the tasks run one after the other on the calling thread.
  void run(int64_t count, TaskRef task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The pool that kernels use when none is given: as many threads as the process may use processors, or
// HEADLIGHT_THREADS. Throws Error (usage) when HEADLIGHT_THREADS is not a number from 1 to 1024.
ThreadPool& default_pool();

// Replaces the default pool by one of `threads` workers. Not to be called while kernels run.
void set_threads(int threads);

// Working memory of the calling thread: 64-byte aligned, uninitialised, valid until the next call of
// scratch() on the same thread. It grows to the largest request and is kept for reuse, so that kernels
// do not allocate in steady state.
std::byte* scratch(std::size_t bytes);

}  // namespace headlight
