#include "help.h"

#include <gtest/gtest.h>

#include "command.h"
#include "process.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

std::vector<std::string> words_of(const std::string& name) {
  const std::size_t blank = name.find(' ');
  if (blank == std::string::npos) return {name};
  return {name.substr(0, blank), name.substr(blank + 1)};
}

TEST(Help, OfEverySubcommandExplainsItsOptionsAndEndsWithAnExample) {
  for (const std::unique_ptr<Command>& command : all_commands()) {
    const Description description = command->description();
    std::vector<std::string> words = words_of(description.name);
    words.emplace_back("--help");
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << description.name;
    EXPECT_EQ(outcome.err, "") << description.name;
    EXPECT_NE(outcome.out.find("example"), std::string::npos) << description.name;
    EXPECT_NE(outcome.out.find("headlight " + description.name), std::string::npos) << description.name;
    Options options;
    command->declare(options);
    for (const Option& option : options.all()) {
      EXPECT_NE(outcome.out.find("  " + option.name), std::string::npos) << description.name << ' ' << option.name;
      EXPECT_NE(option.help, "") << description.name << ' ' << option.name;
    }
    for (const Example& example : description.examples) {
      EXPECT_EQ(example.command.rfind("headlight " + description.name, 0), 0U) << example.command;
    }
  }
}

TEST(Help, KeepsToTheWidthOfTheScreen) {
  Screen screen;
  screen.width = 60;
  for (const std::unique_ptr<Command>& command : all_commands()) {
    Options options;
    command->declare(options);
    const Description description = command->description();
    const std::string text = help(description, options, screen);
    const std::string examples = text.substr(text.rfind("\nexample"));
    const std::string above = text.substr(0, text.size() - examples.size());
    for (std::size_t at = 0; at < above.size();) {
      const std::size_t end = std::min(above.find('\n', at), above.size());
      const std::string line = above.substr(at, end - at);
      // names of choices are not broken, nor is the summary
      if (line.rfind("  --", 0) != 0 && line.rfind("headlight ", 0) != 0) {
        EXPECT_LE(columns(line), 60) << description.name << ": " << line;
      }
      at = end + 1;
    }
  }
}

TEST(Help, IsGivenForHelpNameAndForNameHelp) {
  EXPECT_EQ(run({"help", "count"}).out, run({"count", "--help"}).out);
  EXPECT_EQ(run({"help", "lab", "scale"}).out, run({"lab", "scale", "-h"}).out);
}

TEST(Overview, NamesEverySubcommandUnderItsHeading) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(run({"--help"}).out, outcome.out);
  for (const std::unique_ptr<Command>& command : all_commands()) {
    const Description d = command->description();
    EXPECT_NE(outcome.out.find("\n  " + d.name), std::string::npos) << d.name;
    EXPECT_NE(outcome.out.find("\n" + d.group + "\n"), std::string::npos) << d.group;
  }
}

TEST(Overview, OfAFamilyNamesItsMembers) {
  const Outcome outcome = run({"lab"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("  worked"), std::string::npos);
  EXPECT_EQ(outcome.out.find("  train"), std::string::npos);
}

TEST(Version, SaysWhatItRunsOn) {
  Setting portable;
  portable.environment = {"HEADLIGHT_ISA=portable", "HEADLIGHT_THREADS=3"};
  const Outcome outcome = run({"--version"}, portable);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.rfind("headlight " HEADLIGHT_VERSION "\nportable of ", 0), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("3 threads"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace headlight::cli
