#pragma once
// GGUF files as models and tokenizers.

#include <filesystem>
#include <memory>

#include "headlight/model/model.h"
#include "headlight/text/tokenizer.h"

namespace headlight {

// The configuration that the file's keys mean. Errors as Gguf; bad data names the architecture or the key that
// changes the mathematics and is not supported.
ModelConfig gguf_config(const std::filesystem::path& path);

// The same with its weights, widened to float.
Model load_gguf(const std::filesystem::path& path);

// The tokenizer that the file carries. Errors as Gguf and tokenizer_from_metadata.
std::shared_ptr<const Tokenizer> gguf_tokenizer(const std::filesystem::path& path);

}  // namespace headlight
