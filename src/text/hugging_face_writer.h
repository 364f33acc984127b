#pragma once
// GGUF's and llama2.c's tokenizers in the form of the Hugging Face library.

#include <optional>
#include <string_view>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "headlight/text/tokenizer_metadata.h"
#include "text/added_tokens.h"

namespace headlight {

// How text is cut before byte-level BPE.
struct ByteLevelCutting {
  std::string_view pattern;
  bool digits_apart = false;  // each digit alone, before the pattern
  bool composes = false;      // NFC first
  bool whole_first = false;   // a piece that is a token is not merged; a start token is put in front
};
// That of a value of tokenizer.ggml.pre, if it is one that is known.
std::optional<ByteLevelCutting> byte_level_cutting(std::string_view pre);

// For the models "gpt2", "llama" and "llama2.c", whose values have been checked; `added`, `ids` and `frame` as read.
HuggingFaceFiles hugging_face_files(const TokenizerMetadata& metadata, const std::vector<AddedToken>& added,
                                    const SpecialIds& ids, const Frame& frame);

}  // namespace headlight
