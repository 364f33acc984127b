#pragma once
// Text from models and files on its way to a terminal: made visible, harmless, and measured.

#include <string>
#include <string_view>
#include <vector>

namespace headlight::cli {

// The bytes as printable UTF-8: what is valid and printable stays; control characters (C0, C1, DEL), characters that
// reorder or hide text, and bytes that are not UTF-8 are written as \n, \t, \x1b, \u202e. A backslash stays itself.
std::string visible(std::string_view bytes);

// The same for a text that comes in pieces, which may cut a character: line ends and tabs stay themselves.
class VisibleStream {
 public:
  std::string add(std::string_view bytes);
  // What was held back of a character that never became whole.
  std::string end();

 private:
  std::string held_;
};

// Whether the bytes are valid UTF-8 (no surrogates, nothing overlong).
bool is_utf8(std::string_view bytes);

// Columns that the text takes in a terminal; escape sequences for colour take none.
int columns(std::string_view text);

// The longest beginning of `text` that takes at most `most` columns, without colour cut open.
std::string cut(std::string_view text, int most);

// Breaks at blanks into lines of at most `width` columns; a longer word stands alone.
std::vector<std::string> wrap(std::string_view text, int width);

}  // namespace headlight::cli
