#pragma once
// Options, declared once: name, what it sets, what it may be, help. The declaration feeds parsing, checking and
// --help; the default is what the target holds when the option is declared.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace headlight::cli {

struct Option {
  std::string name;   // "--width", or "MODEL" for an argument by place
  std::string value;  // what help calls its value: "N"; empty: a flag
  std::string help;
  std::string group;         // heading in --help
  std::string default_text;  // empty: none is shown
  bool required = false;
  bool is_given = false;
  // Takes the text after the option (empty for a flag). Throws Error (usage) naming option, text and what it may be.
  std::function<void(const std::string&)> set;

  bool is_argument() const { return name[0] != '-'; }
};

struct IntegerRange {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

class Options {
 public:
  // Options declared from here on stand under this heading in --help.
  void group(const std::string& title) { group_ = title; }

  void flag(const std::string& name, bool& target, const std::string& help, bool value = true);
  // A flag that does something else than setting one value.
  void action(const std::string& name, std::function<void()> act, const std::string& help);
  // `zero` says what 0 stands for, where 0 means "chosen from other options".
  void integer(const std::string& name, int64_t& target, const IntegerRange& range, const std::string& help,
               const std::string& zero = "");
  void optional_integer(const std::string& name, std::optional<int64_t>& target, const IntegerRange& range,
                        const std::string& help);
  void seed(const std::string& name, uint64_t& target, const std::string& help);
  void number(const std::string& name, double& target, const NumberRange& range, const std::string& help);
  void text(const std::string& name, const std::string& value, std::string& target, const std::string& help);
  void argument(const std::string& name, std::string& target, const std::string& help, bool required = true);

  // One of several choices, each by the name that to_string gives it.
  template <class Choice>
  void choice(const std::string& name, Choice& target, const std::vector<Choice>& all, const std::string& help) {
    std::vector<std::string> names;
    for (Choice c : all) names.push_back(to_string(c));
    choice(
        name, names, to_string(target), [&target, all](std::size_t i) { target = all[i]; }, help);
  }
  void choice(const std::string& name, const std::vector<std::string>& names, const std::string& default_name,
              std::function<void(std::size_t)> set, const std::string& help);

  bool is_given(const std::string& name) const { return find(name).is_given; }
  // Names of the options of one group that were given.
  std::vector<std::string> given_in(const std::string& group) const;

  std::vector<Option>& all() { return options_; }
  const std::vector<Option>& all() const { return options_; }
  // Throws LogicError when there is none of this name.
  const Option& find(const std::string& name) const;

 private:
  void add(Option option);

  std::vector<Option> options_;
  std::string group_ = "options";
};

// The name among `names` that is written most like `wrong`, or "" when none comes near.
std::string closest(const std::string& wrong, const std::vector<std::string>& names);

}  // namespace headlight::cli
