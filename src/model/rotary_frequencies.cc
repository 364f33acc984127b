#include "model/rotary_frequencies.h"

#include <algorithm>
#include <cmath>

namespace headlight {
namespace {

constexpr double kTurn = 6.283185307179586476925286766559;  // 2 pi

// between f / factor for long wavelengths and f for short ones (Llama 3)
double llama3_frequency(const RotaryScaling& scaling, double f) {
  const double turns = scaling.original_context * f / kTurn;  // over the original context
  const double kept = std::clamp((turns - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
  return (1 - kept) * f / scaling.factor + kept * f;
}

// the pair, a real number, that turns `turns` times over the original context
double pair_of_turns(const ModelConfig& config, double turns) {
  const RotaryScaling& scaling = config.rotary_scaling;
  return static_cast<double>(config.rotary_width) * std::log(scaling.original_context / (turns * kTurn)) /
         (2 * std::log(config.rotary_base));
}

// Peng et al. 2023, section 3.2, with the ramp over pairs
void stretch_by_yarn(const ModelConfig& config, std::vector<double>& frequencies) {
  const RotaryScaling& scaling = config.rotary_scaling;
  double first = pair_of_turns(config, scaling.fast), last = pair_of_turns(config, scaling.slow);
  if (scaling.whole_pairs) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(config.rotary_width - 1));
  if (first == last) last += 0.001;
  for (std::size_t c = 0; c < frequencies.size(); ++c) {
    const double stretched = std::clamp((static_cast<double>(c) - first) / (last - first), 0.0, 1.0);
    frequencies[c] = stretched * frequencies[c] / scaling.factor + (1 - stretched) * frequencies[c];
  }
}

}  // namespace

std::vector<double> rotary_frequencies(const ModelConfig& config) {
  const RotaryScaling& scaling = config.rotary_scaling;
  const int64_t pairs = config.rotary_width / 2;
  std::vector<double> out;
  // base^(-2c/R) (Su et al. 2021, equation 15)
  for (int64_t c = 0; c < pairs; ++c) {
    out.push_back(std::pow(config.rotary_base, -static_cast<double>(c) / static_cast<double>(pairs)));
  }
  switch (scaling.kind) {
    case RotaryScalingKind::kNone:
      break;
    case RotaryScalingKind::kLinear:
      for (double& f : out) f /= scaling.factor;
      break;
    case RotaryScalingKind::kLlama3:
      for (double& f : out) f = llama3_frequency(scaling, f);
      break;
    case RotaryScalingKind::kYarn:
      stretch_by_yarn(config, out);
      break;
    case RotaryScalingKind::kListed:
      for (std::size_t c = 0; c < out.size(); ++c) out[c] /= scaling.divisors[c];
      break;
  }
  return out;
}

}  // namespace headlight
