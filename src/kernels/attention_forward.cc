#include "headlight/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_forward.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "headlight/base/thread_pool.h"
#include "kernels/attention_decode-inl.h"
#include "kernels/attention_forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

template <class S>
void forward(const AttentionForward<S>& args) {
  using T = Accumulator<S>;
  ThreadPool& pool = default_pool();
  const TaskList list(args.pattern, args.q.size(0), args.q.size(2), args.q.size(1), args.k.size(1), kBlockRows<T>,
                      pool.threads());
  Arena counter;
  ForwardWorker<S>(args, list.rows_per_task(), counter);

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
    ForwardWorker<S>(args, list.rows_per_task(), arena).run(tasks[task], next);
  });
}

// All chunks of all key/value heads first, then what merges them.
template <class S>
void decode(const AttentionForward<S>& args) {
  using T = Accumulator<S>;
  ThreadPool& pool = default_pool();
  const int64_t Hkv = args.k.size(2), heads = args.q.size(0) * Hkv, chunks = DecodeWorker<S>::chunks(args);
  Arena counter, shared;
  DecodeWorker<S>(args, counter);
  shared.take<DecodePart<T>>(heads * chunks);
  for (int64_t head = 0; head < heads; ++head) DecodeWorker<S>::take_parts(args, shared, nullptr);

  const int64_t per_worker = counter.used();
  std::byte* memory = scratch(static_cast<std::size_t>(shared.used() + pool.threads() * per_worker));
  std::byte* workers = memory + shared.used();
  Arena arena(memory);
  auto* parts = arena.take<DecodePart<T>>(heads * chunks);
  for (int64_t head = 0; head < heads; ++head) DecodeWorker<S>::take_parts(args, arena, parts + head * chunks);
  const auto decoder = [&](int worker) {
    Arena own(workers + worker * per_worker);
    return DecodeWorker<S>(args, own);
  };
  pool.run(heads * chunks, [&](int64_t task, int worker) {
    const int64_t head = task / chunks;
    decoder(worker).gather(head / Hkv, head % Hkv, task % chunks, parts[task]);
    if (chunks == 1) decoder(worker).finish(head / Hkv, head % Hkv, parts + task);
  });
  if (chunks == 1) return;
  pool.run(heads,
           [&](int64_t head, int worker) { decoder(worker).finish(head / Hkv, head % Hkv, parts + head * chunks); });
}

template <class S>
void forward_or_decode(const AttentionForward<S>& args) {
  const int64_t H = args.q.size(2), Hkv = args.k.size(2);
  const bool few = H > 0 && args.q.size(1) * (H / Hkv) <= kFewRows;
  // the tanh of additive scores costs far more than the reading of K and V
  few&& args.pattern.additive.data == nullptr ? decode(args) : forward(args);
}

void forward_float(const AttentionForward<float>& args) { forward_or_decode(args); }
void forward_double(const AttentionForward<double>& args) { forward_or_decode(args); }
void forward_bf16(const AttentionForward<BFloat16>& args) { forward_or_decode(args); }
void forward_f16(const AttentionForward<Float16>& args) { forward_or_decode(args); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(forward_bf16);
HWY_EXPORT(forward_f16);

void dispatch(const AttentionForward<float>& args) { HEADLIGHT_DISPATCH(forward_float)(args); }
void dispatch(const AttentionForward<double>& args) { HEADLIGHT_DISPATCH(forward_double)(args); }
void dispatch(const AttentionForward<BFloat16>& args) { HEADLIGHT_DISPATCH(forward_bf16)(args); }
void dispatch(const AttentionForward<Float16>& args) { HEADLIGHT_DISPATCH(forward_f16)(args); }

}  // namespace

template <class T>
void attention_forward(const AttentionForward<T>& args) {
  check(args);
  dispatch(args);
}

template void attention_forward<float>(const AttentionForward<float>&);
template void attention_forward<double>(const AttentionForward<double>&);
template void attention_forward<BFloat16>(const AttentionForward<BFloat16>&);
template void attention_forward<Float16>(const AttentionForward<Float16>&);

}  // namespace headlight
#endif
