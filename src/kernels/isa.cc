#include "headlight/kernels/isa.h"

#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <mutex>

#include "headlight/base/error.h"

namespace headlight {
namespace {

std::string name_of(int64_t target) {
  switch (target) {
    case HWY_AVX3:
      return "avx512";
    case HWY_AVX2:
      return "avx2";
    case HWY_NEON:
      return "neon";
    default:
      return "portable";
  }
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void choose(const std::string& name, const char* where) {
  hwy::SetSupportedTargetsForTest(0);
  if (!name.empty()) {
    int64_t chosen = 0;
    for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
      if (name_of(target) == name) chosen = target;
    }
    if (chosen == 0) {
      throw Error(ErrorKind::kUsage, where, "\"" + name + "\" is not an instruction set of this build and processor",
                  "one of " + list(supported_isas()));
    }
    hwy::SetSupportedTargetsForTest(chosen);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void choose_from_environment() {
  const char* name = std::getenv("HEADLIGHT_ISA");
  choose(name == nullptr ? "" : name, "HEADLIGHT_ISA");
}

std::once_flag chosen_once;

}  // namespace

void prepare_isa() { std::call_once(chosen_once, choose_from_environment); }

std::string active_isa() {
  prepare_isa();
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return name_of(targets & -targets);
}

std::vector<std::string> supported_isas() {
  std::vector<std::string> names;
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) names.push_back(name_of(target));
  return names;
}

void force_isa(const std::string& name) {
  prepare_isa();
  if (name.empty()) {
    choose_from_environment();
  } else {
    choose(name, "force_isa");
  }
}

}  // namespace headlight
