#include "headlight/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_backward.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "headlight/base/thread_pool.h"
#include "kernels/attention_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// What the tasks of one call share.
template <class T>
struct BackwardShared {
  template <class S>
  BackwardShared(const AttentionBackward<S>& args, const BackwardPlan& plan, int64_t dq_size, Arena& arena) {
    const int64_t heads = args.q.size(0) * args.q.size(2);
    tasks = arena.take<BackwardTask>(plan.count());
    dq_parts = arena.take<T>(plan.apart ? plan.splits * heads * dq_size : 0);
    sums = HeadSums::take(arena, heads, plan.splits, args.pattern.additive.data ? args.q.size(3) : 0);
  }
  BackwardTask* tasks;
  T* dq_parts;  // [split][b][h] blocks
  HeadSums sums;
};

// out(h, c) = factor * sum over b and split of sums, [b][h][split][c].
template <class T>
void reduce_heads(const View<T, 2>& out, T factor, const double* sums, int64_t B, int64_t splits) {
  if (out.data == nullptr) return;
  const int64_t H = out.size(0), columns = out.size(1);
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t split = 0; split < splits; ++split) sum += sums[((b * H + h) * splits + split) * columns + c];
      }
      out(h, c) = static_cast<T>(double(factor) * sum);
    }
  }
}
template <class T>
void reduce_heads(const View<T, 1>& out, const double* sums, int64_t B, int64_t splits) {
  reduce_heads<T>(View<T, 2>(out.data, {out.size(0), 1}, {out.stride(0), 1}), T(1), sums, B, splits);
}

template <class S>
void backward(const AttentionBackward<S>& args) {
  using T = Accumulator<S>;
  ThreadPool& pool = default_pool();
  const BackwardPlan plan(args, kBlockRows<T>, pool.threads());
  const int64_t B = args.q.size(0), H = args.q.size(2);
  Arena worker_size, bias_size, shared_size;
  const int64_t dq_size = BackwardWorker<S>(args, plan, worker_size).dq_size();
  if (args.dbias.data != nullptr) BiasWorker<S>(args, bias_size);
  BackwardShared<T>(args, plan, dq_size, shared_size);
  const int64_t per_worker = std::max(worker_size.used(), bias_size.used());
  std::byte* memory = scratch(static_cast<std::size_t>(shared_size.used() + pool.threads() * per_worker));
  std::byte* workers = memory + shared_size.used();
  Arena shared_arena(memory);
  const BackwardShared<T> shared(args, plan, dq_size, shared_arena);
  plan.fill(args.pattern, shared.tasks);

  pool.run(plan.count(), [&](int64_t task, int worker) {
    Arena arena(workers + worker * per_worker);
    const int64_t likely = task + pool.threads();
    const BackwardTask* next = likely < plan.count() ? shared.tasks + likely : nullptr;
    BackwardWorker<S>(args, plan, arena).run(shared.tasks[task], next, shared.dq_parts, shared.sums);
  });
  if (args.dq.data != nullptr && plan.apart) {
    pool.run(B * H, [&](int64_t index, int worker) {
      Arena arena(workers + worker * per_worker);
      const Head<T> head(args.pattern, index / H, index % H, args.q.size(1), args.k.size(1));
      BackwardWorker<S>(args, plan, arena).write_dq(head, shared.dq_parts + index * dq_size, B * H * dq_size);
    });
  }
  if (args.dbias.data != nullptr) {
    pool.run(BiasWorker<S>::tasks(args), [&](int64_t task, int worker) {
      Arena arena(workers + worker * per_worker);
      BiasWorker<S>(args, arena).run(task);
    });
  }
  reduce_heads(args.dsinks, shared.sums.sinks, B, 1);
  reduce_heads(args.dslopes, shared.sums.slopes, B, plan.splits);
  reduce_heads(args.d_additive, args.pattern.scale, shared.sums.additive, B, plan.splits);
}

void backward_float(const AttentionBackward<float>& args) { backward(args); }
void backward_double(const AttentionBackward<double>& args) { backward(args); }
void backward_bf16(const AttentionBackward<BFloat16>& args) { backward(args); }
void backward_f16(const AttentionBackward<Float16>& args) { backward(args); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(backward_float);
HWY_EXPORT(backward_double);
HWY_EXPORT(backward_bf16);
HWY_EXPORT(backward_f16);

void dispatch(const AttentionBackward<float>& args) { HEADLIGHT_DISPATCH(backward_float)(args); }
void dispatch(const AttentionBackward<double>& args) { HEADLIGHT_DISPATCH(backward_double)(args); }
void dispatch(const AttentionBackward<BFloat16>& args) { HEADLIGHT_DISPATCH(backward_bf16)(args); }
void dispatch(const AttentionBackward<Float16>& args) { HEADLIGHT_DISPATCH(backward_f16)(args); }

}  // namespace

template <class T>
void attention_backward(const AttentionBackward<T>& args) {
  check(args);
  dispatch(args);
}

template void attention_backward<float>(const AttentionBackward<float>&);
template void attention_backward<double>(const AttentionBackward<double>&);
template void attention_backward<BFloat16>(const AttentionBackward<BFloat16>&);
template void attention_backward<Float16>(const AttentionBackward<Float16>&);

}  // namespace headlight
#endif
