// Loops over a row of any length, for the elementwise and reducing kernels: whole vectors, then what is left.
// The last elements go through the same operations as the others, and the order of a sum depends on the row's
// length alone, so that a result does not depend on alignment or neighbours. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ROWS_INL_H_
#undef HEADLIGHT_KERNELS_ROWS_INL_H_
#else
#define HEADLIGHT_KERNELS_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

// For the lambdas given to the loops below: `[&](auto part, int64_t i) HEADLIGHT_LOOP_BODY { ... }`.
#ifndef HEADLIGHT_LOOP_BODY
#define HEADLIGHT_LOOP_BODY HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A whole vector of a row.
struct Whole {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) const {
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load_or(D d, const hn::TFromD<D>* p, hn::TFromD<D>) const {
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> v, hn::TFromD<D>* p) const {
    hn::StoreU(v, d, p);
  }
};

// The first `count` lanes of a vector, 0 < count < lanes: the end of a row. Touches no element beyond.
struct Part {
  int64_t count;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) const {
    return load_or(d, p, hn::TFromD<D>(0));
  }
  // lanes from `count` on hold `fill`
  template <class D>
  HWY_INLINE hn::Vec<D> load_or(D d, const hn::TFromD<D>* p, hn::TFromD<D> fill) const {
    using T = hn::TFromD<D>;
#if HWY_TARGET <= HWY_AVX2
    const auto mask = hn::FirstN(d, static_cast<size_t>(count));
    const auto v = hn::MaskedLoad(mask, d, p);
    return fill == T(0) ? v : hn::IfThenElse(mask, v, hn::Set(d, fill));
#else
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(hn::Set(d, fill), d, lanes);
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
    return hn::Load(d, lanes);
#endif
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> v, hn::TFromD<D>* p) const {
// BlendedStore came with Highway 0.17
#if HWY_TARGET <= HWY_AVX2 && (HWY_MAJOR > 0 || HWY_MINOR >= 17)
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
    using T = hn::TFromD<D>;
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(v, d, lanes);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
  }
};

// Calls body(part, i) for the vectors of [0, n) in rising order of their first element i.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, int64_t n, Body body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(Whole{}, i);
  if (i < n) body(Part{n - i}, i);
}

// Calls body(part, i, state) for the vectors of [0, n), with four states in turn that break the chain of
// dependent additions, and merges them in a fixed order.
template <class D, class State, class Body>
HWY_INLINE State reduce(D d, int64_t n, const State& start, Body body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  State s0 = start, s1 = start, s2 = start, s3 = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    body(Whole{}, i, s0);
    body(Whole{}, i + lanes, s1);
    body(Whole{}, i + 2 * lanes, s2);
    body(Whole{}, i + 3 * lanes, s3);
  }
  for (; i + lanes <= n; i += lanes) body(Whole{}, i, s0);
  if (i < n) body(Part{n - i}, i, s1);
  s0.merge(s1);
  s2.merge(s3);
  s0.merge(s2);
  return s0;
}

// A state of `kCount` sums.
template <class D, int kCount>
struct Sums {
  hn::Vec<D> v[kCount];

  HWY_INLINE void merge(const Sums& other) {
    for (int i = 0; i < kCount; ++i) v[i] = hn::Add(v[i], other.v[i]);
  }
  HWY_INLINE hn::TFromD<D> total(D d, int i) const { return hn::GetLane(hn::SumOfLanes(d, v[i])); }
};

template <int kCount, class D>
HWY_INLINE Sums<D, kCount> zero_sums(D d) {
  Sums<D, kCount> sums;
  for (int i = 0; i < kCount; ++i) sums.v[i] = hn::Zero(d);
  return sums;
}

// The sum of what body(part, i, s) adds to s.v[0], for rows of any length: pieces of fixed length are summed
// in T, the pieces in double.
template <class D, class Body>
HWY_INLINE double sum_in_pieces(D d, int64_t n, Body body) {
  constexpr int64_t kPiece = 1024;
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t length = n - begin < kPiece ? n - begin : kPiece;
    const auto piece = reduce(d, length, zero_sums<1>(d),
                              [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY { body(part, begin + i, s); });
    sum += static_cast<double>(piece.total(d, 0));
  }
  return sum;
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
