#pragma once
// The tokenizers under tests/fixtures/text, made by scripts/fixtures/make_tokenizer_fixtures.py.

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headlight/base/file.h"
#include "headlight/text/tokenizer.h"

namespace headlight {

inline std::filesystem::path fixture_folder() {
  return std::filesystem::path(HEADLIGHT_SOURCE_DIR) / "tests" / "fixtures" / "text";
}

inline std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture_folder())) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string fixture_text(const std::string& name) { return read_file(fixture_folder() / (name + ".json")); }

inline std::shared_ptr<const Tokenizer> fixture_tokenizer(const std::string& name) {
  return tokenizer_from_json(fixture_text(name), name);
}

inline std::vector<std::string> fixture_lines() {
  return nlohmann::json::parse(read_file(fixture_folder() / "lines")).get<std::vector<std::string>>();
}

}  // namespace headlight
