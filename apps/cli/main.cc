// headlight: picks the subcommand, and turns what it throws into one line and an exit code.

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <new>

#include "command.h"
#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "headlight/kernels/isa.h"
#include "help.h"
#include "parse.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

using Commands = std::vector<std::unique_ptr<Command>>;
using Words = std::vector<std::string>;

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRuntime:
      return 1;
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kBadData:
      return 65;
    case ErrorKind::kMissingInput:
      return 66;
    case ErrorKind::kCannotCreate:
      return 73;
    case ErrorKind::kCannotWrite:
      return 74;
    case ErrorKind::kInterrupted:
      return 130;
  }
  return 1;
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

// whether commands of two words begin with this one
bool is_family(const Commands& commands, const std::string& word) {
  return std::any_of(commands.begin(), commands.end(), [&](const std::unique_ptr<Command>& c) {
    return c->description().name.rfind(word + " ", 0) == 0;
  });
}

[[noreturn]] void refuse_command(const Commands& commands, const std::string& name) {
  Words names;
  for (const std::unique_ptr<Command>& c : commands) names.push_back(c->description().name);
  const std::string near = closest(name, names);
  const std::string advice = near.empty() ? "headlight --help lists them" : "did you mean " + near + "?";
  throw Error(ErrorKind::kUsage, "", fmt::format("'{}' is not a command; {}", name, advice));
}

// "headlight attend runs/a --text 'the cat'"
std::string typed(const Words& words) {
  std::string line = "headlight";
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789-_./,=:+@%") == std::string::npos;
    std::string quoted;
    for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += plain ? " " + word : " '" + quoted + "'";
  }
  return line;
}

int run_command(Command& command, const Words& words, Console& console) {
  const Description description = command.description();
  Options options;
  command.declare(options);
  options.group("output");
  bool json = false;
  options.flag("--json", json, "one JSON object on standard output");
  try {
    parse(description.name, words, options);
  } catch (const HelpWanted&) {
    console.print(help(description, options, console.out()));
    return 0;
  }
  console.set_json(json);
  return command.run(options, console);
}

int dispatch(Words words, Console& console) {
  const Commands commands = all_commands();
  // "headlight help train" is "headlight train --help"
  if (words.size() > 1 && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words.empty() || is_help(words[0])) {
    console.print(overview(commands, console.out()));
    return 0;
  }
  if (words[0] == "--version") {
    console.print(fmt::format("headlight {}\n{} of {}, {} threads\n", HEADLIGHT_VERSION, active_isa(),
                              fmt::join(supported_isas(), ", "), default_pool().threads()));
    return 0;
  }
  std::string name = words[0];
  std::size_t used = 1;
  if (is_family(commands, name)) {
    if (words.size() == 1 || is_help(words[1])) {
      console.print(family_overview(commands, name, console.out()));
      return 0;
    }
    name += " " + words[1];
    used = 2;
  }
  for (const std::unique_ptr<Command>& command : commands) {
    if (command->description().name != name) continue;
    return run_command(*command, Words(words.begin() + static_cast<std::ptrdiff_t>(used), words.end()), console);
  }
  refuse_command(commands, name);
}

void say(Console& console, const std::string& problem) {
  console.note(console.err().paint(Paint::kRed, "headlight:") + " " + visible(problem));
}

// An option is followed by what is wrong with it: "--width 100 is not ..."; anything else by a colon.
std::string sentence(const Error& error) {
  if (error.where().rfind("--", 0) != 0) return error.what();
  return error.where() + " " + error.found() + (error.expected().empty() ? "" : "; " + error.expected());
}

// Every way out of a subcommand.
int guarded(const Words& words, Console& console) {
  try {
    console.set_command_line(typed(words));
    const int code = dispatch(words, console);
    console.flush();
    return code;
  } catch (const Error& error) {
    say(console, sentence(error));
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    say(console, "not enough memory");
  } catch (const std::exception& error) {
    say(console, fmt::format("internal error: {}; please report it", error.what()));
  }
  return 1;
}

}  // namespace
}  // namespace headlight::cli

int main(int argc, char** argv) {
  // a reader that goes away must not end the process in the middle of a save
  signal(SIGPIPE, SIG_IGN);
  headlight::cli::Console console;
  return headlight::cli::guarded(std::vector<std::string>(argv + 1, argv + std::max(argc, 1)), console);
}
