#pragma once
// The parts of a Hugging Face tokenizer.json around its model.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "text/decoding.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace headlight {

struct CuttingSteps {
  std::vector<PreTokenizerStep> steps;
  bool byte_level = false;  // the model sees bytes, spelled by byte_character
};

// `value` is what the file has for the part, null included; `where` names the file and the key. Errors: bad data
// there; what is not supported is refused by name.
std::vector<NormalizerStep> read_normalizer(const nlohmann::json& value, const std::string& where);
CuttingSteps read_pre_tokenizer(const nlohmann::json& value, const std::string& where);
DecodingRules read_decoder(const nlohmann::json& value, const std::string& where);
// What is put around a single text.
Frame read_post_processor(const nlohmann::json& value, const std::string& where);

}  // namespace headlight
