#include "headlight/kernels/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/check.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// (a, b) turned by the angle of (cosine, sine): (a cos - b sin, b cos + a sin)
template <class V>
HWY_INLINE void turn(V& a, V& b, V cosine, V sine) {
  const V kept = a;
  a = hn::NegMulAdd(b, sine, hn::Mul(kept, cosine));
  b = hn::MulAdd(kept, sine, hn::Mul(b, cosine));
}

// Pairs (c, c + pairs) of one row; y may be x. sign: -1 turns back.
template <class T>
HWY_INLINE void turn_halves(const T* x, T* y, const T* cosine, const T* sine, T sign, int64_t pairs) {
  const hn::ScalableTag<T> d;
  const auto v_sign = hn::Set(d, sign);
  for_each_vector(d, pairs, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
    auto a = part.load(d, x + i);
    auto b = part.load(d, x + pairs + i);
    turn(a, b, part.load(d, cosine + i), hn::Mul(part.load(d, sine + i), v_sign));
    part.store(d, a, y + i);
    part.store(d, b, y + pairs + i);
  });
}

// Adjacent pairs: a(c) = p(2c), b(c) = p(2c + 1).
template <class D, class V = hn::Vec<D>>
HWY_INLINE void load_pairs(D d, const hn::TFromD<D>* p, V& a, V& b) {
#if HWY_MAJOR > 0 || HWY_MINOR >= 17
  hn::LoadInterleaved2(d, p, a, b);
#else
  HWY_ALIGN hn::TFromD<D> lanes[2][HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  for (size_t i = 0; i < 2 * hn::Lanes(d); ++i) lanes[i % 2][i / 2] = p[i];
  a = hn::Load(d, lanes[0]);
  b = hn::Load(d, lanes[1]);
#endif
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void store_pairs(D d, V a, V b, hn::TFromD<D>* p) {
#if HWY_MAJOR > 0 || HWY_MINOR >= 17
  hn::StoreInterleaved2(a, b, d, p);
#else
  HWY_ALIGN hn::TFromD<D> lanes[2][HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(a, d, lanes[0]);
  hn::Store(b, d, lanes[1]);
  for (size_t i = 0; i < 2 * hn::Lanes(d); ++i) p[i] = lanes[i % 2][i / 2];
#endif
}

// Pairs (2c, 2c + 1) of one row.
template <class T>
HWY_INLINE void turn_adjacent(const T* x, T* y, const T* cosine, const T* sine, T sign, int64_t pairs) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto v_sign = hn::Set(d, sign);
  HWY_ALIGN T rest[2 * HWY_MAX_BYTES / sizeof(T)];
  for_each_vector(d, pairs, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
    // the last pairs go through a buffer, as interleaved loads are always whole
    const int64_t count = pairs - i < lanes ? pairs - i : lanes;
    const T* from = x + 2 * i;
    T* to = y + 2 * i;
    if (count < lanes) {
      for (int64_t c = 0; c < 2 * lanes; ++c) rest[c] = c < 2 * count ? x[2 * i + c] : T(0);
      from = rest;
      to = rest;
    }
    hn::Vec<decltype(d)> a;
    hn::Vec<decltype(d)> b;
    load_pairs(d, from, a, b);
    turn(a, b, part.load(d, cosine + i), hn::Mul(part.load(d, sine + i), v_sign));
    store_pairs(d, a, b, to);
    if (count < lanes) {
      for (int64_t c = 0; c < 2 * count; ++c) y[2 * i + c] = rest[c];
    }
  });
}

// All heads of the positions [begin, end) of the flattened (B, T).
template <class T>
void rotary_rows(const Rotary<T>& a, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t pairs = a.cosine.size(1);
  const int64_t rest = a.x.size(3) - 2 * pairs;
  const T sign = a.inverse ? T(-1) : T(1);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t batch = row / a.x.size(1);
    const int64_t t = row % a.x.size(1);
    const int64_t position = a.positions(batch, t);
    const T* cosine = a.cosine[position].data;
    const T* sine = a.sine[position].data;
    for (int64_t head = 0; head < a.x.size(2); ++head) {
      const T* x = a.x[batch][t][head].data;
      T* y = a.y[batch][t][head].data;
      if (a.pairs == RotaryPairs::kHalves) {
        turn_halves(x, y, cosine, sine, sign, pairs);
      } else {
        turn_adjacent(x, y, cosine, sine, sign, pairs);
      }
      if (x == y) continue;
      const T* from = x + 2 * pairs;
      T* to = y + 2 * pairs;
      for_each_vector(d, rest,
                      [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY { part.store(d, part.load(d, from + i), to + i); });
    }
  }
}

void rotary_float(const Rotary<float>& a, int64_t begin, int64_t end) { rotary_rows(a, begin, end); }
void rotary_double(const Rotary<double>& a, int64_t begin, int64_t end) { rotary_rows(a, begin, end); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(rotary_float);
HWY_EXPORT(rotary_double);

auto kernel_for(float) { return HEADLIGHT_DISPATCH(rotary_float); }
auto kernel_for(double) { return HEADLIGHT_DISPATCH(rotary_double); }

// Looks at the heads of the first position: the others lie the same way to each other when strides are equal.
template <class T>
void require_turned_in_place_or_apart(const Rotary<T>& a) {
  if (a.x.empty() || a.x.stride(0) != a.y.stride(0) || a.x.stride(1) != a.y.stride(1)) return;
  require_same_or_apart("rotary", "y", a.y[0][0], "x", a.x[0][0]);
}

template <class T>
void check(const Rotary<T>& a) {
  const char* const operation = "rotary";
  require_unit_stride(operation, "x", a.x);
  require_rows(operation, "y", a.y, a.x.sizes);
  require_sizes(operation, "positions", a.positions, {a.x.size(0), a.x.size(1)});
  require_unit_stride(operation, "cosine", a.cosine);
  require_rows(operation, "sine", a.sine, a.cosine.sizes);
  require_turned_in_place_or_apart(a);
  const int64_t width = 2 * a.cosine.size(1);
  if (width > a.x.size(3)) {
    throw LogicError(operation, "tables " + shape_text(a.cosine) + " turn " + std::to_string(width) +
                                    " coordinates; x " + shape_text(a.x) + " has " + std::to_string(a.x.size(3)));
  }
  for (int64_t b = 0; b < a.positions.size(0); ++b) {
    for (int64_t t = 0; t < a.positions.size(1); ++t) {
      const int64_t position = a.positions(b, t);
      if (position >= 0 && position < a.cosine.size(0)) continue;
      throw LogicError(operation, "position " + std::to_string(position) + " at (" + std::to_string(b) + "," +
                                      std::to_string(t) + "); wanted one in [0, " + std::to_string(a.cosine.size(0)) +
                                      ")");
    }
  }
}

}  // namespace

template <class T>
void rotary(const Rotary<T>& a) {
  check(a);
  const auto kernel = kernel_for(T());
  for_row_blocks(a.x.size(0) * a.x.size(1), a.x.size(2) * a.x.size(3),
                 [&](int64_t begin, int64_t end) { kernel(a, begin, end); });
}

template void rotary(const Rotary<float>&);
template void rotary(const Rotary<double>&);

}  // namespace headlight
#endif
