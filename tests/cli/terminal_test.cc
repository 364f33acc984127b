// What only a terminal gets: colour, progress, wrapped lines.

#include <gtest/gtest.h>

#include "process.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

bool has_colour(const Outcome& outcome) { return outcome.out.find("\x1b[3") != std::string::npos; }

TEST(Colour, IsForTerminalsWithoutNoColor) {
  EXPECT_TRUE(has_colour(run_on_terminal({"lab", "worked"})));
  EXPECT_FALSE(has_colour(run({"lab", "worked"})));
  Setting plain;
  plain.environment = {"NO_COLOR=1"};
  EXPECT_FALSE(has_colour(run_on_terminal({"lab", "worked"}, 80, plain)));
  plain.environment = {"NO_COLOR="};
  EXPECT_TRUE(has_colour(run_on_terminal({"lab", "worked"}, 80, plain))) << "an empty NO_COLOR says nothing";
  plain.environment = {"TERM=dumb"};
  EXPECT_FALSE(has_colour(run_on_terminal({"lab", "worked"}, 80, plain)));
}

TEST(Colour, OfErrorsIsForTerminalsToo) {
  EXPECT_TRUE(has_colour(run_on_terminal({"coutn"})));
  EXPECT_EQ(run({"coutn"}).err.find('\x1b'), std::string::npos);
}

TEST(Progress, IsOneLineRedrawnAndTakenAway) {
  const Folder folder;
  const Outcome outcome = run_on_terminal({"train", "--task", "repeats", "--context", "33", "--steps", "30", "--width",
                                           "16", "--heads", "2", "--out", folder / "run"},
                                          120);
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_NE(outcome.out.find("\rstep 30/30  [======================]  first copy "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" tok/s  left 0.0 s"), std::string::npos) << outcome.out;
  // cleared before the summary
  EXPECT_NE(outcome.out.find("\r\x1b[Kvalidation"), std::string::npos) << outcome.out;
}

TEST(Progress, OfAnEvaluationCountsItsSequences) {
  const std::vector<std::string> words{"eval", trained() / "text", "--data", trained() / "text.txt", "--context", "8"};
  const Outcome outcome = run_on_terminal(words);
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  const std::size_t end = outcome.out.find("[======================]  left 0.0 s");
  ASSERT_NE(end, std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.rfind("\rsequence ", end), std::string::npos) << outcome.out;
  // taken away before the result
  EXPECT_NE(outcome.out.find("\r\x1b[K" + words[1].substr(0, 8), end), std::string::npos) << outcome.out;
  EXPECT_EQ(run(words).err, "") << "progress is for terminals";
}

TEST(Progress, NeverExceedsANarrowTerminal) {
  const Folder folder;
  const Outcome outcome = run_on_terminal({"train", "--task", "repeats", "--context", "33", "--steps", "30", "--width",
                                           "16", "--heads", "2", "--out", folder / "run"},
                                          40);
  EXPECT_EQ(outcome.code, 0);
  for (std::size_t at = outcome.out.find("\rstep"); at != std::string::npos; at = outcome.out.find("\rstep", at + 1)) {
    const std::size_t end = outcome.out.find("\x1b[K", at);
    EXPECT_LT(columns(outcome.out.substr(at + 1, end - at - 1)), 40);
  }
}

TEST(Terminal, TablesAndProseKeepToItsWidth) {
  for (int width : {60, 80, 120}) {
    const Outcome outcome = run_on_terminal({"heads", trained() / "repeats"}, width);
    ASSERT_EQ(outcome.code, 0) << outcome.out;
    std::string rest =
        outcome.out.substr(outcome.out.rfind("\x1b[K") == std::string::npos ? 0 : outcome.out.rfind("\x1b[K") + 3);
    for (std::size_t at = 0; at < rest.size();) {
      const std::size_t end = std::min(rest.find("\r\n", at), rest.size());
      const std::string line = rest.substr(at, end - at);
      // the figures of a head stand in one line of 69 columns
      EXPECT_LT(columns(line), std::max(width, 76)) << line;
      at = end + 2;
    }
  }
}

TEST(Terminal, GetsGeneratedTextWithoutControlCharacters) {
  const Outcome outcome = run_on_terminal(
      {"generate", trained() / "text", "--prompt", "a\x1b[2J\xff", "--tokens", "60", "--temperature", "5"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.rfind("a\\x1b[2J\\xff", 0), 0U) << outcome.out;
}

}  // namespace
}  // namespace headlight::cli
