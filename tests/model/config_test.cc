#include "headlight/model/config.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

std::string option_name(const std::string& field) {
  std::string name = "--" + field;
  for (char& c : name) c = c == '_' ? '-' : c;
  return name;
}

std::string message_of(const ModelConfig& config) {
  try {
    resolve(config, option_name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(Resolve, FillsWhatWasLeftOpen) {
  const ModelConfig c = resolve({.width = 96, .heads = 4, .feed_forward = FeedForward::kSiluGated});
  EXPECT_EQ(c.key_value_heads, 4);
  EXPECT_EQ(c.head_width, 24);
  EXPECT_EQ(c.value_width, 24);
  EXPECT_EQ(c.rotary_width, 24);
  EXPECT_EQ(c.feed_forward_width, 256);
  EXPECT_EQ(resolve(c), c) << "resolving twice changes nothing";
}

TEST(Resolve, SaysWhatDoesNotFitAndWhatWould) {
  EXPECT_EQ(message_of({.width = 100, .heads = 8}),
            "--width 100: is not a multiple of --heads 8; use 96 or 104, or set --head-width");
  EXPECT_EQ(message_of({.heads = 4, .key_value_heads = 3}), "--heads 4: is not a multiple of --key-value-heads 3");
  EXPECT_EQ(message_of({.heads = 0}), "--heads 0: is not from 1 to 65536");
  EXPECT_EQ(message_of({.blocks = 1000000000}), "--blocks 1000000000: is not from 0 to 10000");
  EXPECT_EQ(message_of({.vocabulary = -1}), "--vocabulary -1: is not from 1 to 16777216");
  EXPECT_EQ(message_of({.head_width = 15}), "--rotary-width 15: is not an even number up to --head-width 15");
  EXPECT_EQ(message_of({.norm_placement = NormPlacement::kPost, .parallel = true}),
            "--parallel true: does not go with --norm-placement post");
}

TEST(ConfigJson, RoundTripsEveryArrangement) {
  for (const Arrangement& arrangement : all_arrangements()) {
    EXPECT_EQ(model_config_from_json(to_json(arrangement.config), "config.json"), resolve(arrangement.config))
        << arrangement.name;
  }
}

std::string json_error(std::string from, std::string to) {
  std::string text = to_json({});
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    model_config_from_json(text, "config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadData);
    return error.what();
  }
  return "no error";
}

TEST(ConfigJson, RefusesWhatItDoesNotKnowOrCannotBe) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"\"heads\": 4", "\"heads\": 0"},
      {"\"heads\": 4", "\"heads\": -4"},
      {"\"heads\": 4", "\"heads\": 4.5"},
      {"\"heads\": 4", "\"heads\": \"4\""},
      {"\"heads\": 4", "\"heads\": 99999999999999999999"},
      {"\"heads\": 4", "\"heads\": 5"},
      {"\"blocks\": 2", "\"blocks\": 1000000000"},
      {"\"causal\": true", "\"causal\": 1"},
      {"\"causal\": true", "\"causal\": true, \"logit_soft_cap\": 30"},
      {"\"norm\": \"layer_norm\"", "\"norm\": \"batch_norm\""},
      {"\"width\": 64,", ""},
      {"\"width\": 64", "\"width\": 64, \"width\": 64"},
      {"headlight", "pythia"},
  };
  for (const auto& [from, to] : wrong) {
    const std::string message = json_error(from, to);
    EXPECT_EQ(message.rfind("config.json", 0), 0u) << from << " -> " << to << ": " << message;
  }
}

TEST(Summary, NamesWhatMatters) {
  EXPECT_EQ(summary({.blocks = 2, .heads = 4, .feed_forward = FeedForward::kNone}),
            "2 blocks x 4 heads, width 64, rotary positions, attention only");
}

}  // namespace
}  // namespace headlight
