#pragma once
// The tokenizers of Hugging Face folders.

#include <memory>
#include <optional>
#include <string>

#include "headlight/text/tokenizer.h"

namespace headlight {

// `tokenizer` is the text of tokenizer.json (version 1.0), `config` that of tokenizer_config.json, from which the
// special ids come, and add_bos_token and add_eos_token, which overrule the frame. Models: BPE, WordPiece, Unigram.
// What the library `tokenizers` gives for a text is given here, with these differences:
//  - special tokens in the text are found only when asked for, and no start token is added twice;
//  - bytes without a token are an error unless drop_unspelled;
//  - decoding gives exact bytes where that library puts U+FFFD, and a blank in front of the first token is left out
//    also behind a special one;
//  - truncation and padding are left to whoever makes batches;
//  - characters younger than the installed PCRE2 and utf8proc (Debian 12: Unicode 14 and 15) have no properties.
// Errors: bad data naming `where` or `config_where`, the key, what was found and expected. A part, an option or a
// pattern that is not supported is refused by name.
std::shared_ptr<const Tokenizer> hugging_face_tokenizer(const std::string& tokenizer, const std::string& where,
                                                        const std::optional<std::string>& config = std::nullopt,
                                                        const std::string& config_where = "tokenizer_config.json");

}  // namespace headlight
