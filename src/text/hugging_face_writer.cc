#include "text/hugging_face_writer.h"

#include <algorithm>
#include <memory>

#include "base/json_reader.h"
#include "text/merges.h"
#include "text/pattern_table.h"
#include "text/vocabulary.h"

namespace headlight {
namespace {

using nlohmann::ordered_json;

constexpr const char* kMark = "\xE2\x96\x81";  // U+2581, SentencePiece's blank

ordered_json sequence(const char* name, ordered_json steps) { return {{"type", "Sequence"}, {name, std::move(steps)}}; }

ordered_json byte_level(bool prefix, bool regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", regex}};
}

ordered_json vocabulary_of(const std::vector<std::string>& tokens) {
  ordered_json vocabulary = ordered_json::object();
  auto& members = vocabulary.get_ref<ordered_json::object_t&>();
  for (std::size_t id = 0; id < tokens.size(); ++id) members.push_back({tokens[id], id});
  return vocabulary;
}

ordered_json bpe(const TokenizerMetadata& metadata, ordered_json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", vocabulary_of(metadata.tokens)},
          {"merges", std::move(merges)}};
}

void write_byte_level(const TokenizerMetadata& metadata, ordered_json& json) {
  const ByteLevelCutting cutting = *byte_level_cutting(metadata.pre);
  if (cutting.composes) json["normalizer"] = {{"type", "NFC"}};
  const bool prefix = metadata.add_space_prefix.value_or(false);
  ordered_json steps = ordered_json::array();
  if (cutting.digits_apart) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  const bool is_gpt2 = cutting.pattern == kGpt2Pattern;
  if (!is_gpt2) {
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", cutting.pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  }
  steps.push_back(byte_level(prefix, is_gpt2));
  json["pre_tokenizer"] = sequence("pretokenizers", steps);
  json["decoder"] = byte_level(prefix, true);
  ordered_json merges = ordered_json::array();
  for (std::size_t i = 0; i < metadata.merges.size(); ++i) {
    const MergePair pair = split_merge(metadata.merges[i], i, "merges");
    merges.push_back({pair.left, pair.right});
  }
  json["model"] = bpe(metadata, std::move(merges));
  json["model"]["ignore_merges"] = cutting.whole_first;
}

// merges in the order of their rank; of one token's those whose parts come first in the vocabulary
ordered_json merges_from_scores(const TokenizerMetadata& metadata) {
  const Vocabulary vocabulary(metadata.tokens, "tokens");
  std::vector<bool> usable(metadata.tokens.size(), true);
  for (std::size_t id = 0; id < metadata.token_types.size(); ++id) {
    usable[id] = metadata.token_types[id] == 1 || metadata.token_types[id] == 4;
  }
  std::vector<MergeRule> rules = merge_rules_from_scores(vocabulary, metadata.scores, usable);
  std::stable_sort(rules.begin(), rules.end(), [](const MergeRule& a, const MergeRule& b) { return a.rank < b.rank; });
  ordered_json merges = ordered_json::array();
  for (const MergeRule& rule : rules) {
    merges.push_back({vocabulary.spelling(rule.left), vocabulary.spelling(rule.right)});
  }
  return merges;
}

void write_sentence_piece(const TokenizerMetadata& metadata, const SpecialIds& ids, ordered_json& json) {
  // llama2.c's tokens have blanks where SentencePiece has marks
  const bool has_marks = metadata.model != "llama2.c";
  const std::string blank = has_marks ? kMark : " ";
  const bool prefix = metadata.add_space_prefix.value_or(true);
  ordered_json normalizers = ordered_json::array(), decoders = ordered_json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", blank}});
  if (has_marks) {
    normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMark}});
    decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", kMark}}}, {"content", " "}});
  }
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  if (!normalizers.empty()) json["normalizer"] = sequence("normalizers", normalizers);
  json["decoder"] = sequence("decoders", decoders);
  json["model"] = bpe(metadata, merges_from_scores(metadata));
  json["model"]["unk_token"] = metadata.tokens[static_cast<std::size_t>(*ids.unknown)];
  json["model"]["fuse_unk"] = true;
  json["model"]["byte_fallback"] = true;
}

ordered_json template_of(const TokenizerMetadata& metadata, const Frame& frame) {
  ordered_json single = ordered_json::array(), special = ordered_json::object();
  const auto add = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      const std::string& token = metadata.tokens[static_cast<std::size_t>(id)];
      single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
      special[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
    }
  };
  add(frame.before);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add(frame.after);
  ordered_json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
}

std::string config_of(const TokenizerMetadata& metadata, const SpecialIds& ids) {
  ordered_json json{{"tokenizer_class", "PreTrainedTokenizerFast"}};
  const auto name = [&](const char* key, const std::optional<int32_t>& id) {
    if (id) json[key] = metadata.tokens[static_cast<std::size_t>(*id)];
  };
  name("bos_token", ids.start);
  name("eos_token", ids.end);
  name("unk_token", ids.unknown);
  name("pad_token", ids.padding);
  return pretty_json(json);
}

}  // namespace

std::optional<ByteLevelCutting> byte_level_cutting(std::string_view pre) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), pre) != names.end();
  };
  if (is_one_of({"llama3", "llama-v3", "llama-bpe"}))
    return ByteLevelCutting{.pattern = kLlama3Pattern, .whole_first = true};
  if (pre == "qwen2") return ByteLevelCutting{.pattern = kQwen2Pattern, .composes = true};
  if (is_one_of({"smollm", "starcoder"})) return ByteLevelCutting{.pattern = kGpt2Pattern, .digits_apart = true};
  if (is_one_of({"gpt-2", "olmo"})) return ByteLevelCutting{.pattern = kGpt2Pattern};
  return std::nullopt;
}

HuggingFaceFiles hugging_face_files(const TokenizerMetadata& metadata, const std::vector<AddedToken>& added,
                                    const SpecialIds& ids, const Frame& frame) {
  ordered_json json{{"version", "1.0"},          {"truncation", nullptr},
                    {"padding", nullptr},        {"added_tokens", ordered_json::array()},
                    {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
                    {"post_processor", nullptr}, {"decoder", nullptr},
                    {"model", nullptr}};
  for (const AddedToken& token : added) {
    json["added_tokens"].push_back({{"id", token.id},
                                    {"content", token.content},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", token.special}});
  }
  if (metadata.model == "gpt2") {
    write_byte_level(metadata, json);
  } else {
    write_sentence_piece(metadata, ids, json);
  }
  if (!frame.before.empty() || !frame.after.empty()) json["post_processor"] = template_of(metadata, frame);
  return {pretty_json(json), config_of(metadata, ids)};
}

}  // namespace headlight
