#include "findings.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "table.h"

namespace headlight::cli {
namespace {

const char* sign(Finding::Relation relation) {
  switch (relation) {
    case Finding::Relation::kEqual:
      return "";
    case Finding::Relation::kAtLeast:
      return ">= ";
    case Finding::Relation::kAtMost:
      return "<= ";
  }
  return "";
}

std::string figures(const std::vector<double>& values, int decimals) {
  std::string text;
  for (double x : values) {
    // a deviation near 0 says more as a power of ten
    const bool tiny = x != 0 && std::abs(x) < 0.5 * std::pow(10.0, -decimals);
    text += (text.empty() ? "" : " ") + (tiny ? fmt::format("{:.0e}", x) : fmt::format("{:.{}f}", x, decimals));
  }
  return text;
}

}  // namespace

bool Finding::holds() const {
  if (measured.size() != expected.size()) return false;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double above = measured[i] - expected[i];
    // written so that NaN does not hold
    const bool fits = relation == Relation::kEqual     ? std::abs(above) <= tolerance
                      : relation == Relation::kAtLeast ? above >= 0
                                                       : above <= 0;
    if (!fits) return false;
  }
  return true;
}

void Findings::add(Finding finding) {
  finding.section = section_;
  all_.push_back(std::move(finding));
}

void Findings::equal(std::string what, std::vector<double> measured, std::vector<double> expected, double tolerance,
                     int decimals) {
  add({"", std::move(what), std::move(measured), std::move(expected), Finding::Relation::kEqual, tolerance, decimals});
}

void Findings::at_least(std::string what, double measured, double bound, int decimals) {
  add({"", std::move(what), {measured}, {bound}, Finding::Relation::kAtLeast, 0, decimals});
}

void Findings::at_most(std::string what, double measured, double bound, int decimals) {
  add({"", std::move(what), {measured}, {bound}, Finding::Relation::kAtMost, 0, decimals});
}

bool Findings::all_hold() const {
  for (const Finding& f : all_) {
    if (!f.holds()) return false;
  }
  return true;
}

std::string Findings::text(const Screen& screen) const {
  Table table({{"", Align::kLeft}, {"measured"}, {"expected"}, {"", Align::kLeft}});
  std::string section;
  std::size_t held = 0;
  for (const Finding& f : all_) {
    if (f.section != section) table.heading(f.section);
    section = f.section;
    held += f.holds();
    table.row({f.what, figures(f.measured, f.decimals), sign(f.relation) + figures(f.expected, f.decimals),
               f.holds() ? Cell("ok", Paint::kGreen) : Cell("DIFFERS", Paint::kRed)});
  }
  const std::string closing = fmt::format("{} of {} as expected", held, all_.size());
  return table.text(screen) + "\n" + screen.paint(all_hold() ? Paint::kGreen : Paint::kRed, closing) + "\n";
}

nlohmann::ordered_json Findings::json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& f : all_) {
    nlohmann::ordered_json one{{"section", f.section}, {"what", f.what}, {"measured", f.measured}};
    switch (f.relation) {
      case Finding::Relation::kEqual:
        one["expected"] = f.expected;
        one["tolerance"] = f.tolerance;
        break;
      case Finding::Relation::kAtLeast:
        one["at_least"] = f.expected;
        break;
      case Finding::Relation::kAtMost:
        one["at_most"] = f.expected;
        break;
    }
    one["holds"] = f.holds();
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace headlight::cli
