#include "parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>

#include "headlight/base/error.h"

namespace headlight::cli {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorKind::kUsage, "", what); }

[[noreturn]] void refuse_extra(const std::string& command, const std::string& word, const Options& options) {
  if (word.empty() || word[0] != '-') {
    refuse(fmt::format("'{}' is one argument too many; see headlight {} --help", word, command));
  }
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const Option& o : options.all()) {
    if (!o.is_argument()) names.push_back(o.name);
  }
  const std::string near = closest(name, names);
  refuse(fmt::format(
      "unknown option {}; {}", name,
      near.empty() ? fmt::format("see headlight {} --help", command) : fmt::format("did you mean {}?", near)));
}

// what was said of an option on the command line
struct Said {
  Option* option = nullptr;
  CLI::Option* parsed = nullptr;
  std::string text;
  bool flag = false;
};

void add(CLI::App& app, Said& said) {
  const Option& o = *said.option;
  if (o.value.empty()) {
    said.parsed = app.add_flag(o.name, said.flag);
  } else {
    // the last is taken here, so that a second value gets our own message
    said.parsed = app.add_option(o.name, said.text)->take_last();
  }
}

// What the library would let pass, or say less plainly: a value that is missing, or one that a flag cannot take.
void check_values(const std::vector<std::string>& words, const Options& options) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    for (const Option& o : options.all()) {
      if (o.is_argument()) continue;
      if (o.value.empty() && words[i].rfind(o.name + "=", 0) == 0) refuse(o.name + " takes no value");
      if (o.value.empty() || o.name != words[i]) continue;
      if (i + 1 == words.size()) refuse(fmt::format("{} needs a value {}", o.name, o.value));
      ++i;  // the value, whatever it looks like
      break;
    }
  }
}

}  // namespace

void parse(const std::string& command, const std::vector<std::string>& words, Options& options) {
  CLI::App app;
  app.allow_extras();
  app.set_help_flag("-h,--help");
  std::deque<Said> all;
  for (Option& o : options.all()) {
    all.push_back({&o, nullptr, "", false});
    add(app, all.back());
  }
  check_values(words, options);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    throw HelpWanted{};
  } catch (const CLI::ParseError& problem) {
    refuse(fmt::format("{}; see headlight {} --help", problem.what(), command));
  }
  const std::vector<std::string> extra = app.remaining();
  if (!extra.empty()) refuse_extra(command, extra.front(), options);
  for (Said& said : all) {
    Option& o = *said.option;
    o.is_given = said.parsed->count() > 0;
    if (!o.is_given) {
      if (o.required) refuse(fmt::format("{} is missing; see headlight {} --help", o.name, command));
      continue;
    }
    if (said.parsed->count() > 1 && !o.value.empty()) {
      refuse(fmt::format("{} was given {} times; it takes one value", o.name, said.parsed->count()));
    }
    o.set(said.text);
  }
}

}  // namespace headlight::cli
