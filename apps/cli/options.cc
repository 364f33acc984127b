#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "headlight/base/error.h"

namespace headlight::cli {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& expected) {
  throw Error(ErrorKind::kUsage, "", fmt::format("{} {} is not {}", name, text.empty() ? "''" : text, expected));
}

template <class Number>
std::optional<Number> whole(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::string wanted(const IntegerRange& range) {
  const IntegerRange all;
  if (range.least == all.least && range.most == all.most) return "a whole number";
  if (range.most == all.most) return fmt::format("a whole number of at least {}", range.least);
  return fmt::format("a whole number from {} to {}", range.least, range.most);
}

std::string wanted(const NumberRange& range) {
  if (std::isinf(range.least) && std::isinf(range.most)) return "a number";
  if (std::isinf(range.most)) return fmt::format("a number of at least {}", range.least);
  return fmt::format("a number from {} to {}", range.least, range.most);
}

int64_t parse_integer(const std::string& name, const std::string& text, const IntegerRange& range) {
  const std::optional<int64_t> value = whole<int64_t>(text);
  if (!value || *value < range.least || *value > range.most) refuse(name, text, wanted(range));
  return *value;
}

double parse_number(const std::string& name, const std::string& text, const NumberRange& range) {
  double value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || !(value >= range.least && value <= range.most)) {
    refuse(name, text, wanted(range));
  }
  return value;
}

// edits (insert, delete, replace, swap of neighbours) that turn one text into the other
int64_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<int64_t>> d(a.size() + 1, std::vector<int64_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int64_t>(i + j);
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

void Options::add(Option option) {
  option.group = option.is_argument() ? "arguments" : group_;
  options_.push_back(std::move(option));
}

void Options::flag(const std::string& name, bool& target, const std::string& help, bool value) {
  action(
      name, [&target, value] { target = value; }, help);
}

void Options::action(const std::string& name, std::function<void()> act, const std::string& help) {
  Option o;
  o.name = name;
  o.help = help;
  o.set = [act = std::move(act)](const std::string&) { act(); };
  add(std::move(o));
}

void Options::integer(const std::string& name, int64_t& target, const IntegerRange& range, const std::string& help,
                      const std::string& zero) {
  Option o;
  o.name = name;
  o.value = "N";
  o.help = help;
  o.default_text = target == 0 && !zero.empty() ? zero : fmt::format("{}", target);
  o.set = [&target, name, range](const std::string& text) { target = parse_integer(name, text, range); };
  add(std::move(o));
}

void Options::optional_integer(const std::string& name, std::optional<int64_t>& target, const IntegerRange& range,
                               const std::string& help) {
  Option o;
  o.name = name;
  o.value = "N";
  o.help = help;
  o.set = [&target, name, range](const std::string& text) { target = parse_integer(name, text, range); };
  add(std::move(o));
}

void Options::seed(const std::string& name, uint64_t& target, const std::string& help) {
  Option o;
  o.name = name;
  o.value = "N";
  o.help = help;
  o.default_text = fmt::format("{}", target);
  o.set = [&target, name](const std::string& text) {
    const std::optional<uint64_t> value = whole<uint64_t>(text);
    if (!value) refuse(name, text, "a whole number from 0 to 2^64 - 1");
    target = *value;
  };
  add(std::move(o));
}

void Options::number(const std::string& name, double& target, const NumberRange& range, const std::string& help) {
  Option o;
  o.name = name;
  o.value = "X";
  o.help = help;
  o.default_text = fmt::format("{}", target);
  o.set = [&target, name, range](const std::string& text) { target = parse_number(name, text, range); };
  add(std::move(o));
}

void Options::text(const std::string& name, const std::string& value, std::string& target, const std::string& help) {
  Option o;
  o.name = name;
  o.value = value;
  o.help = help;
  o.default_text = target;
  o.set = [&target](const std::string& text) { target = text; };
  add(std::move(o));
}

void Options::argument(const std::string& name, std::string& target, const std::string& help, bool required) {
  Option o;
  o.name = name;
  o.value = name;
  o.help = help;
  o.required = required;
  o.set = [&target, name](const std::string& text) {
    if (text.empty()) throw Error(ErrorKind::kUsage, "", name + " is empty");
    target = text;
  };
  add(std::move(o));
}

void Options::choice(const std::string& name, const std::vector<std::string>& names, const std::string& default_name,
                     std::function<void(std::size_t)> set, const std::string& help) {
  Option o;
  o.name = name;
  for (const std::string& each : names) o.value += (o.value.empty() ? "" : "|") + each;
  o.help = help;
  o.default_text = default_name;
  o.set = [name, names, set](const std::string& text) {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) refuse(name, text, fmt::format("one of {}", fmt::join(names, ", ")));
    set(static_cast<std::size_t>(found - names.begin()));
  };
  add(std::move(o));
}

const Option& Options::find(const std::string& name) const {
  for (const Option& o : options_) {
    if (o.name == name) return o;
  }
  throw LogicError("Options", "no option " + name);
}

std::vector<std::string> Options::given_in(const std::string& group) const {
  std::vector<std::string> names;
  for (const Option& o : options_) {
    if (o.group == group && o.is_given) names.push_back(o.name);
  }
  return names;
}

std::string closest(const std::string& wrong, const std::vector<std::string>& names) {
  std::string best;
  int64_t least = static_cast<int64_t>(wrong.size()) / 3 + 2;
  for (const std::string& name : names) {
    const int64_t distance = edit_distance(wrong, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace headlight::cli
