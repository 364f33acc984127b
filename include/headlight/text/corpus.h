#pragma once
// A text file as a source of sequences, one token per byte.

#include <cstdint>
#include <filesystem>
#include <memory>

#include "headlight/text/data_source.h"

namespace headlight {

struct TextOptions {
  std::filesystem::path path{};
  int64_t context = 128;             // T
  double validation_fraction = 0.1;  // the last part of the file; 0: only training, 1: only validation
  int64_t validation_limit = 0;      // windows used for validation, spread evenly; 0: all

  bool operator==(const TextOptions&) const = default;
};

// Training: windows at random places of the first part, every position predicting the byte after it. Validation:
// windows side by side over the last part, so that each of its bytes but the first is a target exactly once (the
// last window reaches back to be full; what was a target before is none there). One class, "text".
// Errors: missing input; bad data when the text is empty or a part is shorter than T + 1 bytes, with the bytes
// found and needed; usage when an option is out of range.
std::shared_ptr<const DataSource> text_file(const TextOptions& options);

}  // namespace headlight
