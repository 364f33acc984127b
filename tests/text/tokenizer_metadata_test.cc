#include "headlight/text/tokenizer_metadata.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <random>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/text/hugging_face_tokenizer.h"
#include "support/expect_error.h"
#include "support/mutate.h"

namespace headlight {
namespace {

void refuse(const TokenizerMetadata& metadata, std::initializer_list<std::string> words) {
  expect_error(ErrorKind::kBadData, words, [&] { tokenizer_from_metadata(metadata, "m.gguf"); });
}

TokenizerMetadata gpt2() {
  TokenizerMetadata metadata;
  metadata.model = "gpt2";
  metadata.pre = "gpt-2";
  metadata.tokens = {"a", "b", "ab", "1", "11", "<|end|>", "\xC4\xA0", "[more]"};
  metadata.merges = {"a b", "1 1"};
  metadata.token_types = {1, 1, 1, 1, 1, 3, 1, 4};
  return metadata;
}

TokenizerMetadata llama() {
  TokenizerMetadata metadata;
  metadata.model = "llama";
  metadata.tokens = {"<unk>",
                     "<s>",
                     "</s>",
                     "\xE2\x96\x81",
                     "a",
                     "\xE2\x96\x81"
                     "a",
                     "<0x41>",
                     "<tool>"};
  metadata.scores = {0, 0, 0, -1, -2, -3, 0, 0};
  metadata.token_types = {2, 3, 3, 1, 1, 1, 6, 4};
  return metadata;
}

TEST(TokenizerFromMetadata, CutsByteLevelTextAsItsNameSays) {
  TokenizerMetadata metadata = gpt2();
  EXPECT_EQ(tokenizer_from_metadata(metadata, "m")->encode("ab11"), (std::vector<int32_t>{2, 4}));
  metadata.pre = "smollm";
  EXPECT_EQ(tokenizer_from_metadata(metadata, "m")->encode("ab11"), (std::vector<int32_t>{2, 3, 3}));
  metadata.pre = "qwen2";
  EXPECT_EQ(tokenizer_from_metadata(metadata, "m")->encode("ab11"), (std::vector<int32_t>{2, 3, 3}));
  // user-defined tokens are always found, control tokens only when allowed
  const auto tokenizer = tokenizer_from_metadata(metadata, "m");
  EXPECT_EQ(tokenizer->encode("a[more]b"), (std::vector<int32_t>{0, 7, 1}));
  EXPECT_EQ(tokenizer->encode("a<|end|>", {.special_tokens = true}).ids, (std::vector<int32_t>{0, 5}));
  EXPECT_TRUE(tokenizer->is_special(5));
  EXPECT_FALSE(tokenizer->is_special(7));
  EXPECT_EQ(tokenizer->frame(), Frame{});
  metadata.bos = 5;
  metadata.add_bos = true;
  EXPECT_EQ(tokenizer_from_metadata(metadata, "m")->frame(), (Frame{{5}, {}}));
  metadata.pre = "llama-bpe";
  metadata.add_bos.reset();
  EXPECT_EQ(tokenizer_from_metadata(metadata, "m")->frame(), (Frame{{5}, {}}));
}

TEST(TokenizerFromMetadata, PutsABlankBeforeSentencePieceText) {
  TokenizerMetadata metadata = llama();
  const auto tokenizer = tokenizer_from_metadata(metadata, "m");
  EXPECT_EQ(tokenizer->encode("a a"), (std::vector<int32_t>{5, 5}));
  EXPECT_EQ(tokenizer->encode(" aA"), (std::vector<int32_t>{3, 5, 6}));
  EXPECT_EQ(tokenizer->encode("\xC3\xA9 <s>"), (std::vector<int32_t>{3, 0, 3, 0}));
  EXPECT_EQ(tokenizer->encode("a<tool>a"), (std::vector<int32_t>{5, 7, 4}));
  EXPECT_EQ(tokenizer->encode("<s>a</s>a", {.special_tokens = true}).ids, (std::vector<int32_t>{1, 5, 2, 5}));
  EXPECT_EQ(tokenizer->encode("<s>a", {.framed = true, .special_tokens = true}).ids, (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, 5, 5}), "<s>a a");
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, 5, 5}, {.skip_special = true}), "a a");
  EXPECT_EQ(tokenizer->token_text(5), " a");
  EXPECT_EQ(tokenizer->token_text(6), "A");
  EXPECT_EQ(tokenizer->frame(), (Frame{{1}, {}}));
  metadata.add_space_prefix = false;
  metadata.add_bos = false;
  const auto bare = tokenizer_from_metadata(metadata, "m");
  EXPECT_EQ(bare->encode("a a"), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(bare->frame(), Frame{});
}

// the tokenizer of the files written for the Hugging Face library, against the one that they were written from
void expect_same_tokens(const Tokenizer& from) {
  const HuggingFaceFiles files = from.to_hugging_face();
  const auto back = hugging_face_tokenizer(files.tokenizer, "written", files.config, "written config");
  EXPECT_EQ(back->vocabulary(), from.vocabulary());
  EXPECT_EQ(back->frame(), from.frame());
  EXPECT_EQ(back->special_ids().end, from.special_ids().end);
  for (const std::string text : {"ab abc  a", " b", "a1 22b", "", "the cat's  tail\n\nc"}) {
    for (const bool framed : {false, true}) {
      const EncodeOptions options{.framed = framed, .drop_unspelled = true};
      const Encoding encoded = from.encode(text, options);
      EXPECT_EQ(back->encode(text, options).ids, encoded.ids) << text;
      EXPECT_EQ(back->decode(encoded.ids), from.decode(encoded.ids)) << text;
    }
  }
}

TEST(TokenizerFromMetadata, IsWrittenAsTheHuggingFaceLibraryReadsIt) {
  std::vector<std::string> bytes;
  for (const char c : std::string("abc12'stheilcn")) {
    if (std::find(bytes.begin(), bytes.end(), std::string(1, c)) == bytes.end()) bytes.emplace_back(1, c);
  }
  for (const char* more : {"\u0120", "\u010a", "ab", "abc", "\u0120a", "22", "<s>"}) bytes.emplace_back(more);
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    TokenizerMetadata metadata;
    metadata.model = "gpt2";
    metadata.pre = pre;
    metadata.tokens = bytes;
    metadata.merges = {"a b", "ab c", "\u0120 a", "2 2"};
    metadata.token_types.assign(bytes.size(), 1);
    metadata.token_types.back() = 3;
    metadata.bos = metadata.eos = static_cast<int64_t>(bytes.size()) - 1;
    SCOPED_TRACE(pre);
    expect_same_tokens(*tokenizer_from_metadata(metadata, "made here"));
  }
  const std::string folder = HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/";
  const MappedFile file(folder + "tokenizer.bin");
  expect_same_tokens(*llama2c_tokenizer(file.bytes(), 512, "tokenizer.bin"));
  EXPECT_THROW(byte_tokenizer()->to_hugging_face(), Error);
}

TEST(TokenizerFromMetadata, ReadsWordPiecesWithTheirMarksTurnedRound) {
  TokenizerMetadata metadata;
  metadata.model = "bert";
  metadata.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81un", "able", "\xE2\x96\x81!"};
  metadata.token_types = {3, 2, 3, 3, 1, 1, 1};
  metadata.unknown = 1;
  metadata.bos = 2;
  metadata.separator = 3;
  const auto tokenizer = tokenizer_from_metadata(metadata, "m");
  EXPECT_EQ(tokenizer->encode("UN\xC3\xA0"
                              "ble!"),
            (std::vector<int32_t>{4, 5, 6}));
  EXPECT_EQ(tokenizer->encode("un x", {.framed = true}).ids, (std::vector<int32_t>{2, 4, 1, 3}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{4, 5, 6}), "unable!");
}

TEST(TokenizerFromMetadata, NamesWhatIsWrong) {
  TokenizerMetadata metadata = gpt2();
  metadata.model = "rwkv";
  refuse(metadata, {"m.gguf", "tokenizer.ggml.model", "rwkv", "expected gpt2"});
  metadata = gpt2();
  metadata.pre = "unheard-of";
  refuse(metadata, {"tokenizer.ggml.pre", "unheard-of", "smollm"});
  metadata = gpt2();
  metadata.tokens.clear();
  metadata.token_types.clear();
  refuse(metadata, {"tokenizer.ggml.tokens", "no token"});
  metadata = gpt2();
  metadata.tokens[1] = "a";
  refuse(metadata, {"tokens", "0 and 1"});
  metadata = gpt2();
  metadata.tokens[1] = "\xFF";
  refuse(metadata, {"tokens", "token 1", "UTF-8"});
  metadata = gpt2();
  metadata.merges[1] = "1 2";
  refuse(metadata, {"merges", "merge 1", "\"2\""});
  metadata.merges[1] = "11";
  refuse(metadata, {"merges", "merge 1", "\"11\""});
  metadata = gpt2();
  metadata.token_types.pop_back();
  refuse(metadata, {"token_type", "7 values", "8"});
  metadata = gpt2();
  metadata.token_types[2] = 9;
  refuse(metadata, {"token_type", "token 2", "9"});
  metadata = gpt2();
  metadata.eos = 8;
  refuse(metadata, {"eos_token_id", "8", "below 8"});
  metadata.eos = -1;
  refuse(metadata, {"eos_token_id", "-1"});
  metadata = gpt2();
  metadata.add_bos = true;
  refuse(metadata, {"bos_token_id", "missing"});
  metadata = llama();
  metadata.scores.clear();
  refuse(metadata, {"scores", "no values"});
  metadata = llama();
  metadata.scores[4] = std::nanf("");
  refuse(metadata, {"scores", "token 4"});
  metadata.scores[4] = -std::numeric_limits<float>::infinity();
  refuse(metadata, {"scores", "token 4"});
  metadata = llama();
  metadata.tokens[4] = std::string(2000, 'a');
  refuse(metadata, {"tokens", "token 4", "2000", "1024"});
  metadata = llama();
  metadata.model = "t5";
  metadata.precompiled_charsmap = "abc";
  refuse(metadata, {"precompiled_charsmap", "3 bytes"});
}

// A tokenizer.bin of the smallest vocabulary with these after the bytes.
std::string llama2c_file(const std::vector<std::pair<std::string, float>>& more, int32_t longest = 8) {
  std::string file;
  const auto put = [&](const void* value) { file.append(static_cast<const char*>(value), 4); };
  const auto token = [&](const std::string& text, float score) {
    const auto size = static_cast<int32_t>(text.size());
    put(&score);
    put(&size);
    file += text;
  };
  put(&longest);
  token("<unk>", 0);
  token("\n<s>\n", 0);
  token("\n</s>\n", 0);
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) token(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0);
  for (const auto& [text, score] : more) token(text, score);
  return file;
}

std::shared_ptr<const Tokenizer> read_llama2c(const std::string& file, int64_t vocabulary = 0) {
  return llama2c_tokenizer(std::as_bytes(std::span(file.data(), file.size())), vocabulary, "t.bin");
}

TEST(Llama2cTokenizer, ReadsItsFile) {
  const auto tokenizer = read_llama2c(llama2c_file({{" ", -1}, {"a", -2}, {" a", -3}}));
  EXPECT_EQ(tokenizer->vocabulary(), 262);
  EXPECT_EQ(tokenizer->encode("a \xFF", {.framed = true}).ids, (std::vector<int32_t>{1, 261, 259, 3 + 255}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, 261, 260}, {.skip_special = true}), "aa");
  EXPECT_EQ(tokenizer_from_json(tokenizer->to_json(), "t")->to_json(), tokenizer->to_json());
}

TEST(Llama2cTokenizer, NamesWhatIsWrong) {
  const auto refuse_file = [](const std::string& file, int64_t vocabulary, std::initializer_list<std::string> words) {
    expect_error(ErrorKind::kBadData, words, [&] { read_llama2c(file, vocabulary); });
  };
  const std::string whole = llama2c_file({{" ", -1}});
  for (std::size_t size = 0; size < whole.size(); ++size) refuse_file(whole.substr(0, size), 260, {"t.bin", "byte"});
  refuse_file(whole, 259, {"goes on", "259"});
  refuse_file(whole, 261, {"file ends", "score"});
  refuse_file(llama2c_file({{"", -1}}, 0), 0, {"byte 0", "length 0"});
  refuse_file(llama2c_file({{"a token that is too long", -1}}), 0, {"token 259", "length 24", "0 to 8"});
  std::string huge = whole;
  std::memset(huge.data() + huge.size() - 5, 0x7F, 4);
  refuse_file(huge, 260, {"token 259", "length"});
  std::memset(huge.data() + huge.size() - 5, 0xFF, 4);
  refuse_file(huge, 260, {"token 259", "length -1"});
  refuse_file(std::string(4, '\x01'), 0, {"0 tokens", "259"});
  EXPECT_THROW(read_llama2c(whole, -1), LogicError);
}

TEST(Llama2cTokenizer, BearsAnyMutation) {
  const Mutations mutations{.seed = 6, .bytes = std::string_view("\0\1\2\3\4\x7f\x80\xff", 8), .trials = 5000};
  const int refused = expect_mutations_borne(llama2c_file({{" ", -1}, {"a", -2}}), mutations, [](auto bytes) {
    const auto tokenizer = llama2c_tokenizer(bytes, 261, "t.bin");
    tokenizer->decode(tokenizer->encode("a b"));
  });
  EXPECT_GT(refused, mutations.trials / 2);
}

// What run.c does: the text's characters, or their bytes, then the best pair again and again.
std::vector<int32_t> encoded_slowly(const Tokenizer& tokenizer, const std::vector<float>& scores,
                                    const std::string& text) {
  std::map<std::string, int32_t> ids;
  for (int32_t id = 259; id < tokenizer.vocabulary(); ++id) ids[tokenizer.token_text(id)] = id;
  std::vector<int32_t> out;
  if (!text.empty()) out.push_back(ids.at(" "));
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (text[end] & 0xC0) == 0x80 && end - at < 4) ++end;
    const auto found = ids.find(text.substr(at, end - at));
    if (found != ids.end()) {
      out.push_back(found->second);
    } else {
      for (std::size_t i = at; i < end; ++i) out.push_back(3 + static_cast<unsigned char>(text[i]));
    }
    at = end;
  }
  while (true) {
    float best = -1e10f;
    std::size_t place = out.size();
    int32_t merged = -1;
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
      if (out[i] < 259 || out[i + 1] < 259) continue;
      const auto found = ids.find(tokenizer.token_text(out[i]) + tokenizer.token_text(out[i + 1]));
      if (found == ids.end() || scores[static_cast<std::size_t>(found->second)] <= best) continue;
      best = scores[static_cast<std::size_t>(found->second)];
      place = i;
      merged = found->second;
    }
    if (merged < 0) return out;
    out[place] = merged;
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(Llama2cTokenizer, EncodesStoriesAsItsOwnProgramDoes) {
  const std::filesystem::path path = HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/tokenizer.bin";
  const std::string file = read_file(path);
  const auto tokenizer = read_llama2c(file, 512);
  std::vector<float> scores;
  for (std::size_t at = 4; at < file.size();) {
    float score = 0;
    int32_t size = 0;
    std::memcpy(&score, file.data() + at, 4);
    std::memcpy(&size, file.data() + at + 4, 4);
    scores.push_back(score);
    at += 8 + static_cast<std::size_t>(size);
  }
  std::vector<std::string> texts{"",
                                 " ",
                                 "a",
                                 "Once upon a time, there was a little girl named Lily.",
                                 "  two  blanks ",
                                 "caf\xC3\xA9 \xE2\x82\xAC\n"};
  std::mt19937 random(5);
  const std::string letters = "  aaeeiioourtnslhdmy.,!\"'ABT\n";
  for (int i = 0; i < 300; ++i) {
    std::string text;
    while (random() % 60 != 0) text += letters[random() % letters.size()];
    texts.push_back(text);
  }
  for (const std::string& text : texts) {
    const std::vector<int32_t> ids = tokenizer->encode(text);
    EXPECT_EQ(ids, encoded_slowly(*tokenizer, scores, text)) << text;
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
}

}  // namespace
}  // namespace headlight
