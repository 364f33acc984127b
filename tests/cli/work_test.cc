// The subcommands on tiny models: what they print, as JSON and in words.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "process.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(Count, GivesTheSameFiguresForOptionsConfigurationAndModel) {
  const nlohmann::json options = run({"count", "--json", "--width", "16", "--heads", "2", "--context", "24"}).json();
  EXPECT_EQ(run({"count", "--json", trained() / "text"}).json(), options);
  EXPECT_EQ(run({"count", "--json", trained() / "text/config.json"}).json(), options);
  EXPECT_EQ(run({"count", "--json", trained() / "text/model.safetensors"}).json(), options);
  int64_t sum = 0;
  for (const auto& part : options["parts"]) sum += part["parameters"].get<int64_t>();
  EXPECT_EQ(options["parameters"], sum);
  EXPECT_EQ(options["memory_bytes"]["weights"], 4 * sum);
}

TEST(Count, CountsWhatNoMachineCouldHold) {
  const Outcome outcome = run({"count", "--blocks", "200", "--width", "32768", "--heads", "256", "--batch", "4096"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("blocks.0-199.attn"), std::string::npos) << outcome.out;
}

TEST(Labs, WorkedAndScaleGiveTheTextbooksFigures) {
  for (const char* name : {"worked", "scale"}) {
    const Outcome outcome = run({"lab", name, "--json"});
    EXPECT_EQ(outcome.code, 0) << name << outcome.out << outcome.err;
    const nlohmann::json json = outcome.json();
    EXPECT_EQ(json["holds"], true);
    EXPECT_GE(json["findings"].size(), 9U);
    for (const auto& finding : json["findings"]) EXPECT_EQ(finding["holds"], true) << finding;
  }
}

TEST(Generate, TellsTheStoryThatLlama2cTells) {
  // 200 greedy tokens of llama2.c's run.c, which ends its text with a newline
  const std::string folder = HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/";
  const std::string expected = content(folder + "greedy_200.txt");
  ASSERT_GT(expected.size(), 400U);
  const Outcome outcome = run({"generate", folder + "checkpoint_v1.bin", "--tokens", "200", "--temperature", "0"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out + "\n", expected);
}

TEST(Train, WritesARunAndSaysWhatToDoWithIt) {
  const Folder folder;
  const Outcome outcome = run({"train", "--task", "repeats", "--context", "33", "--steps", "4", "--width", "16",
                               "--heads", "2", "--out", folder / "run"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("headlight heads " + folder / "run"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << "progress is for terminals";
  const Outcome again = run({"train", "--resume", folder / "run", "--json"});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.json()["step"], 4);
  EXPECT_TRUE(again.json()["validation"]["classes"][1]["loss"].is_number());
}

TEST(Train, StoppedByCtrlCGoesOnToTheSameBits) {
  const Folder folder;
  const auto words = [&](const std::string& name) {
    return std::vector<std::string>{"train",     "--data",  trained() / "text.txt",
                                    "--steps",   "400",     "--width",
                                    "16",        "--heads", "2",
                                    "--context", "24",      "--batch",
                                    "4",         "--out",   folder / name};
  };
  ASSERT_EQ(run(words("whole")).code, 0);
  Setting interrupted;
  interrupted.meanwhile = [&](int process) {
    // as soon as it trains
    for (int i = 0; i < 6000 && !std::filesystem::exists(folder / "cut/log.jsonl"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(process, SIGINT);
  };
  const Outcome stopped = run(words("cut"), interrupted);
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("continue: headlight train --resume " + folder / "cut"), std::string::npos) << stopped.err;
  EXPECT_EQ(run({"train", "--resume", folder / "cut"}).code, 0);
  EXPECT_EQ(content(folder / "cut/model.safetensors"), content(folder / "whole/model.safetensors"));
}

TEST(Eval, GivesPerplexityAndTheLossOfEachClass) {
  const nlohmann::json text = run({"eval", trained() / "text", "--json"}).json();
  EXPECT_NEAR(text["perplexity"].get<double>(), std::exp(text["loss"].get<double>()), 1e-9);
  EXPECT_TRUE(text["in_context"]["score"]["mean"].is_number());
  const nlohmann::json repeats = run({"eval", trained() / "repeats", "--json"}).json();
  EXPECT_EQ(repeats["classes"][0]["name"], "first copy");
  EXPECT_EQ(repeats["classes"][1]["name"], "second copy");
  // all of the text, not only its end
  const nlohmann::json whole = run({"eval", trained() / "text", "--data", trained() / "text.txt", "--json"}).json();
  EXPECT_GT(whole["targets"].get<int64_t>(), 5 * text["targets"].get<int64_t>());
}

// the mean of all numbers among the losses of eval's per_token, and how many they are
std::pair<double, int64_t> mean_loss(const nlohmann::json& per_token) {
  double sum = 0;
  int64_t count = 0;
  for (const auto& sequence : per_token) {
    EXPECT_EQ(sequence["losses"].size(), sequence["ids"].size());
    EXPECT_EQ(sequence["tokens"].size(), sequence["ids"].size());
    EXPECT_EQ(sequence["losses"][0], nullptr) << "nothing stands before the first token that could predict it";
    for (const auto& loss : sequence["losses"]) {
      if (loss.is_null()) continue;
      sum += loss.get<double>();
      ++count;
    }
  }
  return {sum / static_cast<double>(count), count};
}

TEST(Eval, GivesTheLossOfEachTokenOfAText) {
  const std::string model = HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/checkpoint_v1.bin";
  const std::string text = "Once upon a time, there was a girl.";
  const nlohmann::json ids = run({"attend", model, "--text", text, "--head", "0.0", "--json"}).json()["ids"];
  const nlohmann::json json = run({"eval", model, "--text", text, "--per-token", "--json"}).json();
  ASSERT_EQ(json["per_token"].size(), 1U);
  const auto& sequence = json["per_token"][0];
  EXPECT_EQ(sequence["ids"], ids) << "what the tokenizer gives, with its start token";
  const auto [mean, count] = mean_loss(json["per_token"]);
  EXPECT_EQ(count, json["targets"]);
  EXPECT_EQ(count + 1, static_cast<int64_t>(ids.size())) << "all but the start token";
  EXPECT_NEAR(mean, json["loss"].get<double>(), 1e-12);  // sums of doubles
  std::string spelled;
  for (std::size_t i = 1; i < sequence["tokens"].size(); ++i) spelled += sequence["tokens"][i].get<std::string>();
  EXPECT_EQ(spelled, " " + text) << "this tokenizer puts a blank first";
  EXPECT_FALSE(run({"eval", model, "--text", text, "--json"}).json().contains("per_token"));
  // without a start token the first one has no loss; the losses of windows stand beside the same tokens
  const nlohmann::json bare =
      run({"eval", model, "--text", text, "--per-token", "--start-token", "none", "--json"}).json();
  EXPECT_EQ(bare["per_token"][0]["ids"][0], ids[1]);
  EXPECT_EQ(bare["targets"].get<int64_t>(), count - 1);
}

TEST(Eval, GivesTheLossOfEachTokenInWindows) {
  const std::string text = trained() / "text.txt";
  const nlohmann::json json =
      run({"eval", trained() / "text", "--data", text, "--context", "20", "--per-token", "--json"}).json();
  EXPECT_EQ(json["per_token"].size(), json["sequences"]);
  const auto [mean, count] = mean_loss(json["per_token"]);
  EXPECT_EQ(count, json["targets"]);
  EXPECT_NEAR(mean, json["loss"].get<double>(), 1e-9);  // thousands of doubles in another order
  // the counted tokens of all windows are the text but for its first byte
  std::string spelled;
  for (const auto& window : json["per_token"]) {
    EXPECT_EQ(window["ids"].size(), 21U);
    for (std::size_t i = 0; i < window["ids"].size(); ++i) {
      if (!window["losses"][i].is_null()) spelled += static_cast<char>(window["ids"][i].get<int>());
    }
  }
  EXPECT_EQ(spelled, content(text).substr(1));
  // repeats predict nothing after their last token
  const nlohmann::json repeats = run({"eval", trained() / "repeats", "--per-token", "--json"}).json();
  EXPECT_NEAR(mean_loss(repeats["per_token"]).first, repeats["loss"].get<double>(), 1e-9);
  EXPECT_EQ(mean_loss(repeats["per_token"]).second, repeats["targets"]);
}

TEST(Eval, ShowsAShortTextWholeAndOfALongOneTheWorst) {
  const Outcome brief = run({"eval", trained() / "text", "--text", "a\x1b[2J cat", "--per-token"});
  ASSERT_EQ(brief.code, 0) << brief.err;
  EXPECT_NE(brief.out.find("\\x1b"), std::string::npos) << brief.out;
  EXPECT_EQ(brief.out.find('\x1b'), std::string::npos) << brief.out;
  EXPECT_EQ(brief.out.find("the highest losses"), std::string::npos) << brief.out;
  const std::vector<std::string> words{"eval", trained() / "text", "--data", trained() / "text.txt", "--per-token"};
  const Outcome whole = run(words);
  const std::size_t worst = whole.out.find("the highest losses\n");
  ASSERT_NE(worst, std::string::npos) << whole.out;
  EXPECT_EQ(std::count(whole.out.begin() + static_cast<std::ptrdiff_t>(worst), whole.out.end(), '\n'), 21);
  // the first of them is the highest of all
  std::vector<std::string> json = words;
  json.emplace_back("--json");
  double highest = 0;
  const nlohmann::json all = run(json).json()["per_token"];
  for (const auto& window : all) {
    for (const auto& loss : window["losses"]) highest = std::max(highest, loss.is_null() ? 0 : loss.get<double>());
  }
  std::istringstream first(whole.out.substr(worst + std::string("the highest losses\n").size()));
  int64_t sequence = 0, place = 0, id = 0;
  double loss = 0;
  first >> sequence >> place >> id >> loss;
  EXPECT_NEAR(loss, highest, 5.1e-5) << "four decimals";
}

TEST(Generate, WritesTheExactBytesOfPromptAndTokens) {
  const std::vector<std::string> words{"generate", trained() / "text", "--prompt", "caf\xc3\xa9\x01", "--tokens", "40"};
  const Outcome bytes = run(words);
  ASSERT_EQ(bytes.code, 0) << bytes.err;
  EXPECT_EQ(bytes.out.size(), 6U + 40U);
  EXPECT_EQ(bytes.out.rfind("caf\xc3\xa9\x01", 0), 0U);
  EXPECT_EQ(run(words).out, bytes.out);
  std::vector<std::string> json = words;
  json.emplace_back("--json");
  const nlohmann::json object = run(json).json();
  EXPECT_EQ(object["ids"].size(), 40U);
  EXPECT_EQ(object["ids"][0].get<int>(), static_cast<uint8_t>(bytes.out[6]));
  std::vector<std::string> other = words;
  other.insert(other.end(), {"--seed", "1"});
  EXPECT_NE(run(other).out, bytes.out);
}

TEST(Generate, TakesPromptsThatLookLikeSomethingElse) {
  for (const std::string prompt : {"--tokens", "-1", "[a,b]", "{}", "%%", "a=b", "--", "\"q\"", "'", "\\n"}) {
    const Outcome outcome = run({"generate", trained() / "text", "--prompt=" + prompt, "--tokens", "1"});
    EXPECT_EQ(outcome.code, 0) << prompt << outcome.err;
    EXPECT_EQ(outcome.out.substr(0, prompt.size()), prompt);
    const Outcome apart = run({"generate", trained() / "text", "--prompt", prompt, "--tokens", "1"});
    EXPECT_EQ(apart.code, 0) << prompt << apart.err;
    EXPECT_EQ(apart.out, outcome.out) << prompt;
  }
}

TEST(Generate, SpellsSymbolsBetweenBlanks) {
  const Outcome outcome = run({"generate", trained() / "repeats", "--prompt", "t1 t2", "--tokens", "2"});
  EXPECT_EQ(outcome.out.rfind("t1 t2 ", 0), 0U) << outcome.out;
}

TEST(Heads, PutsScoresAblationsAndChecksSideBySide) {
  const nlohmann::json json = run({"heads", trained() / "repeats", "--json"}).json();
  ASSERT_EQ(json["heads"].size(), 4U);
  for (const auto& head : json["heads"]) {
    for (const char* score : {"previous", "duplicate", "induction", "start", "current"}) {
      const double mean = head["scores"][score]["mean"];
      EXPECT_TRUE(mean >= 0 && mean <= 1) << head;
    }
    EXPECT_TRUE(head["ablations"]["zero"]["change"].is_number());
    EXPECT_TRUE(head["ablations"]["mean"]["change"].is_number());
  }
  EXPECT_EQ(json["knockout"]["points"].size(), 4U);
  EXPECT_GE(json["checks"].size(), 7U);
  for (const auto& check : json["checks"]) EXPECT_EQ(check["passed"], true) << check;
  const Outcome words = run({"heads", trained() / "repeats"});
  EXPECT_EQ(words.code, 0);
  EXPECT_NE(words.out.find("reads as"), std::string::npos);
  EXPECT_NE(words.out.find("same shapes, untrained"), std::string::npos);
}

TEST(Heads, OnATextGivesEntropyAndDistance) {
  const nlohmann::json json = run({"heads", trained() / "text", "--data", trained() / "text.txt", "--json"}).json();
  EXPECT_TRUE(json["heads"][0]["scores"]["entropy"]["mean"].is_number());
  EXPECT_EQ(json["knockout"]["order"], "most harmful alone first");
}

TEST(Ablate, AgreesWithTheTableOfHeads) {
  const nlohmann::json table = run({"heads", trained() / "repeats", "--json"}).json();
  const nlohmann::json zero = run({"ablate", trained() / "repeats", "--heads", "0.1,1.0", "--json"}).json();
  const nlohmann::json mean =
      run({"ablate", trained() / "repeats", "--heads", "0.1", "--mode", "mean", "--json"}).json();
  EXPECT_EQ(zero["effects"][0]["change"], table["heads"][1]["ablations"]["zero"]["change"]);
  EXPECT_EQ(zero["effects"][1]["change"], table["heads"][2]["ablations"]["zero"]["change"]);
  EXPECT_EQ(zero["effects"][2]["heads"], nlohmann::json({"0.1", "1.0"}));
  EXPECT_EQ(mean["effects"][0]["change"], table["heads"][1]["ablations"]["mean"]["change"]);
  EXPECT_EQ(mean["effects"].size(), 1U);
}

TEST(Heads, StoppedByCtrlCGoesOnToTheSameResult) {
  const Folder folder;
  const std::vector<std::string> words{"heads", trained() / "repeats", "--sequences", "3000", "--orders", "2",
                                       "--json"};
  // Ctrl-C comes later each time, until it comes while heads are taken away
  Outcome stopped;
  for (int wait = 40; stopped.err.find("saved in") == std::string::npos; wait += 40) {
    ASSERT_LT(wait, 4000) << stopped.code << stopped.err;
    Setting interrupted;
    interrupted.folder = folder.path();
    interrupted.meanwhile = [&](int process) {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait));
      kill(process, SIGINT);
    };
    stopped = run(words, interrupted);
  }
  EXPECT_EQ(stopped.code, 130);
  const std::size_t name = stopped.err.find("headlight-");
  ASSERT_NE(name, std::string::npos) << stopped.err;
  const std::string file = stopped.err.substr(name, stopped.err.find(';') - name);
  EXPECT_NE(stopped.err.find("continue: headlight heads"), std::string::npos) << stopped.err;
  EXPECT_NE(stopped.err.find("--resume " + file), std::string::npos) << stopped.err;
  ASSERT_TRUE(std::filesystem::exists(folder / file)) << stopped.err;
  std::vector<std::string> again = words;
  again.insert(again.end(), {"--resume", folder / file});
  const Outcome resumed = run(again);
  EXPECT_NE(resumed.err.find("goes on from"), std::string::npos) << resumed.err;
  EXPECT_EQ(resumed.json(), run(words).json());
  EXPECT_FALSE(std::filesystem::exists(folder / file)) << "nothing is left when all is done";
}

TEST(Heads, RefusesToGoOnFromADamagedOrForeignFile) {
  const Folder folder;
  const Outcome damaged =
      run({"heads", trained() / "repeats", "--resume", folder.file("bad.sweep", "{\"format\": 1}")});
  EXPECT_EQ(damaged.code, 65);
  EXPECT_NE(damaged.err.find("bad.sweep"), std::string::npos) << damaged.err;
  const Outcome absent = run({"heads", trained() / "repeats", "--resume", folder / "new.sweep"});
  EXPECT_EQ(absent.code, 0) << absent.err;
  EXPECT_NE(absent.err.find("not there yet: begins anew"), std::string::npos) << absent.err;
}

TEST(Heads, RunsInTheMemoryThatItIsGiven) {
  const nlohmann::json whole = run({"heads", trained() / "repeats", "--json"}).json();
  nlohmann::json small = run({"heads", trained() / "repeats", "--json", "--memory", "1"}).json();
  EXPECT_LE(small["memory_bytes"].get<int64_t>(), 1000 * 1000);
  small["memory_bytes"] = whole["memory_bytes"];
  EXPECT_EQ(small, whole);
}

TEST(Heads, ReadsATextWithTheModelsOwnTokenizer) {
  const std::string model = HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/checkpoint_v1.bin";
  const std::string text = "Once upon a time, there was a girl. Once upon a time, there was a cat.";
  const nlohmann::json framed = run({"heads", model, "--text", text, "--json", "--orders", "2"}).json();
  EXPECT_EQ(framed["start_token"], 1);
  EXPECT_EQ(framed["ids"][0][0], 1);
  EXPECT_EQ(framed["heads"].size(), 40U);
  const nlohmann::json bare =
      run({"ablate", model, "--heads", "0.0", "--text", text, "--start-token", "none", "--json"}).json();
  EXPECT_EQ(bare["start_token"], nullptr);
  EXPECT_EQ(bare["ids"][0].size() + 1, framed["ids"][0].size());
  const nlohmann::json other =
      run({"attend", model, "--text", text, "--start-token", "2", "--head", "0.0", "--json"}).json();
  EXPECT_EQ(other["ids"][0], 2);
  const Outcome unknown = run({"attend", model, "--text", text, "--start-token", "two tokens"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--start-token two tokens"), std::string::npos) << unknown.err;
}

TEST(Heads, ReadsAFileInWindowsOfTokens) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "Tom and Lily saw a big red ball near the old tree number " + std::to_string(i) + ". ";
  const std::string file = folder.file("text.txt", text);
  const std::string model = HEADLIGHT_SOURCE_DIR "/tests/fixtures/tinystories_260k/checkpoint_v1.bin";
  const nlohmann::json json =
      run({"ablate", model, "--heads", "0.0", "--data", file, "--context", "32", "--sequences", "5", "--json"}).json();
  ASSERT_EQ(json["ids"].size(), 5U) << json;
  for (const auto& window : json["ids"]) {
    EXPECT_EQ(window.size(), 32U);
    EXPECT_EQ(window[0], 1) << "the start token before each window";
  }
}

TEST(Attend, GivesRowsThatSumToOneAndNeverLookAhead) {
  const nlohmann::json json = run({"attend", trained() / "text", "--text", "the cat\x01\xff", "--json"}).json();
  ASSERT_EQ(json["ids"].size(), 9U);
  EXPECT_EQ(json["tokens"][0], "t");
  EXPECT_EQ(json["tokens"][8], nlohmann::json({255})) << "a byte that is no text is a list";
  for (const auto& head : json["heads"]) {
    for (std::size_t i = 0; i < 9; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 9; ++j) {
        sum += head["weights"][i][j].get<double>();
        if (j > i) {
          EXPECT_EQ(head["weights"][i][j], 0);
        }
      }
      EXPECT_NEAR(sum, 1, 9.0 / 255) << "rows of bytes, each to 1/255 of the largest";
    }
  }
}

TEST(Attend, ShowsHostileTokensHarmlessly) {
  const Outcome outcome =
      run_on_terminal({"attend", trained() / "text", "--text", "a\x1b]0;x\x07\xe2\x80\xae", "--head", "0.0"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("\\x1b"), std::string::npos);
  EXPECT_EQ(outcome.out.find("\x1b]0"), std::string::npos);
  EXPECT_EQ(outcome.out.find('\x07'), std::string::npos);
}

TEST(Report, AndMapsAreWrittenAsOnePageEach) {
  const Folder folder;
  const Outcome report = run({"report", trained() / "repeats", "--out", folder / "r.html", "--json"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_EQ(report.json()["bytes"].get<double>(), static_cast<double>(std::filesystem::file_size(folder / "r.html")));
  const std::string page = content(folder / "r.html");
  EXPECT_NE(page.find("headlight-report-1"), std::string::npos);
  EXPECT_NE(page.find("second copy"), std::string::npos) << "the curves of the run's log";
  const std::string text = "</script><b>'x";
  const Outcome maps = run({"attend", trained() / "text", "--text", text, "--out", folder / "m.html"});
  EXPECT_EQ(maps.code, 0) << maps.err;
  EXPECT_EQ(content(folder / "m.html").find("</script><b>"), std::string::npos) << "text is never markup";
}

}  // namespace
}  // namespace headlight::cli
