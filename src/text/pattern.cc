#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "text/utf8.h"

namespace headlight {
namespace {

// PCRE2's \s has U+180E besides, its \w lacks marks: what stands inside a set for them and their opposites.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view kWord = R"(\p{L}\p{M}\p{N}\p{Pc})";

[[noreturn]] void refuse(std::string_view expression, const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kBadData, where, fmt::format("the pattern {} has {}", in_quotes(expression), what),
              "expected a pattern that Headlight can run");
}

// Rewrites an expression for PCRE2.
class Translation {
 public:
  Translation(std::string_view expression, const std::string& where) : in_(expression), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = in_[at_];
    if (c == '\\') return escape();
    if (c == '[' && in_set_) refuse(in_, where_, "a set within a set");
    if (in_set_ && in_.substr(at_, 2) == "&&") refuse(in_, where_, "an intersection of sets");
    if (c == '[') {
      in_set_ = true;
      out_ += c;
      ++at_;
      // a bracket right at the beginning stands for itself
      if (at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
      if (at_ < in_.size() && in_[at_] == ']') out_ += in_[at_++];
      return;
    }
    if (c == ']') in_set_ = false;
    out_ += c;
    ++at_;
  }

  void escape() {
    if (at_ + 1 == in_.size()) refuse(in_, where_, "a backslash at its end");
    const char c = in_[at_ + 1];
    if (std::string_view("bBhHRXGKkZ").find(c) != std::string_view::npos) {
      refuse(in_, where_, fmt::format("\\{}", c));
    }
    at_ += 2;
    if (c == 's') return put_set(kSpace, "[");
    if (c == 'w') return put_set(kWord, "[");
    if (c == 'S' && in_set_) return put_set(kNotSpace, "[");
    if (c == 'S') return put_set(kSpace, "[^");
    if (c == 'W' && in_set_) refuse(in_, where_, "\\W in a set");
    if (c == 'W') return put_set(kWord, "[^");
    out_ += '\\';
    out_ += c;
  }

  void put_set(std::string_view members, std::string_view open) {
    if (in_set_) {
      out_ += members;
    } else {
      out_ += open;
      out_ += members;
      out_ += ']';
    }
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  bool in_set_ = false;
};

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 160> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct ContextFree {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct StackFree {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

}  // namespace

struct Pattern::Compiled {
  std::string expression;
  pcre2_code* code = nullptr;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pcre2_code_free(code); }
};

Pattern::Pattern(std::string_view expression, const std::string& where) {
  if (!is_utf8(expression)) refuse(expression, where, "bytes that are not UTF-8");
  const std::string translated = Translation(expression, where).run();
  int problem = 0;
  PCRE2_SIZE offset = 0;
  auto compiled = std::make_shared<Compiled>();
  compiled->expression = expression;
  compiled->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &problem, &offset, nullptr);
  if (compiled->code == nullptr) refuse(expression, where, pcre2_message(problem));
  // where there is no compiler for this machine PCRE2 interprets the expression
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);
  compiled_ = std::move(compiled);
}

Pattern Pattern::literal(std::string_view text, const std::string& where) {
  std::string expression;
  for (char c : text) {
    if (std::string_view("\\^$.[|()?*+{}-]#").find(c) != std::string_view::npos) expression += '\\';
    expression += c;
  }
  return Pattern(expression, where);
}

void Pattern::find(std::string_view text, std::vector<Match>& matches) const {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = valid_length(text, at);
    if (length > 0) find_in_valid(text.substr(at, length), at, matches);
    at += length;
    if (at < text.size()) at += character_at(text, at).size;
  }
}

void Pattern::find_in_valid(std::string_view text, std::size_t offset, std::vector<Match>& matches) const {
  const std::unique_ptr<pcre2_match_data, MatchDataFree> data(
      pcre2_match_data_create_from_pattern(compiled_->code, nullptr));
  std::unique_ptr<pcre2_jit_stack, StackFree> stack;
  std::unique_ptr<pcre2_match_context, ContextFree> context;
  if (!data) throw std::bad_alloc();
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
  for (std::size_t at = 0; at <= text.size();) {
    const int found = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && !stack) {
      stack.reset(pcre2_jit_stack_create(std::size_t{1} << 16, std::size_t{1} << 25, nullptr));
      context.reset(pcre2_match_context_create(nullptr));
      if (!stack || !context) throw std::bad_alloc();
      pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
      continue;
    }
    if (found < 0) {
      throw Error(ErrorKind::kRuntime, fmt::format("pattern {}", in_quotes(compiled_->expression)),
                  fmt::format("byte {} of a text: {}", offset + at, pcre2_message(found)));
    }
    const bool empty = range[0] == range[1];
    // an empty match right after another is none
    const bool repeated =
        empty && !matches.empty() && matches.back().end == offset + range[0] && range[0] == at && at > 0;
    if (!repeated) matches.push_back({offset + range[0], offset + range[1]});
    at = range[1];
    if (empty) at += at < text.size() ? character_at(text, at).size : 1;
  }
}

}  // namespace headlight
