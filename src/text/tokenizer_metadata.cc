#include "headlight/text/tokenizer_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "text/bpe.h"
#include "text/hugging_face_writer.h"
#include "text/merges.h"
#include "text/pattern_table.h"
#include "text/pipeline_tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/unigram.h"
#include "text/word_piece.h"

namespace headlight {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, SentencePiece's blank
constexpr std::size_t kLongestToken = 1024;         // bytes of a token whose merges are looked for

enum TokenType : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// Builds the parts from the values.
class MetadataReader {
 public:
  MetadataReader(const TokenizerMetadata& from, const std::string& where) : from_(from), where_(where) {}

  PipelineParts read() {
    check_sizes();
    check_scores();
    read_ids();
    if (from_.model == "gpt2") {
      read_byte_level();
    } else if (from_.model == "llama" || from_.model == "llama2.c") {
      read_sentence_piece();
    } else if (from_.model == "bert") {
      read_word_piece();
    } else if (from_.model == "t5") {
      read_unigram();
    } else {
      fail("model", in_quotes(from_.model) + " is not supported", "expected gpt2, llama, bert or t5");
    }
    parts_.to_json = [metadata = from_] { return metadata_json(metadata); };
    if (from_.model != "bert" && from_.model != "t5") {
      parts_.to_hugging_face = [metadata = from_, added = parts_.added, ids = parts_.special_ids,
                                frame = parts_.frame] { return hugging_face_files(metadata, added, ids, frame); };
    }
    return std::move(parts_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const {
    throw Error(ErrorKind::kBadData, where_ + ": key tokenizer.ggml." + key, found, expected);
  }

  void check_sizes() const {
    const std::size_t count = from_.tokens.size();
    const auto check = [&](std::size_t size, const char* key) {
      if (size != 0 && size != count)
        fail(key, fmt::format("{} values", size), fmt::format("expected {}, one per token", count));
    };
    check(from_.scores.size(), "scores");
    check(from_.token_types.size(), "token_type");
    for (std::size_t i = 0; i < from_.token_types.size(); ++i) {
      const int32_t type = from_.token_types[i];
      if (type < kNormal || type > kByte)
        fail("token_type", fmt::format("token {} has type {}", i, type), "expected 1 to 6");
    }
  }

  void check_scores() const {
    const auto bad = std::find_if(from_.scores.begin(), from_.scores.end(), [](float s) { return !std::isfinite(s); });
    if (bad == from_.scores.end()) return;
    fail("scores", fmt::format("token {} has score {}", bad - from_.scores.begin(), *bad), "expected finite numbers");
  }

  void demand_scores() const {
    if (from_.scores.empty()) fail("scores", "no values", "expected one per token");
  }

  int32_t type_of(int32_t id) const {
    return from_.token_types.empty() ? int32_t{kNormal} : from_.token_types[static_cast<std::size_t>(id)];
  }

  std::optional<int32_t> checked(const std::optional<int64_t>& id, const char* key) const {
    if (!id) return std::nullopt;
    const auto count = static_cast<int64_t>(from_.tokens.size());
    if (*id < 0 || *id >= count) fail(key, fmt::format("found {}", *id), fmt::format("expected an id below {}", count));
    return static_cast<int32_t>(*id);
  }

  void read_ids() {
    SpecialIds& ids = parts_.special_ids;
    ids.start = checked(from_.bos, "bos_token_id");
    ids.end = checked(from_.eos, "eos_token_id");
    ids.unknown = checked(from_.unknown, "unknown_token_id");
    ids.padding = checked(from_.padding, "padding_token_id");
    ids.separator = checked(from_.separator, "seperator_token_id");  // the format's own spelling
    ids.mask = checked(from_.mask, "mask_token_id");
  }

  void read_tokens(std::vector<std::string> spellings) {
    parts_.vocabulary =
        std::make_unique<const Vocabulary>(std::move(spellings), where_ + ": key tokenizer.ggml.tokens");
    for (int32_t id = 0; id < parts_.vocabulary->size(); ++id) {
      const int32_t type = type_of(id);
      if (type != kUnknown && type != kControl && type != kUserDefined) continue;
      // an empty one can never be in a text
      if (parts_.vocabulary->spelling(id).empty()) continue;
      parts_.added.push_back({.id = id, .content = parts_.vocabulary->spelling(id), .special = type != kUserDefined});
    }
  }

  void set_frame(bool add_start, bool add_end) {
    const SpecialIds& ids = parts_.special_ids;
    if (from_.add_bos.value_or(add_start)) {
      if (!ids.start) fail("bos_token_id", "is missing", "expected an id, for add_bos_token");
      parts_.frame.before.push_back(*ids.start);
    }
    const std::optional<int32_t> end = from_.model == "bert" && ids.separator ? ids.separator : ids.end;
    if (from_.add_eos.value_or(add_end)) {
      if (!end) fail("eos_token_id", "is missing", "expected an id, for add_eos_token");
      parts_.frame.after.push_back(*end);
    }
  }

  void read_byte_level() {
    parts_.kind = "byte-level BPE";
    read_tokens(from_.tokens);
    const std::optional<ByteLevelCutting> cutting = byte_level_cutting(from_.pre);
    if (!cutting) {
      fail("pre", in_quotes(from_.pre) + " is not supported",
           "expected gpt-2, olmo, smollm, starcoder, llama-bpe or qwen2");
    }
    if (cutting->composes) parts_.normalizer.push_back(UnicodeForm{NormalForm::kNfc});
    if (from_.add_space_prefix.value_or(false)) parts_.pre_tokenizer.push_back(PrefixBlank{});
    if (cutting->digits_apart) {
      parts_.pre_tokenizer.push_back(Split{CharacterClass::kNumber, SplitBehaviour::kIsolated});
    }
    parts_.pre_tokenizer.push_back(Split{Pattern(cutting->pattern, where_), SplitBehaviour::kIsolated});
    std::vector<MergePair> pairs;
    const std::string place = where_ + ": key tokenizer.ggml.merges";
    for (const std::string& merge : from_.merges) pairs.push_back(split_merge(merge, pairs.size(), place));
    BpeOptions options;
    options.byte_level = true;
    options.whole_first = cutting->whole_first;
    parts_.model =
        std::make_unique<const Bpe>(*parts_.vocabulary, merge_rules(*parts_.vocabulary, pairs, place), options);
    parts_.decoding.byte_level = true;
    set_frame(cutting->whole_first, false);
  }

  // Blanks become the mark, one is put before every text.
  void escape_blanks() {
    if (from_.add_space_prefix.value_or(true)) {
      parts_.normalizer.push_back(Prepend{std::string(kMark), true});
      const bool strips_all = from_.remove_extra_whitespaces.value_or(false);
      parts_.decoding.blanks_to_strip = strips_all ? std::numeric_limits<std::size_t>::max() : 1;
    }
    parts_.normalizer.push_back(Replace{Pattern::literal(" ", where_), std::string(kMark)});
    parts_.decoding.replacements.emplace_back(kMark, " ");
  }

  std::vector<bool> tokens_of_types(std::initializer_list<int32_t> types) const {
    std::vector<bool> usable(from_.tokens.size());
    for (int32_t id = 0; id < parts_.vocabulary->size(); ++id) {
      usable[static_cast<std::size_t>(id)] = std::find(types.begin(), types.end(), type_of(id)) != types.end();
    }
    return usable;
  }

  void read_sentence_piece() {
    parts_.kind = "BPE";
    demand_scores();
    for (std::size_t i = 0; i < from_.tokens.size(); ++i) {
      if (from_.tokens[i].size() <= kLongestToken) continue;
      fail("tokens", fmt::format("token {} has {} bytes", i, from_.tokens[i].size()),
           fmt::format("expected at most {}", kLongestToken));
    }
    read_tokens(from_.tokens);
    SpecialIds& ids = parts_.special_ids;
    if (!ids.start) ids.start = checked(1, "bos_token_id");
    if (!ids.end) ids.end = checked(2, "eos_token_id");
    if (!ids.unknown) ids.unknown = checked(0, "unknown_token_id");
    if (from_.model == "llama2.c") {
      // its tokens have blanks where SentencePiece has marks
      parts_.normalizer.push_back(Prepend{" ", true});
      parts_.decoding.blanks_to_strip = 1;
    } else {
      escape_blanks();
    }
    parts_.decoding.byte_fallback = true;
    BpeOptions options;
    options.byte_fallback = true;
    options.unknown = *ids.unknown;
    options.fuse_unknown = true;
    parts_.model = std::make_unique<const Bpe>(
        *parts_.vocabulary,
        merge_rules_from_scores(*parts_.vocabulary, from_.scores, tokens_of_types({kNormal, kUserDefined})), options);
    set_frame(true, false);
  }

  // Here tokens that begin a word have the mark, others go on: the other way round as in BERT's own file.
  std::vector<std::string> word_pieces() const {
    std::vector<std::string> spellings = from_.tokens;
    const auto is_marked = [](const std::string& token) { return token.compare(0, kMark.size(), kMark) == 0; };
    if (std::none_of(spellings.begin(), spellings.end(), is_marked)) return spellings;
    for (std::size_t i = 0; i < spellings.size(); ++i) {
      if (is_marked(spellings[i])) {
        spellings[i].erase(0, kMark.size());
      } else if (type_of(static_cast<int32_t>(i)) == kNormal) {
        spellings[i].insert(0, "##");
      }
    }
    return spellings;
  }

  void read_word_piece() {
    parts_.kind = "WordPiece";
    read_tokens(word_pieces());
    SpecialIds& ids = parts_.special_ids;
    if (!ids.unknown) ids.unknown = checked(100, "unknown_token_id");
    if (!ids.start) ids.start = checked(101, "bos_token_id");
    if (!ids.separator) ids.separator = checked(102, "seperator_token_id");
    ids.classification = ids.start;
    parts_.normalizer = {CleanText{}, SpaceIdeographs{}, UnicodeForm{NormalForm::kNfd}, StripMarks{false}, LowerCase{}};
    parts_.pre_tokenizer = {Split{CharacterClass::kWhiteSpace, SplitBehaviour::kRemoved},
                            Split{CharacterClass::kPunctuation, SplitBehaviour::kIsolated}};
    WordPieceOptions options;
    options.unknown = *ids.unknown;
    parts_.model = std::make_unique<const WordPiece>(*parts_.vocabulary, options);
    parts_.decoding.blank_between = true;
    parts_.decoding.continuation = "##";
    parts_.decoding.clean_up = true;
    set_frame(true, true);
  }

  void read_unigram() {
    parts_.kind = "Unigram";
    demand_scores();
    read_tokens(from_.tokens);
    if (!from_.precompiled_charsmap.empty()) {
      parts_.normalizer.push_back(ApplyCharsmap{std::make_shared<const Charsmap>(
          from_.precompiled_charsmap, where_ + ": key tokenizer.ggml.precompiled_charsmap")});
    }
    if (from_.remove_extra_whitespaces.value_or(false)) parts_.normalizer.push_back(SingleBlanks{});
    escape_blanks();
    UnigramOptions options;
    options.scores.assign(from_.scores.begin(), from_.scores.end());
    options.usable = tokens_of_types({kNormal, kUserDefined, kUnused});
    options.unknown = parts_.special_ids.unknown.value_or(-1);
    options.single_precision = true;
    options.byte_fallback =
        std::find(from_.token_types.begin(), from_.token_types.end(), kByte) != from_.token_types.end();
    parts_.decoding.byte_fallback = options.byte_fallback;
    parts_.model = std::make_unique<const Unigram>(*parts_.vocabulary, std::move(options));
    set_frame(false, true);
  }

  const TokenizerMetadata& from_;
  const std::string& where_;
  PipelineParts parts_;
};

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_metadata(const TokenizerMetadata& metadata, const std::string& where) {
  return pipeline_tokenizer(MetadataReader(metadata, where).read(), where);
}

}  // namespace headlight
