#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "headlight/base/error.h"
#include "text/utf8.h"

namespace headlight {
namespace {

utf8proc_category_t category(int32_t code) { return code == kBroken ? UTF8PROC_CATEGORY_CN : utf8proc_category(code); }

bool between(int32_t code, int32_t first, int32_t last) { return code >= first && code <= last; }

bool is_compatible(NormalForm form) { return form == NormalForm::kNfkc || form == NormalForm::kNfkd; }
bool is_composed(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }

}  // namespace

bool is_white_space(int32_t code) {
  if (code < 0x80) return between(code, 9, 13) || code == ' ';
  return code == 0x85 || code == 0xA0 || code == 0x1680 || between(code, 0x2000, 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_number(int32_t code) {
  if (code < 0x80) return between(code, '0', '9');
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(int32_t code) {
  if (code < 0x80)
    return between(code, 33, 47) || between(code, 58, 64) || between(code, 91, 96) || between(code, 123, 126);
  const utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(int32_t code) {
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(int32_t code) { return code >= 0x80 && category(code) == UTF8PROC_CATEGORY_MN; }

bool is_word(int32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // joiners, and the symbols that count as alphabetic
      return code == 0x200C || code == 0x200D || between(code, 0x24B6, 0x24E9) || between(code, 0x1F130, 0x1F149) ||
             between(code, 0x1F150, 0x1F169) || between(code, 0x1F170, 0x1F189);
  }
}

bool is_control(int32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

bool is_ideograph(int32_t code) {
  return between(code, 0x4E00, 0x9FFF) || between(code, 0x3400, 0x4DBF) || between(code, 0x20000, 0x2A6DF) ||
         between(code, 0x2A700, 0x2B73F) || between(code, 0x2B740, 0x2B81F) || between(code, 0x2B920, 0x2CEAF) ||
         between(code, 0xF900, 0xFAFF) || between(code, 0x2F800, 0x2FA1F);
}

bool breaks_between(int32_t before, int32_t after, int32_t& state) {
  if (before == kBroken || after == kBroken) {
    state = 0;
    return true;
  }
  return utf8proc_grapheme_break_stateful(before, after, &state) != 0;
}

void decompose(int32_t code, NormalForm form, std::vector<int32_t>& out) {
  constexpr utf8proc_ssize_t kLongest = 32;  // the longest decomposition has 18 characters
  utf8proc_int32_t codes[kLongest];
  int bound_class = UTF8PROC_BOUNDCLASS_START;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (is_compatible(form) ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t count = utf8proc_decompose_char(code, codes, kLongest, options, &bound_class);
  if (count < 0 || count > kLongest) throw LogicError("decompose", utf8proc_errmsg(count));
  out.insert(out.end(), codes, codes + count);
}

bool begins_anew(int32_t first) {
  // only marks, and the vowels and final consonants of Hangul, are ever ordered or composed with what is before
  return !between(first, 0x1160, 0x11FF) && !is_mark(first);
}

void order_and_compose(NormalForm form, std::vector<int32_t>& codes) {
  const auto combining = [](int32_t code) { return utf8proc_get_property(code)->combining_class; };
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (combining(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, codes.end(), [&](int32_t code) { return combining(code) == 0; });
    std::stable_sort(begin, end, [&](int32_t a, int32_t b) { return combining(a) < combining(b); });
    begin = end;
  }
  if (!is_composed(form)) return;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const utf8proc_ssize_t left =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), options);
  if (left < 0) throw LogicError("order_and_compose", utf8proc_errmsg(left));
  codes.resize(static_cast<std::size_t>(left));
}

int32_t lower_case(int32_t code) { return code == kBroken ? code : utf8proc_tolower(code); }

}  // namespace headlight
