#include "ceiling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ceiling.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <utility>

#include "headlight/base/thread_pool.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// more than latency times throughput of any processor, and as many as the registers hold
#if HWY_ARCH_ARM_A64
constexpr int kChains = 20;
#else
constexpr int kChains = 12;
#endif

template <class V, std::size_t... kAt>
HWY_INLINE void multiply_add(V (&sums)[kChains], V x, V y, std::index_sequence<kAt...>) {
  ((sums[kAt] = hn::MulAdd(sums[kAt], x, y)), ...);
}

float multiply_adds(int64_t steps) {
  const hn::ScalableTag<float> d;
  hn::Vec<hn::ScalableTag<float>> sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  // not known when compiling, and far from overflow
  const auto x = hn::Set(d, steps > 0 ? 0.5F : 1.0F);
  const auto y = hn::Set(d, steps > 0 ? 0.25F : 1.0F);
  for (int64_t i = 0; i < steps; ++i) multiply_add(sums, x, y, std::make_index_sequence<kChains>());
  for (int i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  return hn::GetLane(sums[0]);
}

int64_t operations_per_step() { return 2 * kChains * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }

float sum(const float* p, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto add = [&](auto part, int64_t i, auto& sums)
                       HEADLIGHT_LOOP_BODY { sums.v[0] = hn::Add(sums.v[0], part.load(d, p + i)); };
  return reduce(d, n, zero_sums<1>(d), add).total(d, 0);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight::bench {
namespace {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(operations_per_step);
HWY_EXPORT(sum);

constexpr int64_t kAtOnce = 1 << 16;

// keeps what is timed from being left out
volatile float sink;

}  // namespace

Work multiply_add_ceiling(int threads) {
  constexpr int64_t kSteps = 20'000;
  const int64_t operations = HEADLIGHT_DISPATCH(operations_per_step)();
  return {"multiply-adds", static_cast<double>(kSteps * operations * threads), [threads] {
            default_pool().run(threads, [](int64_t, int) { sink = HEADLIGHT_DISPATCH(multiply_adds)(kSteps); });
          }};
}

Work read_ceiling(View<const float, 1> memory) {
  const int64_t n = memory.size(0);
  return {"read", static_cast<double>(n) * sizeof(float), [memory, n] {
            default_pool().run((n + kAtOnce - 1) / kAtOnce, [&](int64_t task, int) {
              const int64_t begin = task * kAtOnce;
              sink = HEADLIGHT_DISPATCH(sum)(memory.data + begin, std::min(kAtOnce, n - begin));
            });
          }};
}

}  // namespace headlight::bench
#endif
