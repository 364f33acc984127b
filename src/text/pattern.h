#pragma once
// Regular expressions as tokenizer files write them (Oniguruma's dialect), run by PCRE2.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

struct Match {
  std::size_t begin;
  std::size_t end;
};

// Constant once made; threads may share it.
class Pattern {
 public:
  // Throws Error (bad data) at `where` when the expression is wrong, or uses what means something else, or nothing,
  // in PCRE2: \b \B \h \H \R \X \G, POSIX classes, and sets within sets. \s and \w have Unicode's meaning.
  Pattern(std::string_view expression, const std::string& where);

  // A pattern that matches this text and nothing else.
  static Pattern literal(std::string_view text, const std::string& where);

  // Appends the matches in `text`, from the left, none inside another. Bytes that are not UTF-8 match nothing and
  // are an end of text to what is beside them. Throws Error (run time) when the expression needs more steps or
  // memory than PCRE2 allows.
  void find(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Compiled;
  void find_in_valid(std::string_view text, std::size_t offset, std::vector<Match>& matches) const;

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace headlight
