// The softmax of rows that are met tile by tile: rows are lanes. Forward and decoding do the same here, to the bit.

#if defined(HEADLIGHT_KERNELS_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_SOFTMAX_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_SOFTMAX_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_SOFTMAX_INL_H_
#endif

#include "kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What brings sums below two maxima to the larger of them.
template <class T>
struct Merging {
  Vec<T> max, total_factor, part_factor;

  HWY_INLINE Merging(Vec<T> total_max, Vec<T> part_max) {
    const Tag<T> d;
    max = max_or_second(d, part_max, total_max);
    total_factor = exp_down(d, hn::Sub(total_max, subtractable<T>(max)));
    part_factor = exp_down(d, hn::Sub(part_max, subtractable<T>(max)));
  }
  HWY_INLINE Vec<T> merged(Vec<T> total, Vec<T> part) const {
    return hn::MulAdd(total, total_factor, hn::Mul(part, part_factor));
  }
};

// The new maximum of rows that had gathered something below `before`. A zero loses its sign, which depends on the
// order of the keys.
template <class T>
struct Raise {
  Vec<T> max;
  bool changed;

  HWY_INLINE Raise(Vec<T> before, Vec<T> largest) {
    const Tag<T> d;
    max = hn::Add(largest, hn::Zero(d));
    changed = !hn::AllTrue(d, hn::Eq(before, max));
  }
  HWY_INLINE Vec<T> factor(Vec<T> before) const { return exp_down(Tag<T>(), hn::Sub(before, subtractable<T>(max))); }
};

// Takes the sink, when there is one, into max and sum. Gives what turns the gathered values into o: 0 for rows that
// have gathered no weight, sink or not.
template <class T>
HWY_INLINE Vec<T> normalise(Vec<T>& max, Vec<T>& sum, bool has_sink, Vec<T> sink) {
  const Tag<T> d;
  const auto none = hn::Eq(sum, hn::Zero(d));
  Vec<T> factor = hn::Set(d, T(1));
  if (has_sink) {
    const Vec<T> before = max;
    max = max_or_second(d, before, sink);
    factor = exp_down(d, hn::Sub(before, subtractable<T>(max)));
    sum = hn::MulAdd(sum, factor, exp_down(d, hn::Sub(sink, subtractable<T>(max))));
  }
  return hn::IfThenElse(none, hn::Zero(d), hn::Div(factor, sum));
}

// Rows that pad the valid ones see nothing.
template <class S>
void write_invalid_rows(const AttentionForward<S>& args, const Head<Accumulator<S>>& head) {
  using T = Accumulator<S>;
  const T sink = args.pattern.sinks.data == nullptr ? kMinusInfinity<T> : args.pattern.sinks(head.h);
  const RowStatistic<T> statistic{sink, sink == kMinusInfinity<T> ? T(0) : std::exp(sink - sink)};
  for (int64_t i = 0; i < args.q.size(1); ++i) {
    if (i >= head.spans.q.begin && i < head.spans.q.end) continue;
    for (int64_t c = 0; c < args.o.size(3); ++c) args.o(head.b, i, head.h, c) = S{};
    if (args.statistics.data != nullptr) args.statistics(head.b, head.h, i) = statistic;
  }
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
