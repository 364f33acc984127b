#pragma once
// Which instruction set the kernels run on. It is chosen when the first kernel runs: the best that both the
// build and the processor have, or the one that HEADLIGHT_ISA names.

#include <string>
#include <vector>

namespace headlight {

// The name of the instruction set in use: "avx512", "avx2", "neon", or "portable" for the plain baseline.
// Throws Error (usage) when HEADLIGHT_ISA names one that is unknown or that this processor lacks.
std::string active_isa();

// Those that this build has and this processor can run, best first.
std::vector<std::string> supported_isas();

// Switches to `name` from now on, or back to the choice of the start with "". Throws as active_isa().
// Not to be called while kernels run; for tests and measurements.
void force_isa(const std::string& name);

}  // namespace headlight
