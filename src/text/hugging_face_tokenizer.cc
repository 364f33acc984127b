#include "headlight/text/hugging_face_tokenizer.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "text/bpe.h"
#include "text/hugging_face_steps.h"
#include "text/merges.h"
#include "text/pipeline_tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/unigram.h"
#include "text/word_piece.h"

namespace headlight {
namespace {

using nlohmann::json;

constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max() - 1;

// {"a": 0, "b": 1}: each id from 0 on once.
std::vector<std::string> read_vocabulary(JsonReader& read) {
  const json& vocabulary = read.value("vocab");
  if (!vocabulary.is_object()) read.fail("vocab", "found no object", "expected tokens with their ids");
  std::vector<std::string> spellings(vocabulary.size());
  std::vector<bool> seen(vocabulary.size());
  for (const auto& [spelling, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= spellings.size()) {
      read.fail("vocab", fmt::format("token {} has id {}", in_quotes(spelling), in_quotes(id.dump())),
                fmt::format("expected a whole number below {}, the number of tokens", spellings.size()));
    }
    const auto index = id.get<std::size_t>();
    if (seen[index]) {
      read.fail("vocab",
                fmt::format("tokens {} and {} have id {}", in_quotes(spellings[index]), in_quotes(spelling), index),
                "expected each id once");
    }
    seen[index] = true;
    spellings[index] = spelling;
  }
  return spellings;
}

// "a b" or ["a", "b"]
std::vector<MergePair> read_merges(JsonReader& read, const std::string& where) {
  const json& merges = read.value("merges");
  if (!merges.is_array()) read.fail("merges", "found no list", "expected a list of pairs");
  std::vector<MergePair> pairs;
  pairs.reserve(merges.size());
  for (const json& merge : merges) {
    const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (is_pair) {
      pairs.push_back({merge[0].get<std::string>(), merge[1].get<std::string>()});
    } else if (merge.is_string()) {
      pairs.push_back(split_merge(merge.get_ref<const std::string&>(), pairs.size(), where + ": key merges"));
    } else {
      read.fail("merges", fmt::format("merge {} is {}", pairs.size(), in_quotes(merge.dump())),
                "expected a pair of tokens");
    }
  }
  return pairs;
}

void refuse_text(JsonReader& read, const std::string& key) {
  if (!read.has(key)) return;
  const std::string text = read.text(key);
  if (!text.empty()) read.fail(key, in_quotes(text) + " is not supported", "expected null");
}

int32_t id_in(const Vocabulary& vocabulary, JsonReader& read, const std::string& key) {
  const std::string spelling = read.text(key);
  const int32_t id = vocabulary.find(spelling);
  if (id < 0) read.fail(key, "found " + in_quotes(spelling), "expected a token of the vocabulary");
  return id;
}

bool boolean_or_false(JsonReader& read, const std::string& key) { return read.has(key) && read.boolean(key); }

void read_bpe(JsonReader& read, bool byte_level, const std::string& where, PipelineParts& parts) {
  parts.kind = byte_level ? "byte-level BPE" : "BPE";
  parts.vocabulary = std::make_unique<const Vocabulary>(read_vocabulary(read), where + ": key vocab");
  BpeOptions options;
  options.byte_level = byte_level;
  options.whole_first = boolean_or_false(read, "ignore_merges");
  options.byte_fallback = boolean_or_false(read, "byte_fallback");
  options.fuse_unknown = boolean_or_false(read, "fuse_unk");
  if (byte_level && options.byte_fallback) read.fail("byte_fallback", "found true", "expected false beside ByteLevel");
  if (read.has("unk_token") && !read.text("unk_token").empty()) {
    options.unknown = id_in(*parts.vocabulary, read, "unk_token");
    parts.special_ids.unknown = options.unknown;
  }
  if (read.has("dropout")) read.number("dropout", 0, 0);
  refuse_text(read, "continuing_subword_prefix");
  refuse_text(read, "end_of_word_suffix");
  const std::vector<MergeRule> rules = merge_rules(*parts.vocabulary, read_merges(read, where), where + ": key merges");
  parts.model = std::make_unique<const Bpe>(*parts.vocabulary, rules, options);
}

void read_word_piece(JsonReader& read, const std::string& where, PipelineParts& parts) {
  parts.kind = "WordPiece";
  parts.vocabulary = std::make_unique<const Vocabulary>(read_vocabulary(read), where + ": key vocab");
  WordPieceOptions options;
  options.unknown = id_in(*parts.vocabulary, read, "unk_token");
  options.continuation = read.text("continuing_subword_prefix");
  options.longest = static_cast<std::size_t>(read.whole("max_input_chars_per_word", 0));
  parts.special_ids.unknown = options.unknown;
  parts.model = std::make_unique<const WordPiece>(*parts.vocabulary, options);
}

void read_unigram(JsonReader& read, const std::string& where, PipelineParts& parts) {
  parts.kind = "Unigram";
  const json& vocabulary = read.value("vocab");
  if (!vocabulary.is_array()) read.fail("vocab", "found no list", "expected tokens with their scores");
  std::vector<std::string> spellings;
  UnigramOptions options;
  for (const json& token : vocabulary) {
    const bool fits = token.is_array() && token.size() == 2 && token[0].is_string() && token[1].is_number() &&
                      std::isfinite(token[1].get<double>());
    if (!fits) {
      read.fail("vocab", fmt::format("token {} is {}", spellings.size(), in_quotes(token.dump())),
                "expected a token and a finite score");
    }
    spellings.push_back(token[0].get<std::string>());
    options.scores.push_back(token[1].get<double>());
  }
  const auto count = static_cast<int64_t>(spellings.size());
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(spellings), where + ": key vocab");
  if (read.has("unk_id")) {
    options.unknown = static_cast<int32_t>(read.whole("unk_id", 0, count - 1));
    parts.special_ids.unknown = options.unknown;
  }
  options.byte_fallback = boolean_or_false(read, "byte_fallback");
  // text never becomes a special token by way of the model
  options.usable.assign(static_cast<std::size_t>(count), true);
  for (const AddedToken& token : parts.added) {
    if (token.special && token.id < count) options.usable[static_cast<std::size_t>(token.id)] = false;
  }
  parts.model = std::make_unique<const Unigram>(*parts.vocabulary, std::move(options));
}

void read_model(JsonReader& read, bool byte_level, const std::string& where, PipelineParts& parts) {
  // early files of BPE models name no type
  const std::string type = !read.has("type") && read.has("merges") ? "BPE" : read.text("type");
  if (type != "BPE" && byte_level) {
    read.fail("type", in_quotes(type) + " behind ByteLevel is not supported", "expected BPE");
  }
  if (type == "BPE") {
    read_bpe(read, byte_level, where, parts);
  } else if (type == "WordPiece") {
    read_word_piece(read, where, parts);
  } else if (type == "Unigram") {
    read_unigram(read, where, parts);
  } else {
    read.fail("type", in_quotes(type) + " is not supported", "expected BPE, WordPiece or Unigram");
  }
  read.finish();
}

std::vector<AddedToken> read_added_tokens(JsonReader& read, const std::string& where) {
  std::vector<AddedToken> tokens;
  if (!read.has("added_tokens")) return tokens;
  const json& list = read.value("added_tokens");
  if (!list.is_array()) read.fail("added_tokens", "found no list", "expected a list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonReader token(list[i], fmt::format("{}: added_tokens[{}]", where, i));
    tokens.push_back({.id = static_cast<int32_t>(token.whole("id", 0, kMaxId)),
                      .content = token.text("content"),
                      .special = token.boolean("special"),
                      .single_word = token.boolean("single_word"),
                      .left_strip = token.boolean("lstrip"),
                      .right_strip = token.boolean("rstrip"),
                      .normalized = token.boolean("normalized")});
    token.finish();
  }
  return tokens;
}

// The id of a token that the configuration names, as "<s>" or {"content": "<s>", ...}.
std::optional<int32_t> named_id(JsonReader& config, const std::string& key, const PipelineParts& parts) {
  if (!config.has(key)) return std::nullopt;
  const std::string content = config.value(key).is_object() ? config.object(key).text("content") : config.text(key);
  for (const AddedToken& token : parts.added) {
    if (token.content == content) return token.id;
  }
  const int32_t id = parts.vocabulary->find(content);
  if (id < 0) config.fail(key, "found " + in_quotes(content), "expected a token of tokenizer.json");
  return id;
}

// Whether a side of the frame is the token, as the configuration asks for.
void demand_side(JsonReader& config, const std::string& key, const std::string& token_key, std::optional<int32_t> token,
                 std::vector<int32_t>& side) {
  if (!config.has(key)) return;
  const bool wanted = config.boolean(key);
  if (wanted && !token) config.fail(key, "found true", "expected " + token_key + " as well");
  side.clear();
  if (wanted) side.push_back(*token);
}

void read_config(const TextOfFile& file, PipelineParts& parts) {
  if (file.text.empty()) return;
  const json value = parse_json(file.text, file.where);
  JsonReader config(value, file.where);
  SpecialIds& ids = parts.special_ids;
  ids.start = named_id(config, "bos_token", parts);
  ids.end = named_id(config, "eos_token", parts);
  ids.padding = named_id(config, "pad_token", parts);
  ids.classification = named_id(config, "cls_token", parts);
  ids.separator = named_id(config, "sep_token", parts);
  ids.mask = named_id(config, "mask_token", parts);
  if (const auto unknown = named_id(config, "unk_token", parts)) ids.unknown = unknown;
  demand_side(config, "add_bos_token", "bos_token", ids.start, parts.frame.before);
  demand_side(config, "add_eos_token", "eos_token", ids.end, parts.frame.after);
}

std::string run_json(const std::string& text, const TextOfFile& config, const std::string& where) {
  nlohmann::ordered_json all{{"kind", "hugging-face"}, {"tokenizer", parse_json(text, where)}};
  if (!config.text.empty()) all["config"] = parse_json(config.text, config.where);
  return all.dump() + "\n";
}

const json& part(JsonReader& read, const std::string& key) {
  static const json nothing;
  return read.has(key) ? read.value(key) : nothing;
}

}  // namespace

std::shared_ptr<const Tokenizer> hugging_face_tokenizer(const json& value, std::string text, const std::string& where,
                                                        const TextOfFile& config) {
  JsonReader read(value, where);
  PipelineParts parts;
  if (read.has("version")) read.choice("version", {"1.0"});
  for (const char* key : {"truncation", "padding"}) read.has(key);  // of batches
  parts.normalizer = read_normalizer(part(read, "normalizer"), where + ": normalizer");
  CuttingSteps cutting = read_pre_tokenizer(part(read, "pre_tokenizer"), where + ": pre_tokenizer");
  parts.pre_tokenizer = std::move(cutting.steps);
  JsonReader model = read.object("model");
  parts.added = read_added_tokens(read, where);
  read_model(model, cutting.byte_level, where + ": model", parts);
  parts.decoding = read_decoder(part(read, "decoder"), where + ": decoder");
  parts.frame = read_post_processor(part(read, "post_processor"), where + ": post_processor");
  read.finish();
  read_config(config, parts);
  parts.to_hugging_face = [text, config] { return HuggingFaceFiles{text, config.text}; };
  parts.to_json = [text = std::move(text), config, where] { return run_json(text, config, where); };
  return pipeline_tokenizer(std::move(parts), where + ": key added_tokens");
}

std::shared_ptr<const Tokenizer> hugging_face_tokenizer(const std::string& tokenizer, const std::string& where,
                                                        const std::optional<std::string>& config,
                                                        const std::string& config_where) {
  return hugging_face_tokenizer(parse_json(tokenizer, where), tokenizer, where,
                                {config.value_or(""), config ? config_where : ""});
}

std::shared_ptr<const Tokenizer> read_hugging_face(JsonReader& read, const std::string& where) {
  const json& tokenizer = read.value("tokenizer");
  TextOfFile config;
  if (read.has("config")) config = {read.value("config").dump(), where + ": config"};
  return hugging_face_tokenizer(tokenizer, tokenizer.dump(), where + ": tokenizer", config);
}

}  // namespace headlight
