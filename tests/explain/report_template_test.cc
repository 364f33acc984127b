#include "explain/report_template.h"

#include <gtest/gtest.h>

#include "headlight/base/file.h"

namespace headlight {
namespace {

TEST(ReportTemplate, IsTheCommittedPage) {
  const std::string page = read_file(HEADLIGHT_SOURCE_DIR "/apps/web/dist/report.html");
  ASSERT_EQ(report_template().size(), page.size());
  EXPECT_TRUE(report_template() == page) << "the embedded page differs from apps/web/dist/report.html";
}

TEST(ReportTemplate, HasOnePlaceForTheData) {
  const std::string_view placeholder = "__HEADLIGHT_DATA__";
  const std::size_t place = report_template().find(placeholder);
  ASSERT_NE(place, std::string_view::npos);
  EXPECT_EQ(report_template().find(placeholder, place + 1), std::string_view::npos);
}

}  // namespace
}  // namespace headlight
