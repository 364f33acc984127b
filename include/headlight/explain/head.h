#pragma once
// Which head is meant, and a figure with its spread: what every result about heads is made of.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/model/config.h"

namespace headlight {

// A query head, both numbers counted from 0.
struct HeadId {
  int64_t block = 0;
  int64_t head = 0;
  auto operator<=>(const HeadId&) const = default;
};

// "5.1"
std::string to_string(const HeadId& head);
// "1.0, 1.1"
std::string to_string(const std::vector<HeadId>& heads);

// Reads "5.1"; absent when it is not of this form.
std::optional<HeadId> read_head(const std::string& text);
// The same for a head of a model. Throws Error (usage) when it is not of this form or the model has no such head.
HeadId parse_head(const std::string& text, const ModelConfig& config);

// Block by block.
std::vector<HeadId> all_heads(const ModelConfig& config);

// Mean and standard deviation (n - 1 below the line) over `count` values. The mean of no value is NaN, and so is the
// spread of fewer than two; NaN among the values is kept.
struct Estimate {
  double mean = 0;
  double spread = 0;
  int64_t count = 0;
};
Estimate estimate_of(const std::vector<double>& values);

}  // namespace headlight
