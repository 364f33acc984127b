#pragma once
// SentencePiece's normaliser in the form that tokenizer files carry it: a double array over byte strings, with the
// texts they become.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

class Charsmap {
 public:
  // `bytes`: u32 size of the double array in bytes, the array (u32 each), then texts that end in a zero byte.
  // Throws Error (bad data) at `where` when the sizes or offsets do not fit.
  Charsmap(std::string_view bytes, const std::string& where);

  struct Entry {
    std::size_t size;  // bytes of the prefix
    std::string_view becomes;
  };
  // The shortest and the longest prefix of `text` that the map knows, and what they become.
  std::optional<Entry> shortest(std::string_view text) const { return find(text, true); }
  std::optional<Entry> longest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Entry> find(std::string_view text, bool first) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace headlight
