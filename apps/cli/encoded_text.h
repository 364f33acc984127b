#pragma once
// A text of tokens as sequences: what any tokenizer makes of a file, cut into windows.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headlight/text/data_source.h"

namespace headlight::cli {

struct EncodedTextOptions {
  std::vector<int32_t> ids{};      // of the whole text, bare
  std::optional<int32_t> start{};  // put before each window
  int64_t context = 0;             // T of a window; shorter when the text is
  int64_t limit = 0;               // windows used, spread evenly; 0: all
};

// Windows side by side, all for validation: each token of the text is a target exactly once (without a start token all
// but the first). The last window reaches back to be full; what was a target before is none there. Throws Error
// (usage) when there are no two tokens to see and predict.
std::shared_ptr<const DataSource> encoded_text(std::shared_ptr<const Tokenizer> tokenizer, EncodedTextOptions options);

}  // namespace headlight::cli
