#pragma once
// Tokenizers: text to token ids and back to the exact bytes.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

// Constant once made; threads may share it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // "bytes", "symbols", "pieces": the kind in tokenizer.json
  virtual std::string kind() const = 0;
  // V; ids are [0, V)
  virtual int64_t vocabulary() const = 0;
  // Never adds a start token. Throws Error (usage) on text that no tokens spell.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // The exact bytes of the tokens. Throws LogicError on an id that is not in the vocabulary.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  // The exact bytes of one token, which alone need not be UTF-8. Throws as decode().
  virtual std::string token_text(int32_t id) const = 0;
  // The token that opens every sequence, where the kind has one.
  virtual std::optional<int32_t> start_token() const = 0;
  // Readable, ends in a newline.
  virtual std::string to_json() const = 0;
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

// Errors: bad data naming `where`, the key, what was found and expected; an unknown kind is refused.
std::shared_ptr<const Tokenizer> tokenizer_from_json(const std::string& text, const std::string& where);

// `folder`/tokenizer.json, written whole or not at all. Errors: cannot create, cannot write.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);
// Errors: missing input, or as tokenizer_from_json.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace headlight
