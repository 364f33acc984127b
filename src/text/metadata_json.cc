#include <utility>

#include "headlight/base/error.h"
#include "text/base64.h"
#include "text/tokenizer_files.h"

namespace headlight {
namespace {

using nlohmann::json;

std::vector<std::string> read_texts(JsonReader& read, const std::string& key) {
  std::vector<std::string> texts;
  const json& list = read.value(key);
  if (!list.is_array()) read.fail(key, "found no list", "expected a list of strings");
  for (const json& text : list) {
    if (!text.is_string()) read.fail(key, "found " + in_quotes(text.dump()), "expected a list of strings");
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::vector<float> read_scores(JsonReader& read, const std::string& key) {
  std::vector<float> scores;
  const json& list = read.value(key);
  if (!list.is_array()) read.fail(key, "found no list", "expected a list of numbers");
  for (const json& score : list) {
    if (!score.is_number()) read.fail(key, "found " + in_quotes(score.dump()), "expected a list of numbers");
    scores.push_back(score.get<float>());
  }
  return scores;
}

// The members that are one number or one truth, by name.
template <class Metadata, class F>
void each_optional(Metadata& metadata, F each) {
  each("bos", metadata.bos);
  each("eos", metadata.eos);
  each("unknown", metadata.unknown);
  each("padding", metadata.padding);
  each("separator", metadata.separator);
  each("mask", metadata.mask);
  each("add_bos", metadata.add_bos);
  each("add_eos", metadata.add_eos);
  each("add_space_prefix", metadata.add_space_prefix);
  each("remove_extra_whitespaces", metadata.remove_extra_whitespaces);
}

void read_value(JsonReader& read, const char* key, std::optional<int64_t>& value) { value = read.whole(key, 0); }
void read_value(JsonReader& read, const char* key, std::optional<bool>& value) { value = read.boolean(key); }

}  // namespace

std::shared_ptr<const Tokenizer> read_metadata(JsonReader& read, const std::string& where) {
  TokenizerMetadata metadata;
  metadata.model = read.text("model");
  metadata.pre = read.text("pre");
  metadata.tokens = read_texts(read, "tokens");
  metadata.scores = read_scores(read, "scores");
  for (int64_t type : read.wholes("token_types", 0, 6)) metadata.token_types.push_back(static_cast<int32_t>(type));
  metadata.merges = read_texts(read, "merges");
  const std::string charsmap = read.text("precompiled_charsmap");
  const std::optional<std::string> bytes = from_base64(charsmap);
  if (!bytes) read.fail("precompiled_charsmap", "found " + in_quotes(charsmap), "expected base64");
  metadata.precompiled_charsmap = *bytes;
  each_optional(metadata, [&](const char* key, auto& value) {
    if (read.has(key)) read_value(read, key, value);
  });
  return tokenizer_from_metadata(metadata, where);
}

std::string metadata_json(const TokenizerMetadata& metadata) {
  nlohmann::ordered_json all{
      {"kind", "metadata"},        {"model", metadata.model},
      {"pre", metadata.pre},       {"tokens", metadata.tokens},
      {"scores", metadata.scores}, {"token_types", metadata.token_types},
      {"merges", metadata.merges}, {"precompiled_charsmap", to_base64(metadata.precompiled_charsmap)}};
  each_optional(metadata, [&](const char* key, const auto& value) {
    if (value) all[key] = *value;
  });
  return all.dump() + "\n";
}

}  // namespace headlight
