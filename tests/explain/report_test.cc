#include "headlight/explain/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "explain/models.h"
#include "explain/page_text.h"
#include "explain/report_page.h"
#include "headlight/base/file.h"
#include "headlight/explain/identities.h"
#include "model/arrangements.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

using Json = nlohmann::json;

// what a hostile text may hold; the last is half a character
const std::vector<std::string> kHostile{"</script><script>alert(1)</script>",
                                        "<!--",
                                        "]]>",
                                        "\"\\\b\f\n\r\t",
                                        std::string("\0\x01\x7f", 3),
                                        "\xe2\x80\xa8\xe2\x80\xa9",
                                        "\xff\xfe\x80",
                                        "\xed\xa0\x80",
                                        "__HEADLIGHT_DATA__",
                                        "&lt;img src=x onerror=alert(1)&gt;",
                                        "",
                                        "plain \xf0\x9f\x98\x80",
                                        "\xe2\x82"};

std::string hostile_token(int32_t id) { return kHostile[static_cast<std::size_t>(id) % kHostile.size()]; }

// A report of the model with every part that there is.
Report full_report(const Model& model, const RepeatedBatch& repeated, const std::vector<int32_t>& text) {
  const LossMetric metric = second_copy_loss(repeated);
  Report report;
  report.title = "Heads of a model";
  report.created = "2025-01-31T12:00:00Z";
  report.version = "0.1.0";
  report.run = {.model = "runs/</script>",
                .data = "file \xff.txt",
                .seed = 7,
                .isa = "avx2",
                .threads = 2,
                .command = "headlight <x>"};
  report.checks = check_identities(model, repeated.batch);
  report.config = model.config();
  report.training = TrainingLog{
      .steps = {0, 50, 100},
      .series = {{.name = "second copy", .unit = "nats", .definition = "mean", .values = {4.1, std::nan(""), 0.1}},
                 {.name = "1.0 induction",
                  .unit = "",
                  .score = HeadScore::kInduction,
                  .head = {1, 0},
                  .values = {0, 0.5, 1}}}};
  report.formation = find_formation(*report.training);
  report.scores = head_scores(model, repeated);
  report.untrained = untrained_scores(model.config(), repeated);
  for (const Ablation& ablation : {zero_ablation(), mean_ablation(model, repeated.batch)}) {
    report.ablations.push_back({ablation, sweep(model, repeated.batch, each_head(model.config(), ablation), metric)});
    report.checks.push_back(report.ablations.back().effects.same_as_naive);
  }
  report.readings = read_heads(report.scores, &*report.untrained, &report.ablations.front().effects);
  report.top_writes = top_writes(model, repeated.batch, 3);
  report.knockout =
      knock_out(model, repeated.batch, ranked(report.scores, HeadScore::kInduction), metric, {.orders = 20});
  report.texts = {
      {.name = "<b>text", .ids = text, .start_token = true, .maps = attention_maps(model, text, {.top = 2})}};
  report.cost = {.time = 31, .training_tokens = 1000, .training_note = "note"};
  report.token_text = hostile_token;
  return report;
}

struct ReportJson : testing::Test {
  Model model = CircuitModel::make();
  RepeatedBatch repeated = CircuitModel::repeated();
  std::vector<int32_t> text{15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Report report = full_report(model, repeated, text);
};

std::vector<uint8_t> from_base64(const std::string& text) {
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    if (c == '=') break;
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> count));
  }
  return bytes;
}

TEST_F(ReportJson, KeepsHostileTextAsData) {
  const std::string json = report_json(report);
  EXPECT_EQ(json.find('<'), std::string::npos);
  EXPECT_TRUE(is_utf8(json));
  const Json parsed = Json::parse(json);
  const Json& tokens = parsed["texts"][0]["tokens"];
  ASSERT_EQ(tokens.size(), text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string wanted = hostile_token(text[i]);
    std::string found;
    if (tokens[i].is_string()) {
      found = tokens[i].get<std::string>();
    } else {
      EXPECT_FALSE(is_utf8(wanted)) << "token " << i;
      for (const Json& byte : tokens[i]) found += static_cast<char>(byte.get<uint8_t>());
    }
    EXPECT_EQ(found, wanted) << "token " << i;
  }
  EXPECT_EQ(parsed["run"]["model"], "runs/</script>");
  EXPECT_EQ(parsed["run"]["data"], "file \\xff.txt");
  EXPECT_EQ(parsed["texts"][0]["name"], "<b>text");
}

TEST_F(ReportJson, HoldsWhatWasMeasured) {
  const Json json = Json::parse(report_json(report));
  EXPECT_EQ(json["format"], "headlight-report-1");
  EXPECT_EQ(json["run"]["seed"], 7);
  EXPECT_EQ(json["checks"].size(), 8u);
  for (const Json& check : json["checks"]) EXPECT_TRUE(check["passed"].get<bool>()) << check;
  EXPECT_EQ(json["checks"][7]["text"], "same bits");
  EXPECT_EQ(json["model"]["blocks"], 2);
  EXPECT_EQ(json["model"]["config"]["positions"], "learned");
  EXPECT_FALSE(json["model"]["config"].contains("width"));

  EXPECT_TRUE(json["training"]["series"][0]["values"][1].is_null()) << "not measured";
  EXPECT_EQ(json["training"]["series"][0]["group"], "loss");
  EXPECT_EQ(json["training"]["series"][1]["kind"], "induction");
  EXPECT_EQ(json["training"]["formation"]["to"], report.formation->heads.to);

  const Json& heads = json["heads"];
  EXPECT_EQ(heads["scores"].size(), 5u);
  EXPECT_NEAR(heads["scores"][0]["baseline"]["mean"].get<double>(), 0.1, 0.1);
  EXPECT_EQ(heads["ablations"][0]["id"], "zero");
  EXPECT_EQ(heads["ablations"][1]["id"], "mean");
  ASSERT_EQ(heads["rows"].size(), 4u);
  const Json& row = heads["rows"][2];
  EXPECT_EQ(row["block"], 1);
  EXPECT_EQ(row["role"], "induction");
  EXPECT_EQ(row["reads_as"], "induction; alone it is covered by 1.1");
  EXPECT_EQ(row["disagrees"], true);
  EXPECT_EQ(row["scores"]["induction"]["mean"], report.scores.at({1, 0}, HeadScore::kInduction).mean);
  EXPECT_EQ(row["ablations"]["zero"]["mean"], report.ablations[0].effects.effects[2].change);
  EXPECT_EQ(row["top_writes"].size(), 3u);
  EXPECT_TRUE(heads["rows"][1]["role"].is_null());
  EXPECT_NE(heads["condition"].get<std::string>().find("2 x 15 tokens, seed 5"), std::string::npos);

  EXPECT_EQ(json["knockout"]["ordered"][1]["heads"], (Json{"1.0", "1.1"}));
  EXPECT_EQ(json["knockout"]["random"][1]["count"], 2);
  EXPECT_NE(json["knockout"]["spread"].get<std::string>().find("20 random orders"), std::string::npos);

  EXPECT_EQ(json["cost"]["total"]["parameters"], model.parameters().count());
  EXPECT_EQ(json["cost"]["training"]["tokens"], 1000);
}

TEST_F(ReportJson, GivesEverySettingOfAnyModelAsOneValue) {
  // the page refuses nested settings
  const Json json = Json::parse(report_json(report));
  EXPECT_GT(json["model"]["config"].size(), 8u);
  for (const auto& [key, value] : json["model"]["config"].items()) {
    EXPECT_TRUE(value.is_primitive()) << key << " is " << value;
  }
}

TEST_F(ReportJson, EncodesMapsAsThePageReadsThem) {
  const Json json = Json::parse(report_json(report));
  const Json& maps = json["texts"][0]["maps"];
  ASSERT_EQ(maps.size(), 4u);
  for (std::size_t m = 0; m < 4; ++m) {
    EXPECT_EQ(maps[m]["encoding"], "u8-square");
    EXPECT_EQ(from_base64(maps[m]["data"]), report.texts[0].maps[m].bytes);
    const std::vector<uint8_t> floats = from_base64(maps[m]["row_max"]);
    ASSERT_EQ(floats.size(), 4 * text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      const uint32_t bits =
          floats[4 * i] | floats[4 * i + 1] << 8 | floats[4 * i + 2] << 16 | uint32_t{floats[4 * i + 3]} << 24;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      EXPECT_EQ(value, report.texts[0].maps[m].row_max[i]);
    }
    EXPECT_EQ(maps[m]["writes"]["ids"].size(), 2 * text.size());
  }
}

TEST_F(ReportJson, GivesTheTextsOfTokensThatOnlyMapsName) {
  report.texts[0].ids = {15, 3, 1, 4, 3, 1};
  report.texts[0].maps = attention_maps(model, report.texts[0].ids, {.top = 3});
  std::set<int32_t> named;
  for (const AttentionMap& map : report.texts[0].maps) {
    for (const TokenWeight& write : map.writes) named.insert(write.token);
  }
  const Json json = Json::parse(report_json(report));
  ASSERT_TRUE(json.contains("vocabulary"));
  for (int32_t id = 0; id < 16; ++id) {
    const bool in_text = id == 15 || id == 3 || id == 1 || id == 4;
    EXPECT_EQ(json["vocabulary"].contains(std::to_string(id)), named.count(id) > 0 && !in_text) << "token " << id;
  }
  EXPECT_EQ(json["vocabulary"]["0"], hostile_token(0)) << "ties go to the lower token";
}

TEST_F(ReportJson, WritesWhatCouldNotBeComputedAsNull) {
  report.scores.values[0].mean = std::numeric_limits<double>::quiet_NaN();
  report.ablations[0].effects.effects[0].change = std::numeric_limits<double>::infinity();
  report.checks[0].error = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(report_json(report));
  EXPECT_TRUE(json["heads"]["rows"][0]["scores"]["previous"]["mean"].is_null());
  EXPECT_TRUE(json["heads"]["rows"][0]["ablations"]["zero"]["mean"].is_null());
  EXPECT_TRUE(json["checks"][0]["value"].is_null());
}

TEST_F(ReportJson, LeavesOutWhatIsNotThere) {
  report.training.reset();
  report.formation.reset();
  report.untrained.reset();
  report.ablations.clear();
  report.top_writes.clear();
  report.knockout.reset();
  report.texts.clear();
  report.cost.training_tokens.reset();
  report.run.seed = ~uint64_t{0};
  const Json json = Json::parse(report_json(report));
  for (const char* key : {"training", "knockout", "vocabulary"}) EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_TRUE(json["heads"]["scores"][0]["baseline"].is_null());
  EXPECT_TRUE(json["heads"]["rows"][0]["ablations"].empty());
  EXPECT_TRUE(json["heads"]["rows"][0]["ablations"].is_object());
  EXPECT_FALSE(json["heads"]["rows"][0].contains("top_writes"));
  EXPECT_TRUE(json["texts"].is_array());
  EXPECT_EQ(json["run"]["seed"], "18446744073709551615") << "more than a number of JavaScript holds";
}

TEST_F(ReportJson, RefusesPartsThatDoNotFit) {
  Report other = report;
  other.readings.pop_back();
  EXPECT_THROW(report_json(other), LogicError);
  other = report;
  other.texts[0].ids.pop_back();
  EXPECT_THROW(report_json(other), LogicError);
  other = report;
  other.token_text = nullptr;
  EXPECT_THROW(report_json(other), LogicError);
  other = report;
  other.ablations[0].effects.effects.pop_back();
  EXPECT_THROW(report_json(other), LogicError);
}

TEST_F(ReportJson, GoesIntoThePageWhole) {
  const TempFolder folder;
  write_report(folder / "report.html", report);
  const std::string page = read_file(folder / "report.html");
  const std::string json = report_json(report);
  const std::size_t at = page.find(json);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.compare(at + json.size(), 9, "</script>"), 0) << "the data ends where its element ends";
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  expect_error(ErrorKind::kCannotCreate, {"nowhere"},
               [&] { write_report(folder / "nowhere" / "report.html", report); });
}

TEST(WriteReport, KeepsTwoBlocksOfEightHeadsOn512TokensUnder10MB) {
  const ModelConfig config{.vocabulary = 64, .context = 512, .width = 64, .blocks = 2, .heads = 8};
  const Model model = random_model(config);
  Report report;
  report.config = config;
  report.scores = head_scores(model, RepeatOptions{.lengths = {8}, .sequences = 2});
  report.readings = read_heads(report.scores, nullptr, nullptr);
  report.texts = {{.name = "text", .ids = random_tokens(512, 64, 1)}};
  report.texts[0].maps = attention_maps(model, report.texts[0].ids, {.top = 3});
  report.cost.time = 512;
  report.token_text = [](int32_t id) { return "t" + std::to_string(id); };
  const TempFolder folder;
  write_report(folder / "report.html", report);
  EXPECT_LT(std::filesystem::file_size(folder / "report.html"), 10'000'000u);
}

TEST(FillPage, WantsThePlaceholderOnce) {
  EXPECT_EQ(fill_page("a __HEADLIGHT_DATA__ b", "{}"), "a {} b");
  EXPECT_THROW(fill_page("a b", "{}"), LogicError);
  EXPECT_THROW(fill_page("__HEADLIGHT_DATA__ __HEADLIGHT_DATA__", "{}"), LogicError);
}

TEST(Base64, GivesTheVectorsOfItsStandard) {
  const auto encoded = [](const std::string& text) {
    return base64({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  const std::vector<std::pair<std::string, std::string>> vectors{{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"}};
  for (const auto& [text, wanted] : vectors) EXPECT_EQ(encoded(text), wanted);
  EXPECT_EQ(encoded("\xfb\xef\xff"), "++//");
}

TEST(ShownAsUtf8, EscapesTheBytesThatAreNone) {
  EXPECT_EQ(shown_as_utf8("a\xffz"), "a\\xffz");
  EXPECT_EQ(shown_as_utf8("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(shown_as_utf8("\xe2\x82\xac\xf0\x9f\x98\x80"), "\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(shown_as_utf8("\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xf5"),
            "\\xc0\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xf5")
      << "too long, surrogates, beyond the last character";
}

// Every text of up to three bytes from a set that holds the borders: UTF-8 by our reading is what the JSON library
// writes.
TEST(IsUtf8, AgreesWithTheJsonLibrary) {
  const std::string bytes(
      "\x00\x41\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff", 25);
  const auto library_accepts = [](const std::string& text) {
    try {
      Json(text).dump();
      return true;
    } catch (const Json::type_error&) {
      return false;
    }
  };
  const auto expect_same = [&](const std::string& text) {
    EXPECT_EQ(is_utf8(text), library_accepts(text)) << shown_as_utf8(text);
    EXPECT_TRUE(is_utf8(shown_as_utf8(text)));
  };
  for (char a : bytes) {
    expect_same({a});
    for (char b : bytes) {
      expect_same({a, b});
      for (char c : bytes) {
        expect_same({a, b, c});
        expect_same({a, b, c, '\x80'});
      }
    }
  }
}

}  // namespace
}  // namespace headlight
