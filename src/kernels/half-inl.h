// Vectors of numbers that are stored short: widened on loading and narrowed on storing, to the same bits as by
// widen() and narrow(). A kernel file includes this after <hwy/highway.h>, once per instruction set.

#if defined(HEADLIGHT_KERNELS_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_HALF_INL_H_
#undef HEADLIGHT_KERNELS_HALF_INL_H_
#else
#define HEADLIGHT_KERNELS_HALF_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "headlight/tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether the instruction set converts binary16. Highway's own way around it loses infinities and rounds to zero.
constexpr bool kConvertsF16 = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_ARCH_ARM_A64;

// As many numbers from `from` as d has lanes, of any alignment.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_wide(D d, const T* from) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return hn::LoadU(d, from);
  } else {
    const hn::Rebind<uint16_t, D> d16;
    const hn::Rebind<uint32_t, D> d32;
    const auto bits = hn::LoadU(d16, &from->bits);
    if constexpr (std::is_same_v<T, BFloat16>) {
      return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
    } else if constexpr (kConvertsF16) {
      return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
    } else {
      HWY_ALIGN float wide[hn::MaxLanes(D())];
      for (size_t i = 0; i < hn::MaxLanes(D()); ++i) wide[i] = widen(from[i]);
      return hn::Load(d, wide);
    }
  }
}

// Two BFloat16 in each lane of 32 bits, the first in the lower half: one of them, widened.
template <class D>
HWY_INLINE hn::Vec<D> first_of_pairs(D d, hn::Vec<D> pairs) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(hn::Rebind<uint32_t, D>(), pairs)));
}
template <class D>
HWY_INLINE hn::Vec<D> second_of_pairs(D d, hn::Vec<D> pairs) {
  const hn::Rebind<uint32_t, D> d32;
  return hn::BitCast(d, hn::And(hn::BitCast(d32, pairs), hn::Set(d32, 0xffff0000u)));
}

// Stores as many numbers as d has lanes, at any alignment.
template <class D, class T>
HWY_INLINE void store_narrow(D d, hn::Vec<D> x, T* to) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    hn::StoreU(x, d, to);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::Rebind<uint32_t, D> d32;
    const hn::Rebind<int32_t, D> d32_signed;
    const auto bits = hn::BitCast(d32, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
    const auto nearest = hn::Add(hn::Add(bits, hn::Set(d32, 0x7fff)), odd);
    const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000));
    const auto rounded = hn::IfThenElse(hn::RebindMask(d32, hn::Eq(x, x)), nearest, quiet);
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(d32_signed, hn::ShiftRight<16>(rounded))), d16, &to->bits);
  } else if constexpr (kConvertsF16) {
    const hn::Rebind<uint16_t, D> d16;
    hn::StoreU(hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), x)), d16, &to->bits);
  } else {
    HWY_ALIGN float wide[hn::MaxLanes(D())];
    hn::Store(x, d, wide);
    for (size_t i = 0; i < hn::MaxLanes(D()); ++i) to[i] = narrow<T>(wide[i]);
  }
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
