#pragma once
// Bytes on their way into a page: any bytes must stay data there.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headlight {

// Bytes of the UTF-8 character (RFC 3629) that begins at `at`; 0 when none does.
std::size_t utf8_length(std::string_view text, std::size_t at);
bool is_utf8(std::string_view text);

// The text with every byte that is not part of a UTF-8 character as \xHH.
std::string shown_as_utf8(std::string_view text);

// JSON with `<` as \u003c, which can stand inside a script element: `<` occurs only in strings.
std::string without_tags(std::string_view json);

// Base64 of RFC 4648, section 4, with padding.
std::string base64(std::span<const uint8_t> bytes);

}  // namespace headlight
