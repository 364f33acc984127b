#pragma once
// What several subcommands say about the same results, as JSON and in words.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headlight/explain/check.h"
#include "headlight/explain/formation.h"
#include "headlight/explain/head.h"
#include "headlight/train/evaluate.h"

namespace headlight::cli {

nlohmann::ordered_json json_of(const Evaluation& evaluation);
nlohmann::ordered_json json_of(const Formation& formation);
nlohmann::ordered_json json_of(const Estimate& estimate);
nlohmann::ordered_json json_of(const std::vector<HeadId>& heads);
nlohmann::ordered_json json_of(const std::vector<Check>& checks);
// The token, or null.
nlohmann::ordered_json json_of(const std::optional<int32_t>& token);
// A string when the bytes are UTF-8, else the list of the bytes.
nlohmann::ordered_json json_of_text(const std::string& bytes);

// "validation: first copy 4.16, second copy 0.02 nats"
std::string validation_text(const Evaluation& evaluation);

}  // namespace headlight::cli
