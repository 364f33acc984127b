#pragma once
// Tokenizers: text to token ids and back. Those of real models are made by hugging_face_tokenizer.h,
// tokenizer_metadata.h (GGUF, llama2.c).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

// What a token stands for: bytes [begin, end) of the text.
struct TokenSpan {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const TokenSpan&) const = default;
};

// The ids that a model expects around every text: a start token, or "[CLS]" and "[SEP]".
struct Frame {
  std::vector<int32_t> before{};
  std::vector<int32_t> after{};

  bool operator==(const Frame&) const = default;
};

// Ids that a model's files give a meaning to.
struct SpecialIds {
  std::optional<int32_t> start{}, end{}, unknown{}, padding{}, classification{}, separator{}, mask{};

  bool operator==(const SpecialIds&) const = default;
};

struct EncodeOptions {
  // Puts the frame around the text. A side that the text itself brings along is not added again.
  bool framed = false;
  // Special tokens written in the text, as "<|endoftext|>", become their ids; otherwise they are text like any other.
  bool special_tokens = false;
  // Leaves out bytes that no token spells, and counts them; otherwise they are an error. The reference libraries
  // leave them out and say nothing.
  bool drop_unspelled = false;
  // Gives each token's place in the text.
  bool spans = false;
};

struct Encoding {
  std::vector<int32_t> ids;
  std::vector<TokenSpan> spans;  // one per id when asked for, in order of begin; empty ones for the frame
  int64_t dropped = 0;           // bytes left out
};

struct DecodeOptions {
  bool skip_special = false;
};

// A tokenizer as the Hugging Face library reads it.
struct HuggingFaceFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json; empty: none
};

// Constant once made; threads may share it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // "bytes", "symbols", "pieces"; of real models "byte-level BPE", "BPE", "WordPiece", "Unigram"
  virtual std::string kind() const = 0;
  // V; ids are [0, V)
  virtual int64_t vocabulary() const = 0;

  // The ids of the text alone, as with no option set: never a start token. Errors as below.
  std::vector<int32_t> encode(std::string_view text) const { return encode(text, EncodeOptions{}).ids; }
  // Any bytes are text. Those that are not UTF-8 are kept byte for byte by kinds that have a token for each byte
  // (bytes, byte-level BPE, those with byte fallback); others read U+FFFD in place of each broken sequence.
  // Throws Error (usage) on text that no tokens spell, with what and where.
  Encoding encode(std::string_view text, const EncodeOptions& options) const;

  // The text of the tokens: the exact bytes of token_text one after the other, but that kinds which put a blank
  // before every text leave it out in front of the first token that is not special. Where encoding loses nothing
  // (no normaliser but that blank, all bytes spelled), decode(encode(text)) == text.
  // Throws LogicError on an id that is not in the vocabulary.
  std::string decode(std::span<const int32_t> ids) const { return decode(ids, DecodeOptions{}); }
  virtual std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const = 0;
  // The exact bytes that the token adds to a text it is inside of; alone they need not be UTF-8. Throws as decode().
  virtual std::string token_text(int32_t id) const = 0;

  // A token that stands for no text. Throws as decode().
  virtual bool is_special(int32_t id) const = 0;
  virtual SpecialIds special_ids() const { return {}; }
  virtual Frame frame() const { return {}; }
  // The token that opens every sequence: the first before the text in the frame, where there is one.
  std::optional<int32_t> start_token() const;

  // All that tokenizer_from_json needs to make it again; ends in a newline.
  virtual std::string to_json() const = 0;
  // The same for other programs: what was read, where that is what they read, else written from byte-level BPE or
  // SentencePiece's BPE. Throws Error (usage) when this kind has no such form.
  virtual HuggingFaceFiles to_hugging_face() const;

 protected:
  // encode() without the frame.
  virtual Encoding encode_bare(std::string_view text, const EncodeOptions& options) const = 0;
  // Throws LogicError.
  void check_id(int32_t id) const;
};

// 256 tokens, one per byte; no start token.
std::shared_ptr<const Tokenizer> byte_tokenizer();

// One token per name; text is the names between blanks: "[start] t3 t60". `start` is the position of the
// start token in `names`. Throws LogicError when there is no name, when a name is empty, holds a blank or occurs
// twice, or when `start` is none of them.
std::shared_ptr<const Tokenizer> symbol_tokenizer(std::vector<std::string> names, std::optional<int32_t> start);

// One token per piece of text, blanks included: " pump", "4", "\n". Text is cut from the left, the longest piece that
// fits first; no start token. Throws LogicError when there is no piece, when one is empty, not UTF-8, or there twice.
std::shared_ptr<const Tokenizer> piece_tokenizer(std::vector<std::string> pieces);

// The same for a model with more rows than the tokenizer has tokens, as many models are padded to a round number: ids
// from tokenizer->vocabulary() on are special and stand for no text. Throws LogicError when there are fewer.
std::shared_ptr<const Tokenizer> padded_tokenizer(std::shared_ptr<const Tokenizer> tokenizer, int64_t vocabulary);

// What to_json wrote, or a Hugging Face tokenizer.json. Errors: bad data naming `where`, the key, what was found and
// expected; an unknown kind is refused.
std::shared_ptr<const Tokenizer> tokenizer_from_json(const std::string& text, const std::string& where);

// `folder`/tokenizer.json, written whole or not at all. Errors: cannot create, cannot write.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);
// `folder`/tokenizer.json; a Hugging Face one together with tokenizer_config.json where that is there.
// Errors: missing input, or as tokenizer_from_json.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace headlight
