#pragma once
// The angles of rotary positions, with every way of stretching them.

#include <vector>

#include "headlight/model/config.h"

namespace headlight {

// By pair, (R/2): pair c of position p turns by p * f_c radians. `config` is resolved and its positions are rotary.
std::vector<double> rotary_frequencies(const ModelConfig& config);

}  // namespace headlight
