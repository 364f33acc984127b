// The parts: text made harmless, numbers, tables, options.

#include <gtest/gtest.h>

#include <cmath>

#include "findings.h"
#include "headlight/base/error.h"
#include "numbers.h"
#include "parse.h"
#include "progress.h"
#include "table.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

TEST(Visible, KeepsPrintableTextAndEscapesTheRest) {
  EXPECT_EQ(visible("caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82 \\n"), "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82 \\n");
  EXPECT_EQ(visible("a\n\t\r\x1b\x7f"), "a\\n\\t\\r\\x1b\\x7f");
  EXPECT_EQ(visible(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(visible("\xc2\x9b"), "\\x9b") << "a C1 control character";
  EXPECT_EQ(visible("\xe2\x80\xae\xe2\x81\xa6\xef\xbb\xbf"), "\\u202e\\u2066\\ufeff") << "reorders or hides";
  EXPECT_EQ(visible("\xf3\xa0\x81\x81"), "\\U000e0041") << "a tag character";
}

TEST(Visible, WritesBytesThatAreNotUtf8AsBytes) {
  EXPECT_EQ(visible("\xff"), "\\xff");
  EXPECT_EQ(visible("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(visible("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(visible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last";
}

TEST(VisibleStream, GivesTheSameHoweverTheTextIsCut) {
  const std::string text = "caf\xc3\xa9 \xe4\xb8\xad\n\xf0\x9f\x99\x82\xe4\xb8\x1b\xed\xa0\x80\xff\tx\xf0\x9f";
  VisibleStream whole;
  std::string expected = whole.add(text);
  expected += whole.end();
  EXPECT_EQ(expected, "caf\xc3\xa9 \xe4\xb8\xad\n\xf0\x9f\x99\x82\\xe4\\xb8\\x1b\\xed\\xa0\\x80\\xff\tx\\xf0\\x9f");
  for (std::size_t piece : {1U, 2U, 3U, 5U}) {
    VisibleStream stream;
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += piece) out += stream.add(text.substr(at, piece));
    EXPECT_EQ(out + stream.end(), expected) << "in pieces of " << piece;
  }
}

TEST(Columns, CountWideAndCombiningCharactersAndNoColour) {
  EXPECT_EQ(columns("abc"), 3);
  EXPECT_EQ(columns("\x1b[31mabc\x1b[0m"), 3);
  EXPECT_EQ(columns("\xe2\x96\x88"), 1);
  EXPECT_EQ(cut("abcdef", 4), "abcd");
  EXPECT_EQ(cut("\x1b[31mabcdef\x1b[0m", 4), "\x1b[31mabcd\x1b[0m");
}

TEST(Wrap, BreaksAtBlanksOnly) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("extraordinary", 5), (std::vector<std::string>{"extraordinary"}));
  EXPECT_EQ(wrap("", 5), (std::vector<std::string>{""}));
}

TEST(Numbers, ReadWell) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(41308160), "41,308,160");
  EXPECT_EQ(rounded(312), "312");
  EXPECT_EQ(rounded(999.6), "1.00 k");
  EXPECT_EQ(rounded(49152), "49.2 k");
  EXPECT_EQ(rounded(71430, 2), "71 k");
  EXPECT_EQ(byte_size(4096), "4.10 kB");
  EXPECT_EQ(duration(0.04), "0.0 s");
  EXPECT_EQ(duration(21.2), "21 s");
  EXPECT_EQ(duration(59.7), "1 min 0 s");
  EXPECT_EQ(duration(185), "3 min 5 s");
  EXPECT_EQ(duration(7800), "2 h 10 min");
  EXPECT_EQ(percent(1, 8), "12.5 %");
  EXPECT_EQ(signed_number(-0.001, 2), "+0.00");
  EXPECT_EQ(signed_number(-0.012, 2), "-0.01");
}

TEST(Bar, FillsFromEmptyToFull) {
  EXPECT_EQ(bar(0, 10, 10), "[>         ]");
  EXPECT_EQ(bar(5, 10, 10), "[=====>    ]");
  EXPECT_EQ(bar(10, 10, 10), "[==========]");
  EXPECT_EQ(bar(12, 10, 10), "[==========]");
}

TEST(Table, AlignsByWhatIsSeen) {
  Table table({{"name", Align::kLeft}, {"n"}, {"note", Align::kLeft}});
  table.row({"\xc3\xa9t\xc3\xa9", "1", "first"});
  table.row({"x", "1000", ""});
  EXPECT_EQ(table.text({}), "name     n  note\n\xc3\xa9t\xc3\xa9      1  first\nx     1000\n");
}

TEST(Table, WrapsItsLastColumnOrPutsItBelow) {
  Table table({{"name", Align::kLeft}, {"note", Align::kLeft}});
  table.row({"abcdefghij", "one two three four five six seven"});
  Screen screen;
  screen.is_terminal = true;
  screen.width = 40;
  EXPECT_EQ(table.text(screen), "name        note\nabcdefghij  one two three four five six\n            seven\n");
  screen.width = 34;
  EXPECT_EQ(table.text(screen), "name\n      note\nabcdefghij\n      one two three four five six\n      seven\n");
}

TEST(Findings, HoldWithinTheToleranceAndNeverForNaN) {
  Findings findings;
  findings.section("s");
  findings.equal("a", {1.0, 2.0}, {1.05, 2.0}, 0.1);
  findings.at_least("b", 0.7, 0.6);
  EXPECT_TRUE(findings.all_hold());
  findings.at_most("c", std::nan(""), 1);
  EXPECT_FALSE(findings.all_hold());
  EXPECT_NE(findings.text({}).find("DIFFERS"), std::string::npos);
}

TEST(Options, TakeTheirDefaultFromWhatTheySet) {
  int64_t n = 7;
  double x = 0.5;
  bool flag = false;
  Options options;
  options.integer("--n", n, {0, 9}, "a number");
  options.number("--x", x, {0, 1}, "another");
  options.flag("--flag", flag, "a flag");
  EXPECT_EQ(options.find("--n").default_text, "7");
  EXPECT_EQ(options.find("--x").default_text, "0.5");
  parse("test", {"--n=3", "--flag"}, options);
  EXPECT_EQ(n, 3);
  EXPECT_EQ(x, 0.5);
  EXPECT_TRUE(flag);
  EXPECT_TRUE(options.is_given("--n"));
  EXPECT_FALSE(options.is_given("--x"));
}

TEST(Closest, FindsTheNameThatWasMeant) {
  const std::vector<std::string> names{"--width", "--heads", "--head-width"};
  EXPECT_EQ(closest("--widht", names), "--width");
  EXPECT_EQ(closest("--head", names), "--heads");
  EXPECT_EQ(closest("--something-else", names), "");
}

}  // namespace
}  // namespace headlight::cli
