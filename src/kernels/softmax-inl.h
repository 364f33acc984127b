// The two passes over a row that softmax and cross-entropy share. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_SOFTMAX_INL_H_
#undef HEADLIGHT_KERNELS_SOFTMAX_INL_H_
#else
#define HEADLIGHT_KERNELS_SOFTMAX_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "kernels/math-inl.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

template <class D>
struct Largest {
  hn::Vec<D> v;

  HWY_INLINE void merge(const Largest& other) { v = hn::Max(v, other.v); }
};

// The largest of a row, -inf of an empty one. NaN may be passed over: the exponentials keep it.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T row_max(D d, const T* x, int64_t n) {
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  const auto largest = reduce(d, n, Largest<D>{hn::Set(d, kNone)},
                              [&](auto part, int64_t i, auto& s)
                                  HEADLIGHT_LOOP_BODY { s.v = hn::Max(part.load_or(d, x + i, kNone), s.v); });
  return hn::GetLane(hn::MaxOfLanes(d, largest.v));
}

// The sum of e_i = exp(x_i - max), which is 0 where it is no normal number; NaN when an x_i is NaN or max is
// infinite. Sets e, which may be x, unless it is null.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE double row_exp(D d, const T* x, int64_t n, T max, T* e) {
  const auto v_max = hn::Set(d, max);
  return sum_in_pieces(d, n, [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY {
    const auto v = exp_of_negative(d, hn::Sub(part.load_or(d, x + i, -std::numeric_limits<T>::infinity()), v_max));
    if (e != nullptr) part.store(d, v, e + i);
    s.v[0] = hn::Add(s.v[0], v);
  });
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
