#pragma once
// The report's page as built from apps/web (apps/web/dist/report.html), part of the library.

#include <string_view>

namespace headlight {

// The whole page. It becomes a report when its one placeholder is replaced by the data: apps/web/SCHEMA.md.
std::string_view report_template();

}  // namespace headlight
