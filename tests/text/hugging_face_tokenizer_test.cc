#include "headlight/text/hugging_face_tokenizer.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "real_tokenizers.h"
#include "support/expect_error.h"
#include "support/mutate.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

using nlohmann::json;

// A small byte-level file: a, b, ab, [end] as a special token.
json small() {
  return json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 4, "content": "[end]", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": ["a b"]}
  })");
}

json template_of(const std::string& single) {
  return json::parse(R"({"type": "TemplateProcessing", "pair": [], "single": )" + single +
                     R"(, "special_tokens": {"[end]": {"id": "[end]", "ids": [4], "tokens": ["[end]"]}}})");
}

std::shared_ptr<const Tokenizer> made(const json& file) { return hugging_face_tokenizer(file.dump(), "t.json"); }

void refuse(const json& file, std::initializer_list<std::string> words) {
  expect_error(ErrorKind::kBadData, words, [&] { made(file); });
}

// The small file with one value changed, by JSON pointer.
json changed(const std::string& pointer, const json& value) {
  json file = small();
  file[json::json_pointer(pointer)] = value;
  return file;
}

TEST(HuggingFaceTokenizer, EncodesByMergingTheLowestRankFirst) {
  const auto tokenizer = made(small());
  EXPECT_EQ(tokenizer->encode("abba ab"), (std::vector<int32_t>{2, 1, 0, 3, 2}));
  EXPECT_EQ(tokenizer->vocabulary(), 5);
  EXPECT_EQ(tokenizer->kind(), "byte-level BPE");
  EXPECT_EQ(tokenizer->token_text(3), " ");
  EXPECT_EQ(tokenizer->token_text(4), "[end]");
  EXPECT_TRUE(tokenizer->is_special(4));
  EXPECT_FALSE(tokenizer->is_special(3));
  EXPECT_THROW(tokenizer->token_text(5), LogicError);
  EXPECT_THROW(tokenizer->decode(std::vector<int32_t>{-1}), LogicError);
}

TEST(HuggingFaceTokenizer, FindsSpecialTokensOnlyWhenAllowed) {
  const auto tokenizer = made(small());
  EXPECT_EQ(tokenizer->encode("a[end]b", {.special_tokens = true}).ids, (std::vector<int32_t>{0, 4, 1}));
  const Encoding dropped = tokenizer->encode("a[end]b", {.drop_unspelled = true});
  EXPECT_EQ(dropped.ids, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(dropped.dropped, 5);
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{4, 0}, {.skip_special = true}), "a");
}

TEST(HuggingFaceTokenizer, NamesTheBytesThatNoTokenSpells) {
  const auto tokenizer = made(small());
  expect_error(ErrorKind::kUsage, {"text, byte 3", "63"}, [&] { tokenizer->encode("ab cab"); });
  expect_error(ErrorKind::kUsage, {"text, byte 1", "ff"}, [&] { tokenizer->encode("a\xFF"); });
}

TEST(HuggingFaceTokenizer, PutsTheFrameAroundOnceOnly) {
  json file = small();
  file["post_processor"] =
      template_of(R"([{"SpecialToken": {"id": "[end]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}])");
  const auto tokenizer = made(file);
  EXPECT_EQ(tokenizer->frame(), (Frame{{4}, {}}));
  EXPECT_EQ(tokenizer->start_token(), 4);
  EXPECT_EQ(tokenizer->encode("a"), (std::vector<int32_t>{0}));
  const EncodeOptions options{.framed = true, .special_tokens = true, .spans = true};
  const Encoding once = tokenizer->encode("ab", options);
  EXPECT_EQ(once.ids, (std::vector<int32_t>{4, 2}));
  EXPECT_EQ(once.spans, (std::vector<TokenSpan>{{0, 0}, {0, 2}}));
  EXPECT_EQ(tokenizer->encode("[end]ab", options).ids, (std::vector<int32_t>{4, 2}));
  EXPECT_EQ(tokenizer->encode("", options).ids, (std::vector<int32_t>{4}));
}

TEST(HuggingFaceTokenizer, TakesSpecialIdsAndTheFrameFromTheConfiguration) {
  const std::string file = small().dump();
  const auto with = [&](const std::string& config) { return hugging_face_tokenizer(file, "t.json", config, "c.json"); };
  const auto plain =
      with(R"({"bos_token": {"content": "[end]", "lstrip": false}, "eos_token": "[end]", "pad_token": null})");
  EXPECT_EQ(plain->special_ids().start, 4);
  EXPECT_EQ(plain->special_ids().end, 4);
  EXPECT_FALSE(plain->special_ids().padding.has_value());
  EXPECT_EQ(plain->frame(), Frame{});
  EXPECT_EQ(with(R"({"bos_token": "[end]", "add_bos_token": true})")->frame(), (Frame{{4}, {}}));
  EXPECT_EQ(with(R"({"eos_token": "a", "add_eos_token": true})")->frame(), (Frame{{}, {0}}));
  const auto refuse_config = [&](const std::string& config, std::initializer_list<std::string> words) {
    expect_error(ErrorKind::kBadData, words, [&] { with(config); });
  };
  refuse_config(R"({"bos_token": "c"})", {"c.json", "bos_token", "\"c\""});
  refuse_config(R"({"bos_token": 3})", {"bos_token", "3", "string"});
  refuse_config(R"({"add_bos_token": true})", {"add_bos_token", "bos_token as well"});
  refuse_config("{", {"c.json"});
}

TEST(HuggingFaceTokenizer, IsLoadedFromAFolderWithItsConfiguration) {
  TempFolder folder;
  write_file_atomically(folder / "tokenizer.json", small().dump());
  EXPECT_EQ(load_tokenizer(folder.path())->frame(), Frame{});
  write_file_atomically(folder / "tokenizer_config.json", R"({"bos_token": "[end]", "add_bos_token": true})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->frame(), (Frame{{4}, {}}));
  save_tokenizer(*tokenizer, folder / "run");
  EXPECT_EQ(load_tokenizer(folder / "run")->frame(), (Frame{{4}, {}}));
  EXPECT_EQ(load_tokenizer(folder / "run")->to_json(), tokenizer->to_json());
}

TEST(HuggingFaceTokenizer, StripsWhiteSpaceBesideAddedTokens) {
  json file = small();
  json& token = file["added_tokens"][0];
  token["lstrip"] = token["rstrip"] = true;
  EXPECT_EQ(made(file)->encode("a  [end] \n b", {.special_tokens = true, .spans = true}).spans,
            (std::vector<TokenSpan>{{0, 1}, {1, 11}, {11, 12}}));
  token["lstrip"] = token["rstrip"] = false;
  token["single_word"] = true;
  const EncodeOptions options{.special_tokens = true, .drop_unspelled = true};
  EXPECT_EQ(made(file)->encode("[end] a[end]", options).ids, (std::vector<int32_t>{4, 3, 0}));
}

TEST(HuggingFaceTokenizer, RefusesEveryCutAndBearsAnyMutation) {
  const auto use = [](auto bytes) {
    const std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto tokenizer = hugging_face_tokenizer(file, "t.json");
    tokenizer->decode(tokenizer->encode("ab [end]", {.special_tokens = true, .drop_unspelled = true}).ids);
  };
  const std::string whole = small().dump();
  expect_every_cut_refused(whole, use);
  const Mutations mutations{.seed = 5, .bytes = "0123456789[]{}\",:-.e\\", .trials = 5000};
  EXPECT_GT(expect_mutations_borne(whole, mutations, use), mutations.trials / 2);
}

TEST(HuggingFaceTokenizer, NamesWhatIsMissing) {
  for (const char* key : {"vocab", "merges"}) {
    json file = small();
    file["model"].erase(key);
    refuse(file, {"t.json", "model", key, "missing"});
  }
  json file = small();
  file.erase("model");
  refuse(file, {"t.json", "model", "missing"});
  for (const char* key : {"id", "content", "special", "single_word", "lstrip", "rstrip", "normalized"}) {
    file = small();
    file["added_tokens"][0].erase(key);
    refuse(file, {"added_tokens[0]", key, "missing"});
  }
}

TEST(HuggingFaceTokenizer, NamesWhatIsWrongInTheModel) {
  refuse(changed("/model/type", "WordLevel"), {"model", "WordLevel", "not supported", "BPE"});
  refuse(changed("/model/vocab", 3), {"vocab", "object"});
  refuse(changed("/model/vocab", json::object()), {"vocab", "no token"});
  refuse(changed("/model/vocab/ab", 7), {"vocab", "\"ab\"", "7", "below 4"});
  refuse(changed("/model/vocab/ab", -1), {"vocab", "\"ab\"", "-1"});
  refuse(changed("/model/vocab/ab", 1.5), {"vocab", "\"ab\"", "1.5"});
  refuse(changed("/model/vocab/ab", 1e30), {"vocab", "\"ab\""});
  refuse(changed("/model/vocab/ab", 1), {"vocab", "\"ab\"", "\"b\"", "id 1", "once"});
  refuse(changed("/model/merges/0", "a c"), {"merges", "merge 0", "\"c\"", "no token"});
  refuse(changed("/model/merges/0", "b a"), {"merges", "merge 0", "\"ba\"", "no token"});
  refuse(changed("/model/merges/0", "ab"), {"merges", "merge 0", "blank between"});
  refuse(changed("/model/merges/0", "a b c"), {"merges", "merge 0", "\"a b c\""});
  refuse(changed("/model/merges/0", 3), {"merges", "merge 0", "pair"});
  refuse(changed("/model/merges/0", json::array({"a", 1})), {"merges", "merge 0", "pair"});
  refuse(changed("/model/merges", "a b"), {"merges", "list"});
  refuse(changed("/model/unk_token", "?"), {"unk_token", "\"?\""});
  refuse(changed("/model/dropout", 0.1), {"dropout", "0.1"});
  refuse(changed("/model/continuing_subword_prefix", "##"), {"continuing_subword_prefix", "not supported"});
  refuse(changed("/model/end_of_word_suffix", "</w>"), {"end_of_word_suffix", "</w>", "not supported"});
  refuse(changed("/model/byte_fallback", true), {"byte_fallback", "ByteLevel"});
  refuse(changed("/model/new_option", 1), {"model", "new_option", "unknown"});
  refuse(changed("/new_part", 1), {"new_part", "unknown"});
  refuse(changed("/version", "2.0"), {"version", "2.0", "1.0"});
  // one key twice
  std::string twice = small().dump();
  twice.replace(twice.find("\"ab\":2"), 6, "\"a\":2 ");
  expect_error(ErrorKind::kBadData, {"key a", "twice"}, [&] { hugging_face_tokenizer(twice, "t.json"); });
}

TEST(HuggingFaceTokenizer, NamesWhatIsWrongInAddedTokens) {
  refuse(changed("/added_tokens/0/id", 6), {"added_tokens", "[end]", "6", "expected 4", "gap"});
  refuse(changed("/added_tokens/0/id", 2), {"added_tokens", "[end]", "2", "\"ab\""});
  refuse(changed("/added_tokens/0/id", -3), {"added_tokens[0]", "id", "-3"});
  refuse(changed("/added_tokens/0/id", 1e12), {"added_tokens[0]", "id"});
  refuse(changed("/added_tokens/0/id", 4294967300), {"added_tokens[0]", "id", "4294967300"});
  refuse(changed("/added_tokens/0/content", "ab"), {"added_tokens", "\"ab\"", "gives it id 2"});
  refuse(changed("/added_tokens/0/content", ""), {"added_tokens", "empty"});
  json file = small();
  file["added_tokens"].push_back(file["added_tokens"][0]);
  refuse(file, {"added_tokens", "[end]", "as well"});
  refuse(changed("/added_tokens", 3), {"added_tokens", "list"});
}

TEST(HuggingFaceTokenizer, RefusesPartsThatItDoesNotKnow) {
  const auto part = [](const std::string& text) { return json::parse(text); };
  refuse(changed("/normalizer", part(R"({"type": "Nmt"})")), {"normalizer", "Nmt", "not supported", "NFKC"});
  refuse(changed("/normalizer", part(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "X"}]})")),
         {"normalizers[1]", "X"});
  refuse(changed("/normalizer", part(R"({"type": "Sequence", "normalizers": 1})")), {"normalizers", "list"});
  refuse(changed("/normalizer", part(R"({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})")),
         {"normalizer", "pattern", "\"(\""});
  refuse(changed("/normalizer", part(R"({"type": "NFC", "more": 1})")), {"normalizer", "more", "unknown"});
  refuse(changed("/normalizer", part(R"({"type": "Precompiled", "precompiled_charsmap": "AAA="})")),
         {"precompiled_charsmap", "2 bytes"});
  refuse(changed("/normalizer", part(R"({"type": "Precompiled", "precompiled_charsmap": "?"})")), {"base64"});
  refuse(changed("/pre_tokenizer", part(R"({"type": "UnicodeScripts"})")), {"pre_tokenizer", "UnicodeScripts"});
  refuse(
      changed("/pre_tokenizer",
              part(R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "WhitespaceSplit"}]})")),
      {"pretokenizers[1]", "after ByteLevel"});
  refuse(changed("/pre_tokenizer",
                 part(R"({"type": "Split", "pattern": {"Regex": "\\bx"}, "behavior": "Isolated", "invert": false})")),
         {"pre_tokenizer", "pattern", "\\b"});
  refuse(changed("/pre_tokenizer",
                 part(R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Sideways", "invert": false})")),
         {"behavior", "Sideways", "Isolated"});
  refuse(changed("/decoder", part(R"({"type": "CTC"})")), {"decoder", "CTC", "not supported"});
  refuse(changed("/decoder", part(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})")),
         {"Strip before Fuse"});
  refuse(changed("/post_processor", part(R"({"type": "New"})")), {"post_processor", "New"});
  refuse(changed("/post_processor", template_of("[]")), {"single", "no Sequence"});
  refuse(changed("/post_processor",
                 template_of(R"([{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A"}}])")),
         {"special_tokens", "key x", "missing"});
  json far = template_of(R"([{"SpecialToken": {"id": "[end]", "type_id": 0}}, {"Sequence": {"id": "A"}}])");
  far["special_tokens"]["[end]"]["ids"][0] = 99;
  refuse(changed("/post_processor", far), {"99", "below 5"});
  far["special_tokens"]["[end]"]["ids"][0] = -1;
  refuse(changed("/post_processor", far), {"ids", "-1"});
}

TEST(HuggingFaceTokenizer, NamesWhatIsWrongInOtherModels) {
  json file = json::parse(fixture_text("unigram"));
  const auto change = [&](const std::string& pointer, const json& value, std::initializer_list<std::string> words) {
    json wrong = file;
    wrong[json::json_pointer(pointer)] = value;
    refuse(wrong, words);
  };
  change("/model/vocab/5/1", "x", {"vocab", "token 5"});
  change("/model/vocab/5", json::array({"x"}), {"vocab", "token 5"});
  change("/model/vocab/5/0", file["model"]["vocab"][6][0], {"vocab", "5 and 6"});
  change("/model/vocab", json::array(), {"vocab", "no token"});
  change("/model/unk_id", 100000, {"unk_id", "100000"});
  change("/pre_tokenizer/replacement", "", {"replacement"});
  change("/pre_tokenizer/prepend_scheme", "sometimes", {"prepend_scheme", "sometimes", "first"});
  file = json::parse(fixture_text("bert_uncased"));
  change("/model/unk_token", "[NEW]", {"unk_token", "[NEW]"});
  change("/model/max_input_chars_per_word", -1, {"max_input_chars_per_word", "-1"});
  change("/pre_tokenizer", json::parse(R"({"type": "ByteLevel"})"), {"WordPiece", "ByteLevel"});
}

}  // namespace
}  // namespace headlight
