#include "headlight/explain/report.h"

#include "explain/report_page.h"
#include "explain/report_template.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"

namespace headlight {

std::string fill_page(std::string_view page, std::string_view json) {
  const std::size_t at = page.find(kDataPlaceholder);
  if (at == std::string_view::npos || page.find(kDataPlaceholder, at + 1) != std::string_view::npos) {
    throw LogicError("report", "the page must hold " + std::string(kDataPlaceholder) + " once");
  }
  std::string filled(page.substr(0, at));
  filled += json;
  filled += page.substr(at + kDataPlaceholder.size());
  return filled;
}

void write_report(const std::filesystem::path& path, const Report& report) {
  write_file_atomically(path, fill_page(report_template(), report_json(report)));
}

}  // namespace headlight
