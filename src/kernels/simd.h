#pragma once
// Settings for every kernel that is compiled once per instruction set. Included before anything of Highway.
//
// A kernel file reads:
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/NAME.cc"
//   #include "kernels/simd.h"
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
//   HWY_BEFORE_NAMESPACE();
//   namespace headlight::HWY_NAMESPACE { ... code, with hn = hwy::HWY_NAMESPACE ... }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace headlight { HWY_EXPORT(NameFloat); ... HEADLIGHT_DISPATCH(NameFloat)(args); }
//   #endif

// AVX-512, AVX2, NEON and the portable baseline; scalable vectors and finer steps of x86 are left out.
#define HWY_DISABLED_TARGETS \
  ((HWY_AVX3 - 1) | HWY_SSE4 | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

namespace headlight {

// Applies HEADLIGHT_ISA, once. Throws Error (usage) when it names an instruction set that is not there.
void prepare_isa();

}  // namespace headlight

// The variant of `function` for the instruction set in use.
#define HEADLIGHT_DISPATCH(function) (::headlight::prepare_isa(), HWY_DYNAMIC_DISPATCH(function))
