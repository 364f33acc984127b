#pragma once
// Bytes as JSON carries them.

#include <optional>
#include <string>
#include <string_view>

namespace headlight {

std::string to_base64(std::string_view bytes);
// Nothing when the text is not base64 with its padding.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace headlight
