// What a person gets for a mistake: one line and the right exit code.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "process.h"

namespace headlight::cli {
namespace {

struct Mistake {
  std::vector<std::string> words;
  int code;
  std::string says;  // part of the line
};

void expect_refused(const Mistake& mistake, const Setting& setting = {}) {
  const Outcome outcome = run(mistake.words, setting);
  std::string typed;
  for (const std::string& word : mistake.words) typed += word + " ";
  EXPECT_EQ(outcome.code, mistake.code) << typed << outcome.err;
  EXPECT_EQ(outcome.out, "") << typed;
  EXPECT_EQ(outcome.err.rfind("headlight: ", 0), 0U) << typed << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << typed << outcome.err;
  EXPECT_NE(outcome.err.find(mistake.says), std::string::npos) << typed << outcome.err;
}

TEST(Usage, NamesTheWordThatDoesNotFitAndWhatWould) {
  const std::vector<Mistake> mistakes{
      {{"coutn"}, 2, "'coutn' is not a command; did you mean count?"},
      {{"lab", "sclae"}, 2, "did you mean lab scale?"},
      {{"lab", "nothing-like-it"}, 2, "headlight --help lists them"},
      {{"count", "--widht", "3"}, 2, "unknown option --widht; did you mean --width?"},
      {{"count", "--qqqqqqqqqqqq"}, 2, "unknown option --qqqqqqqqqqqq; see headlight count --help"},
      {{"count", "-x"}, 2, "unknown option -x"},
      {{"count", "--width"}, 2, "--width needs a value N"},
      {{"count", "--width", "abc"}, 2, "--width abc is not a whole number from 1 to 16777216"},
      {{"count", "--width", ""}, 2, "--width '' is not a whole number"},
      {{"count", "--width", "-3"}, 2, "--width -3 is not"},
      {{"count", "--width", "3.5"}, 2, "--width 3.5 is not"},
      {{"count", "--width", "99999999999999999999"}, 2, "is not a whole number"},
      {{"count", "--width", "16", "--width", "32"}, 2, "--width was given 2 times"},
      {{"count", "--parallel=yes"}, 2, "--parallel takes no value"},
      {{"count", "--positions", "rotry"}, 2, "is not one of none, learned, sinusoidal, rotary, alibi"},
      {{"count", "--norm-epsilon", "nan"}, 2, "--norm-epsilon nan is not a number from 0 to 1"},
      {{"count", "one", "two"}, 2, "'two' is one argument too many"},
      {{"heads"}, 2, "MODEL is missing"},
      {{"heads", ""}, 2, "MODEL is empty"},
      {{"count", "--width", "100", "--heads", "8"},
       2,
       "--width 100 is not a multiple of --heads 8; use 96 or 104, or set --head-width"},
      {{"count", "--heads", "4", "--key-value-heads", "3"}, 2, "--heads 4 is not a multiple of --key-value-heads 3"},
      {{"count", "--time", "500"}, 2, "--time 500 is above the model's context, 128"},
      {{"train", "--task", "repeats"}, 2, "--out FOLDER is missing"},
      {{"train", "--out", "x"}, 2, "--data FILE or --task repeats|copy is missing"},
      {{"train", "--out", "x", "--task", "repeats", "--data", "y"}, 2, "--data and --task do not go together"},
      {{"train", "--out", "x", "--task", "copy", "--vocabulary", "8"}, 2, "--vocabulary goes with --task repeats"},
      {{"train", "--resume", "x", "--steps", "3"}, 2, "--steps does not go with --resume"},
      {{"train", "--out", "x", "--task", "repeats", "--batch", "4", "--microbatches", "3"}, 2, "--microbatches"},
  };
  for (const Mistake& mistake : mistakes) expect_refused(mistake);
}

TEST(Usage, ControlCharactersInAMistakeDoNotReachTheTerminal) {
  const Outcome outcome = run({"count\x1b[31m\nnext"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  EXPECT_NE(outcome.err.find("'count\\x1b[31m\\nnext' is not a command"), std::string::npos) << outcome.err;
}

TEST(Usage, AWrongEnvironmentIsNamed) {
  Setting isa;
  isa.environment = {"HEADLIGHT_ISA=mmx"};
  expect_refused({{"lab", "worked"}, 2, "HEADLIGHT_ISA"}, isa);
  Setting threads;
  threads.environment = {"HEADLIGHT_THREADS=many"};
  expect_refused({{"lab", "worked"}, 2, "HEADLIGHT_THREADS"}, threads);
}

TEST(BadInput, GetsTheCodeOfItsKind) {
  const Folder folder;
  const std::string empty = folder.file("empty.txt", "");
  const std::string brief = folder.file("brief.txt", "too short a text");
  const std::string broken = folder.file("broken.json", "{\"width\": ");
  const std::string heads = folder.file("heads.json", R"({"width": 100, "heads": 8})");
  const auto train = [&](const std::string& text) {
    return std::vector<std::string>{"train", "--data", text, "--out", folder / "run", "--context", "64"};
  };
  expect_refused({train(folder / "none.txt"), 66, "none.txt"});
  expect_refused({train(empty), 65, "empty.txt"});
  expect_refused({train(brief), 65, "brief.txt"});
  expect_refused({train(folder.path().string()), 65, "is a "});
  expect_refused({{"count", broken}, 65, "broken.json"});
  expect_refused({{"count", heads}, 65, "heads.json"});
  expect_refused({{"count", folder / "none.json"}, 66, "none.json"});
  for (const char* command : {"eval", "generate", "heads", "attend", "report"}) {
    expect_refused({{command, folder / "none"}, 66, "no such file or folder"});
    expect_refused({{command, folder.path().string()}, 66, ""});
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run")) << "a refused training leaves no run";
}

TEST(BadInput, ATruncatedModelIsNamedWithItsPlace) {
  const Folder folder;
  std::filesystem::copy(trained() / "text", folder / "cut", std::filesystem::copy_options::recursive);
  const std::string model = folder / "cut/model.safetensors";
  std::filesystem::resize_file(model, std::filesystem::file_size(model) - 100);
  for (const char* command : {"eval", "generate", "heads"}) {
    expect_refused({{command, folder / "cut"}, 65, "model.safetensors"});
    expect_refused({{command, model}, 65, "model.safetensors"});
  }
}

TEST(BadInput, WeightsThatAreNoNumbersAreCountedAndRefusedOnRequest) {
  const Folder folder;
  std::filesystem::copy(trained() / "text", folder / "nan", std::filesystem::copy_options::recursive);
  std::fstream file(folder / "nan/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  const float wrong[] = {std::nanf(""), HUGE_VALF};
  file.seekp(-static_cast<std::streamoff>(sizeof(wrong)), std::ios::end);
  file.write(reinterpret_cast<const char*>(wrong), sizeof(wrong));
  file.close();
  const std::string says = "2 of ";
  for (const char* command : {"eval", "attend"}) {
    const Outcome outcome = run({command, folder / "nan"});
    EXPECT_NE(outcome.err.find("weights are NaN or infinite, the first of them in "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
    expect_refused({{command, folder / "nan", "--strict"}, 65, says});
  }
  EXPECT_EQ(run({"eval", trained() / "text", "--strict"}).code, 0);
  // what is converted is checked before anything is written
  expect_refused({{"convert", folder / "nan", "--out", folder / "strict", "--strict"}, 65, says});
  EXPECT_FALSE(std::filesystem::exists(folder / "strict"));
  const Outcome converted = run({"convert", folder / "nan", "--out", folder / "copy"});
  EXPECT_EQ(converted.code, 0) << converted.err;
  EXPECT_NE(converted.err.find(says), std::string::npos) << converted.err;
}

TEST(BadInput, TextThatAModelCannotReadIsRefused) {
  const std::string repeats = trained() / "repeats", text = trained() / "text";
  expect_refused({{"attend", repeats, "--text", "hello"}, 2, "hello"});
  expect_refused({{"attend", text, "--text", ""}, 2, "--text is empty"});
  expect_refused({{"attend", text, "--text", std::string(200, 'x')}, 2, "reads at most 24"});
  expect_refused({{"attend", text, "--head", "7.0"}, 2, "7.0"});
  expect_refused({{"ablate", text}, 2, "--heads is missing"});
  expect_refused({{"ablate", text, "--heads", "0.0,0.0"}, 2, "--heads names 0.0 twice"});
  expect_refused({{"ablate", text, "--heads", "0.0,"}, 2, ""});
  expect_refused({{"heads", repeats, "--data", trained() / "text.txt"}, 2, "no token of this model spells"});
  expect_refused({{"heads", text, "--length", "13"}, 2, "13 tokens"});
  expect_refused({{"eval", text, "--task", "repeats"}, 2, "knows other tokens"});
  expect_refused({{"count", text, "--width", "16"}, 2, "--width does not go with MODEL"});
}

TEST(Output, ThatCannotBeWrittenGetsTheCodeOfItsKind) {
  const Folder folder;
  const std::string text = trained() / "text";
  const std::string file = folder.file("file", "");
  expect_refused({{"train", "--task", "repeats", "--out", file + "/run", "--steps", "1"}, 73, "file/run"});
  expect_refused({{"train", "--task", "repeats", "--out", text, "--steps", "1"}, 73, "continue it with --resume"});
  expect_refused({{"report", text, "--out", folder / "none/report.html"}, 73, "none/report.html"});
  Setting full;
  full.stdout_file = "/dev/full";
  expect_refused({{"count"}, 74, "standard output: No space left on device"}, full);
}

TEST(Output, OfAFullDiskLosesNothing) {
  const Folder folder;
  std::filesystem::copy(trained() / "text", folder / "run", std::filesystem::copy_options::recursive);
  const std::string page = folder.file("page.html", "the page before");
  Setting full;
  full.largest_file = 4096;
  expect_refused({{"report", folder / "run", "--out", page}, 74, "page.html"}, full);
  std::string before;
  std::getline(std::ifstream(page), before);
  EXPECT_EQ(before, "the page before");
  const Outcome outcome = run({"train", "--data", trained() / "text.txt", "--out", folder / "new", "--steps", "2",
                               "--width", "16", "--heads", "2", "--context", "24"},
                              full);
  EXPECT_EQ(outcome.code, 74) << outcome.err;
  // what was begun can be gone on with when there is room
  EXPECT_EQ(run({"train", "--resume", folder / "new"}).code, 0);
}

TEST(Output, WhoseReaderHasGoneEndsQuietlyAsABrokenPipe) {
  Setting gone;
  gone.close_reader = true;
  const Outcome outcome = run({"count"}, gone);
  EXPECT_EQ(outcome.code, 128 + 13) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace headlight::cli
