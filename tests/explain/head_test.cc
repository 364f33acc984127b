#include "headlight/explain/head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"

namespace headlight {
namespace {

const ModelConfig kConfig{.width = 64, .blocks = 2, .heads = 4};

TEST(ParseHead, ReadsBlockAndHead) {
  EXPECT_EQ(parse_head("1.3", kConfig), (HeadId{1, 3}));
  EXPECT_EQ(to_string(parse_head("0.0", kConfig)), "0.0");
}

TEST(ParseHead, NamesWhatItWants) {
  for (const char* text :
       {"", "1", "1.", ".1", "1.3.2", "a.b", "-1.0", "1.-2", " 1.2", "1.2 ", "99999999999999999999.0"}) {
    expect_error(ErrorKind::kUsage, {"BLOCK.HEAD"}, [&] { parse_head(text, kConfig); });
  }
  expect_error(ErrorKind::kUsage, {"head 2.0", "0.0 to 1.3"}, [] { parse_head("2.0", kConfig); });
  expect_error(ErrorKind::kUsage, {"head 0.4"}, [] { parse_head("0.4", kConfig); });
}

TEST(AllHeads, GoesBlockByBlock) { EXPECT_EQ(to_string(all_heads(kConfig)), "0.0, 0.1, 0.2, 0.3, 1.0, 1.1, 1.2, 1.3"); }

TEST(EstimateOf, GivesMeanAndStandardDeviation) {
  const Estimate estimate = estimate_of({1, 2, 4});
  EXPECT_DOUBLE_EQ(estimate.mean, 7.0 / 3);
  EXPECT_DOUBLE_EQ(estimate.spread, std::sqrt(7.0 / 3));  // (16 + 1 + 25) / 9 / 2
  EXPECT_EQ(estimate.count, 3);
}

TEST(EstimateOf, SaysNothingWhereThereIsNothing) {
  EXPECT_TRUE(std::isnan(estimate_of({}).mean));
  EXPECT_EQ(estimate_of({5}).mean, 5);
  EXPECT_TRUE(std::isnan(estimate_of({5}).spread));
  EXPECT_TRUE(std::isnan(estimate_of({1, std::numeric_limits<double>::quiet_NaN()}).mean));
}

}  // namespace
}  // namespace headlight
