#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

using nlohmann::json;

void expect_bad(std::initializer_list<std::string> words, const std::string& text) {
  SCOPED_TRACE(text.substr(0, 60));
  expect_error(ErrorKind::kBadData, words, [&] { parse_json(text, "config.json"); });
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const json value = parse_json(R"( {"a":[1,-2,3.5,true,null,"\u00e9"],"b":{}} )", "config.json");
  EXPECT_EQ(value["a"].dump(), R"([1,-2,3.5,true,null,"é"])");
  EXPECT_TRUE(value["b"].is_object() && value["b"].empty());
}

TEST(ParseJson, RefusesWhatIsNotJsonWithThePosition) {
  expect_bad({"config.json", "byte 0"}, "");
  expect_bad({"config.json", "byte 1"}, "[x]");
  expect_bad({"config.json: byte 7"}, R"({"a":1,})");
  expect_bad({"byte 3"}, "{} {}");
  expect_bad({"byte 5", "zero byte"}, std::string("{\"a\":\0 1}", 9));
  expect_bad({"zero byte"}, std::string("{}\0garbage", 10));
  expect_bad({"expected JSON"}, R"({"a":NaN})");
  expect_bad({"expected JSON"}, R"({"a":1e999})");
  expect_bad({"expected JSON"}, R"({"a":01})");
}

TEST(ParseJson, RefusesTextThatIsNotUtf8) {
  expect_bad({"UTF-8"}, "{\"a\":\"\xff\"}");
  expect_bad({"UTF-8"}, "{\"\xc3\":1}");
  expect_bad({"UTF-8"}, "{\"a\":\"\xed\xa0\x80\"}");   // a surrogate
  expect_bad({"UTF-8"}, "{\"a\":\"\xc0\xaf\"}");       // overlong
  expect_bad({"expected JSON"}, R"({"a":"\ud800"})");  // half a pair
}

TEST(ParseJson, RefusesAKeyThatOccursTwice) {
  expect_bad({"key heads occurs twice"}, R"({"heads":1,"width":2,"heads":3})");
  expect_bad({"key heads occurs twice"}, R"({"heads":1,"he\u0061ds":3})");
  expect_bad({"key b occurs twice"}, R"({"a":[{"b":1,"b":1}]})");
  EXPECT_NO_THROW(parse_json(R"({"a":{"b":1},"b":{"b":1}})", "config.json"));
}

TEST(ParseJson, RefusesDeepNestingWithoutDeepRecursion) {
  expect_bad({"nested deeper than 64"}, std::string(10'000'000, '['));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_bad({"nested deeper than 64"}, objects);
  EXPECT_NO_THROW(parse_json(std::string(64, '[') + std::string(64, ']'), "config.json"));
  expect_bad({"nested deeper than 64"}, std::string(65, '[') + std::string(65, ']'));
}

TEST(ParseJsonFile, NamesTheFile) {
  const TempFolder folder;
  const auto path = folder / "config.json";
  std::ofstream(path) << "{";
  expect_error(ErrorKind::kBadData, {path.string(), "byte 1"}, [&] { parse_json_file(path); });
  expect_error(ErrorKind::kMissingInput, {"absent.json"}, [&] { parse_json_file(folder / "absent.json"); });
}

void expect_refused(std::initializer_list<std::string> words, const std::string& text,
                    const std::function<void(JsonReader&)>& use) {
  SCOPED_TRACE(text);
  const json value = parse_json(text, "config.json");
  expect_error(ErrorKind::kBadData, words, [&] {
    JsonReader read(value, "config.json");
    use(read);
  });
}

TEST(JsonReader, GivesTheValuesOfItsKeys) {
  const json value = parse_json(R"({"n":3,"x":0.5,"one":1,"on":true,"name":"a","kind":"rotary","list":[1,2],
    "inner":{"n":-4},"nothing":null})",
                                "config.json");
  JsonReader read(value, "config.json");
  EXPECT_EQ(read.whole("n", 1), 3);
  EXPECT_EQ(read.number("x", 0, 1), 0.5);
  EXPECT_EQ(read.number("one", 0, 1), 1.0);
  EXPECT_TRUE(read.boolean("on"));
  EXPECT_EQ(read.text("name"), "a");
  EXPECT_EQ(read.choice("kind", {"none", "learned", "rotary"}), 2u);
  EXPECT_EQ(read.wholes("list", 0), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(read.object("inner").whole("n", -4), -4);
  EXPECT_FALSE(read.has("nothing"));
  EXPECT_FALSE(read.has("absent"));
  EXPECT_NO_THROW(read.finish());
}

TEST(JsonReader, RefusesWhatIsNoWholeNumberInItsRange) {
  const auto heads = [](JsonReader& read) { read.whole("heads", 1); };
  const auto few = [](JsonReader& read) { read.whole("heads", 1, 64); };
  expect_refused({"config.json: key heads: found -3; expected a whole number >= 1"}, R"({"heads":-3})", heads);
  expect_refused({"found 0;"}, R"({"heads":0})", heads);
  expect_refused({"found 2.0;"}, R"({"heads":2.0})", heads);
  expect_refused({"found \"2\";"}, R"({"heads":"2"})", heads);
  expect_refused({"found true;"}, R"({"heads":true})", heads);
  expect_refused({"found null;"}, R"({"heads":null})", heads);
  expect_refused({"found a list;"}, R"({"heads":[2]})", heads);
  expect_refused({"found 9223372036854775808;"}, R"({"heads":9223372036854775808})", heads);
  expect_refused({"expected a whole number >= 1"}, R"({"heads":1e30})", heads);
  expect_refused({"expected a whole number >= 1"}, R"({"heads":123456789012345678901234567890})", heads);
  expect_refused({"found 65; expected a whole number from 1 to 64"}, R"({"heads":65})", few);
  expect_refused({"config.json: key heads is missing"}, R"({})", heads);
}

TEST(JsonReader, RefusesValuesOfAnotherType) {
  const auto number = [](JsonReader& read) { read.number("x", 0, 1); };
  expect_refused({"key x: found 1.5; expected a number from 0 to 1"}, R"({"x":1.5})", number);
  expect_refused({"found \"0.5\";"}, R"({"x":"0.5"})", number);
  expect_refused({"found 1; expected true or false"}, R"({"x":1})", [](JsonReader& read) { read.boolean("x"); });
  expect_refused({"expected a string"}, R"({"x":1})", [](JsonReader& read) { read.text("x"); });
  expect_refused({"expected a list"}, R"({"x":1})", [](JsonReader& read) { read.wholes("x", 0); });
  expect_refused({"key x[1]: found -1;"}, R"({"x":[1,-1]})", [](JsonReader& read) { read.wholes("x", 0); });
  expect_refused({"key x: found 1; expected an object"}, R"({"x":1})", [](JsonReader& read) { read.object("x"); });
  expect_refused({R"(found "silu"; expected one of "relu", "gelu")"}, R"({"x":"silu"})", [](JsonReader& read) {
    read.choice("x", {"relu", "gelu"});
  });
}

TEST(JsonReader, RefusesUnknownKeysByName) {
  expect_refused({"key soft_cap is unknown"}, R"({"heads":1,"soft_cap":30})", [](JsonReader& read) {
    read.whole("heads", 1);
    read.finish();
  });
}

TEST(InQuotes, LeavesNothingThatATerminalCouldTripOver) {
  EXPECT_EQ(in_quotes("a\x1b[31m\"\n"), R"("a\u001b[31m\"\n")");
  EXPECT_EQ(in_quotes("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_LT(in_quotes(std::string(1'000'000, 'a')).size(), 200u);
}

TEST(PrettyJson, KeepsTheOrderAndReadsBack) {
  nlohmann::ordered_json value;
  value["width"] = 64;
  value["heads"] = 4;
  EXPECT_EQ(pretty_json(value), "{\n  \"width\": 64,\n  \"heads\": 4\n}\n");
  EXPECT_THROW(pretty_json("\xff"), LogicError);
}

}  // namespace
}  // namespace headlight
