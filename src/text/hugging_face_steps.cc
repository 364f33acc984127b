#include "text/hugging_face_steps.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "text/base64.h"
#include "text/pattern_table.h"

namespace headlight {
namespace {

using nlohmann::json;

[[noreturn]] void unsupported(const JsonReader& read, const std::string& type, const std::string& supported) {
  read.fail("type", in_quotes(type) + " is not supported", "expected " + supported);
}

// Calls each(reader, type, where) for a part, or for each part of a sequence of them.
template <class F>
void for_each_part(const json& value, const std::string& where, const char* list, F each) {
  if (value.is_null()) return;
  JsonReader read(value, where);
  const std::string type = read.text("type");
  if (type != "Sequence") {
    each(read, type, where);
    read.finish();
    return;
  }
  const json& parts = read.value(list);
  if (!parts.is_array()) read.fail(list, "found no list", "expected a list");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for_each_part(parts[i], fmt::format("{}: {}[{}]", where, list, i), list, each);
  }
  read.finish();
}

bool boolean_or(JsonReader& read, const std::string& key, bool otherwise) {
  return read.has(key) ? read.boolean(key) : otherwise;
}

Pattern read_pattern(JsonReader& read, const std::string& where) {
  JsonReader pattern = read.object("pattern");
  const bool is_regex = pattern.has("Regex");
  const std::string key = is_regex ? "Regex" : "String";
  const std::string text = pattern.text(key);
  pattern.finish();
  const std::string place = where + ": key pattern";
  return is_regex ? Pattern(text, place) : Pattern::literal(text, place);
}

void add_bert_normalizer(JsonReader& read, std::vector<NormalizerStep>& steps) {
  const bool lower = read.boolean("lowercase");
  if (read.boolean("clean_text")) steps.push_back(CleanText{});
  if (read.boolean("handle_chinese_chars")) steps.push_back(SpaceIdeographs{});
  if (boolean_or(read, "strip_accents", lower)) {
    steps.push_back(UnicodeForm{NormalForm::kNfd});
    steps.push_back(StripMarks{false});
  }
  if (lower) steps.push_back(LowerCase{});
}

void add_charsmap(JsonReader& read, const std::string& where, std::vector<NormalizerStep>& steps) {
  if (!read.has("precompiled_charsmap")) return;
  const std::string place = where + ": key precompiled_charsmap";
  const std::string text = read.text("precompiled_charsmap");
  if (text.empty()) return;
  const std::optional<std::string> bytes = from_base64(text);
  if (!bytes) read.fail("precompiled_charsmap", "found " + in_quotes(text), "expected base64");
  steps.push_back(ApplyCharsmapToGraphemes{std::make_shared<const Charsmap>(*bytes, place)});
}

void add_normalizer(JsonReader& read, const std::string& type, const std::string& where,
                    std::vector<NormalizerStep>& steps) {
  if (type == "NFC") return steps.push_back(UnicodeForm{NormalForm::kNfc});
  if (type == "NFD") return steps.push_back(UnicodeForm{NormalForm::kNfd});
  if (type == "NFKC") return steps.push_back(UnicodeForm{NormalForm::kNfkc});
  if (type == "NFKD") return steps.push_back(UnicodeForm{NormalForm::kNfkd});
  if (type == "Lowercase") return steps.push_back(LowerCase{});
  if (type == "StripAccents") return steps.push_back(StripMarks{true});
  if (type == "BertNormalizer") return add_bert_normalizer(read, steps);
  if (type == "Precompiled") return add_charsmap(read, where, steps);
  if (type == "Prepend") return steps.push_back(Prepend{read.text("prepend")});
  if (type == "Strip") return steps.push_back(Strip{read.boolean("strip_left"), read.boolean("strip_right")});
  if (type == "Replace") return steps.push_back(Replace{read_pattern(read, where), read.text("content")});
  unsupported(read, type,
              "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, BertNormalizer, Precompiled, Prepend, Strip, Replace or "
              "Sequence");
}

SplitBehaviour read_behaviour(JsonReader& read) {
  constexpr SplitBehaviour kAll[] = {SplitBehaviour::kRemoved, SplitBehaviour::kIsolated,
                                     SplitBehaviour::kMergedWithPrevious, SplitBehaviour::kMergedWithNext,
                                     SplitBehaviour::kContiguous};
  return kAll[read.choice("behavior", {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"})];
}

Metaspace read_metaspace(JsonReader& read, const std::string& where) {
  using Prefix = Metaspace::Prefix;
  const std::string mark = read.text("replacement");
  if (mark.empty()) read.fail("replacement", "found \"\"", "expected a character");
  Prefix prefix = Prefix::kAlways;
  if (read.has("prepend_scheme")) {
    constexpr Prefix kAll[] = {Prefix::kNever, Prefix::kFirst, Prefix::kAlways};
    prefix = kAll[read.choice("prepend_scheme", {"never", "first", "always"})];
  }
  // older files
  if (!boolean_or(read, "add_prefix_space", true)) prefix = Prefix::kNever;
  if (read.has("str_rep")) read.text("str_rep");
  return {mark, prefix, boolean_or(read, "split", true), Pattern::literal(mark, where)};
}

void add_byte_level(JsonReader& read, const std::string& where, CuttingSteps& out) {
  if (boolean_or(read, "add_prefix_space", true)) out.steps.push_back(PrefixBlank{});
  if (boolean_or(read, "use_regex", true)) {
    out.steps.push_back(Split{Pattern(kGpt2Pattern, where), SplitBehaviour::kIsolated});
  }
  read.has("trim_offsets");  // of that library's offsets; ours are never trimmed
  out.byte_level = true;
}

void add_pre_tokenizer(JsonReader& read, const std::string& type, const std::string& where, CuttingSteps& out) {
  std::vector<PreTokenizerStep>& steps = out.steps;
  if (out.byte_level) read.fail("type", "found " + in_quotes(type) + " after ByteLevel", "expected ByteLevel last");
  if (type == "ByteLevel") return add_byte_level(read, where, out);
  if (type == "Metaspace") return steps.push_back(read_metaspace(read, where));
  if (type == "Split") {
    return steps.push_back(Split{read_pattern(read, where), read_behaviour(read), boolean_or(read, "invert", false)});
  }
  if (type == "Digits") {
    const bool each = read.boolean("individual_digits");
    return steps.push_back(
        Split{CharacterClass::kNumber, each ? SplitBehaviour::kIsolated : SplitBehaviour::kContiguous});
  }
  if (type == "Punctuation") {
    return steps.push_back(
        Split{CharacterClass::kPunctuation, read.has("behavior") ? read_behaviour(read) : SplitBehaviour::kIsolated});
  }
  if (type == "WhitespaceSplit") return steps.push_back(Split{CharacterClass::kWhiteSpace, SplitBehaviour::kRemoved});
  if (type == "Whitespace") {
    return steps.push_back(Split{Pattern(kWordsPattern, where), SplitBehaviour::kRemoved, true});
  }
  if (type == "BertPreTokenizer") {
    steps.push_back(Split{CharacterClass::kWhiteSpace, SplitBehaviour::kRemoved});
    return steps.push_back(Split{CharacterClass::kPunctuation, SplitBehaviour::kIsolated});
  }
  unsupported(read, type,
              "ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer or "
              "Sequence");
}

void add_strip(JsonReader& read, bool fused, DecodingRules& rules) {
  const std::string content = read.text("content");
  if (content != " ") read.fail("content", "found " + in_quotes(content), "expected a blank");
  if (read.whole("stop", 0) != 0) read.fail("stop", "found blanks to leave out at the end", "expected 0");
  if (!fused) read.fail("type", "found Strip before Fuse", "expected Strip after Fuse");
  rules.blanks_to_strip += static_cast<std::size_t>(read.whole("start", 0, std::numeric_limits<int32_t>::max()));
}

void add_replacement(JsonReader& read, DecodingRules& rules) {
  JsonReader pattern = read.object("pattern");
  const std::string what = pattern.text("String");
  if (what.empty()) pattern.fail("String", "found \"\"", "expected some text");
  pattern.finish();
  rules.replacements.emplace_back(what, read.text("content"));
}

void add_decoder(JsonReader& read, const std::string& type, const std::string& where, bool& fused,
                 DecodingRules& rules) {
  if (type == "Strip") return add_strip(read, fused, rules);
  if (fused) read.fail("type", "found " + in_quotes(type) + " after Fuse", "expected Strip at most");
  if (type == "Fuse") {
    fused = true;
    return;
  }
  if (type == "ByteFallback") {
    rules.byte_fallback = true;
    return;
  }
  if (rules.byte_fallback) read.fail("type", "found " + in_quotes(type) + " after ByteFallback", "expected Fuse");
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) read.has(key);  // of encoding
    rules.byte_level = true;
    return;
  }
  if (type == "Replace") return add_replacement(read, rules);
  if (type == "Metaspace") {
    const Metaspace metaspace = read_metaspace(read, where);
    rules.replacements.emplace_back(metaspace.mark, " ");
    rules.strip_first_token = metaspace.prefix != Metaspace::Prefix::kNever;
    return;
  }
  if (type == "WordPiece") {
    rules.blank_between = true;
    rules.continuation = read.text("prefix");
    rules.clean_up = read.boolean("cleanup");
    return;
  }
  unsupported(read, type, "ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, WordPiece or Sequence");
}

int32_t read_id(const json& value, const JsonReader& read, const std::string& key) {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<int32_t>::max()) {
    return value.get<int32_t>();
  }
  read.fail(key, "found " + in_quotes(value.dump()), "expected a token's id");
}

// ["[CLS]", 101]
int32_t read_pair(JsonReader& read, const std::string& key) {
  const json& pair = read.value(key);
  if (!pair.is_array() || pair.size() != 2) read.fail(key, "found no pair", "expected a token and its id");
  return read_id(pair[1], read, key);
}

void append_special(JsonReader& tokens, const std::string& name, std::vector<int32_t>& ids) {
  JsonReader token = tokens.object(name);
  const json& list = token.value("ids");
  if (!list.is_array()) token.fail("ids", "found no list", "expected a list of ids");
  for (const json& id : list) ids.push_back(read_id(id, token, "ids"));
}

void add_template(JsonReader& read, const std::string& where, Frame& frame) {
  JsonReader tokens = read.object("special_tokens");
  const json& items = read.value("single");
  if (!items.is_array()) read.fail("single", "found no list", "expected a list");
  std::vector<int32_t> before, after;
  bool has_text = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    JsonReader item(items[i], fmt::format("{}: single[{}]", where, i));
    if (item.has("Sequence")) {
      if (has_text) item.fail("Sequence", "found the text twice", "expected it once");
      has_text = true;
    } else {
      append_special(tokens, item.object("SpecialToken").text("id"), has_text ? after : before);
    }
  }
  if (!has_text) read.fail("single", "found no Sequence", "expected the text once");
  frame.before.insert(frame.before.begin(), before.begin(), before.end());
  frame.after.insert(frame.after.end(), after.begin(), after.end());
  read.has("pair");  // of two texts
}

void add_post_processor(JsonReader& read, const std::string& type, const std::string& where, Frame& frame) {
  if (type == "TemplateProcessing") return add_template(read, where, frame);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    frame.before.insert(frame.before.begin(), read_pair(read, "cls"));
    frame.after.push_back(read_pair(read, "sep"));
  } else if (type != "ByteLevel") {
    unsupported(read, type, "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or Sequence");
  }
  // these change that library's offsets only
  for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) read.has(key);
}

}  // namespace

std::vector<NormalizerStep> read_normalizer(const json& value, const std::string& where) {
  std::vector<NormalizerStep> steps;
  for_each_part(value, where, "normalizers", [&](JsonReader& read, const std::string& type, const std::string& place) {
    add_normalizer(read, type, place, steps);
  });
  return steps;
}

CuttingSteps read_pre_tokenizer(const json& value, const std::string& where) {
  CuttingSteps out;
  for_each_part(value, where, "pretokenizers",
                [&](JsonReader& read, const std::string& type, const std::string& place) {
                  add_pre_tokenizer(read, type, place, out);
                });
  return out;
}

DecodingRules read_decoder(const json& value, const std::string& where) {
  DecodingRules rules;
  bool fused = false;
  // without a decoder that library puts blanks between the tokens
  rules.blank_between = value.is_null();
  for_each_part(value, where, "decoders", [&](JsonReader& read, const std::string& type, const std::string& place) {
    add_decoder(read, type, place, fused, rules);
  });
  return rules;
}

Frame read_post_processor(const json& value, const std::string& where) {
  Frame frame;
  for_each_part(value, where, "processors", [&](JsonReader& read, const std::string& type, const std::string& place) {
    add_post_processor(read, type, place, frame);
  });
  return frame;
}

}  // namespace headlight
