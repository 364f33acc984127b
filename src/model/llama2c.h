#pragma once
// llama2.c's `.bin` files as models.

#include <filesystem>

#include "headlight/model/model.h"

namespace headlight {

// The configuration that the file's sizes mean. Errors as MappedFile and parse_llama2c.
ModelConfig llama2c_config(const std::filesystem::path& path);

// The same with its weights.
Model load_llama2c(const std::filesystem::path& path);

}  // namespace headlight
