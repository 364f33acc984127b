#pragma once
// Readers of tokenizers within a run's tokenizer.json.

#include <memory>
#include <string>

#include "base/json_reader.h"
#include "headlight/text/tokenizer.h"
#include "headlight/text/tokenizer_metadata.h"

namespace headlight {

struct TextOfFile {
  std::string text{};  // empty: there is no such file
  std::string where{};
};

// As the public function; `json` is the text parsed.
std::shared_ptr<const Tokenizer> hugging_face_tokenizer(const nlohmann::json& json, std::string text,
                                                        const std::string& where, const TextOfFile& config);
// {"kind": "hugging-face", "tokenizer": {...}, "config": {...}}: what hugging_face_tokenizer was given.
std::shared_ptr<const Tokenizer> read_hugging_face(JsonReader& read, const std::string& where);

// {"kind": "metadata", ...}: TokenizerMetadata by its members' names.
std::shared_ptr<const Tokenizer> read_metadata(JsonReader& read, const std::string& where);
std::string metadata_json(const TokenizerMetadata& metadata);

}  // namespace headlight
