#include "headlight/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_forward.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "headlight/base/thread_pool.h"
#include "kernels/attention_forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

template <class T>
void forward(const AttentionForward<T>& args) {
  ThreadPool& pool = default_pool();
  const TaskList list(args.pattern, args.q.size(0), args.q.size(2), args.q.size(1), args.k.size(1), kBlockRows<T>,
                      pool.threads());
  Arena counter;
  ForwardWorker<T>(args, list.rows_per_task(), counter);

  Arena shared;
  shared.take<Task>(list.count());
  const int64_t per_worker = counter.used();
  std::byte* memory = scratch(static_cast<std::size_t>(shared.used() + pool.threads() * per_worker));
  Task* tasks = Arena(memory).take<Task>(list.count());
  list.fill(args.pattern, tasks);
  std::byte* workers = memory + shared.used();
  pool.run(list.count(), [&](int64_t task, int worker) {
    Arena arena(workers + worker * per_worker);
    const int64_t likely = task + pool.threads();
    const Task* next = likely < list.count() ? tasks + likely : nullptr;
    ForwardWorker<T>(args, list.rows_per_task(), arena).run(tasks[task], next);
  });
}

void forward_float(const AttentionForward<float>& args) { forward(args); }
void forward_double(const AttentionForward<double>& args) { forward(args); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);

void dispatch(const AttentionForward<float>& args) { HEADLIGHT_DISPATCH(forward_float)(args); }
void dispatch(const AttentionForward<double>& args) { HEADLIGHT_DISPATCH(forward_double)(args); }

}  // namespace

template <class T>
void attention_forward(const AttentionForward<T>& args) {
  check(args);
  dispatch(args);
}

template void attention_forward<float>(const AttentionForward<float>&);
template void attention_forward<double>(const AttentionForward<double>&);

}  // namespace headlight
#endif
