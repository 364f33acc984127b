#pragma once
// Properties and normal forms of Unicode characters, from utf8proc. Characters that Unicode assigned after the
// installed library was made count as unassigned.

#include <cstdint>
#include <vector>

namespace headlight {

// All take a code point, kBroken included, which has no property.
bool is_white_space(int32_t code);      // White_Space
bool is_number(int32_t code);           // categories Nd, Nl, No
bool is_punctuation(int32_t code);      // ASCII that is neither letter, digit, blank nor control; category P
bool is_mark(int32_t code);             // Mn, Mc, Me
bool is_nonspacing_mark(int32_t code);  // Mn
bool is_word(int32_t code);             // letters, marks, digits, connecting punctuation, joiners: \w of UTS 18
bool is_control(int32_t code);          // Cc, Cf, Co, but for tab, newline, carriage return
bool is_ideograph(int32_t code);        // the blocks of Chinese characters that BERT sets apart

// Whether a grapheme cluster may end between the two. `state` is 0 at first.
bool breaks_between(int32_t before, int32_t after, int32_t& state);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// Appends the full decomposition of one character, not yet in canonical order.
void decompose(int32_t code, NormalForm form, std::vector<int32_t>& out);
// Whether what comes before a character with this first code point in its decomposition is normalised without it.
bool begins_anew(int32_t first_of_decomposition);
// Puts decomposed characters into canonical order and composes them where the form does; n log n in their number.
void order_and_compose(NormalForm form, std::vector<int32_t>& codes);

// The simple lower-case mapping. (Of all characters only U+0130 has a longer one that needs no context.)
int32_t lower_case(int32_t code);

}  // namespace headlight
