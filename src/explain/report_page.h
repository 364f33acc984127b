#pragma once
// The page that the report's data is put into.

#include <string>
#include <string_view>

namespace headlight {

inline constexpr std::string_view kDataPlaceholder = "__HEADLIGHT_DATA__";

// The page with `json` in place of the placeholder. Throws LogicError unless the page holds it exactly once.
std::string fill_page(std::string_view page, std::string_view json);

}  // namespace headlight
