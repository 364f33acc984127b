#pragma once
// Models that other programs wrote, by way of the table of families.

#include <filesystem>
#include <memory>

#include "headlight/model/model.h"
#include "headlight/text/tokenizer.h"

namespace headlight {

// A llama2.c file. Errors as load_model().
ModelConfig llama2c_config(const std::filesystem::path& path);
Model load_llama2c(const std::filesystem::path& path, DType matrices);

// A GGUF file of an architecture in the table.
ModelConfig gguf_config(const std::filesystem::path& path);
Model load_gguf(const std::filesystem::path& path, DType matrices);
std::shared_ptr<const Tokenizer> gguf_tokenizer(const std::filesystem::path& path);

// Hugging Face's config.json, given its text and its name in messages, and its tensors.
ModelConfig hugging_face_config(const std::string& text, const std::string& where);
Model load_hugging_face(const std::string& config, const std::string& where, const std::filesystem::path& weights,
                        DType matrices);

}  // namespace headlight
