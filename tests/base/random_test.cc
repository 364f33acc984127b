#include "headlight/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace headlight {
namespace {

using Block = std::array<uint32_t, 4>;

// Philox 4x32-10 written from the paper's definition, apart from the library's.
Block philox(Block counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t left = uint64_t{0xD2511F53} * counter[0];
    const uint64_t right = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(right),
               static_cast<uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(left)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

TEST(RandomStream, GivesTheKnownAnswersOfPhilox) {
  // the known-answer vectors of Random123 1.14
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));

  RandomStream first(0, 0, 0);
  for (uint32_t expected : {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}) EXPECT_EQ(first.next_u32(), expected);

  RandomStream pick(1, 2, 3);
  for (int trial = 0; trial < 50; ++trial) {
    const uint64_t seed = pick.next_u64();
    const uint32_t stream = pick.next_u32();
    const uint64_t index = pick.next_u64();
    RandomStream random(seed, stream, index);
    for (uint32_t block = 0; block < 3; ++block) {
      const Block expected = philox({block, stream, static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32)},
                                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
      for (uint32_t value : expected) ASSERT_EQ(random.next_u32(), value) << "trial " << trial;
    }
  }
}

TEST(RandomStream, IsUniformFromZeroToBelowOne) {
  RandomStream random(7, 0, 0);
  constexpr int kDraws = 200'000;
  std::array<int, 16> bins{};
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++bins[static_cast<std::size_t>(value * 16)];
  }
  // 5 standard deviations of a bin
  const double tolerance = 5 * std::sqrt(kDraws / 16.0);
  for (int count : bins) EXPECT_NEAR(count, kDraws / 16.0, tolerance);
}

TEST(RandomStream, HasTheMomentsOfANormal) {
  RandomStream random(7, 1, 0);
  constexpr int kDraws = 200'000;
  double sums[5] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    ASSERT_TRUE(std::isfinite(value));
    double power = 1;
    for (double& sum : sums) {
      sum += power;
      power *= value;
    }
  }
  // 5 standard errors: the moments' variances are 1, 2, 15 and 96
  const double root = std::sqrt(static_cast<double>(kDraws));
  EXPECT_NEAR(sums[1] / kDraws, 0, 5 / root);
  EXPECT_NEAR(sums[2] / kDraws, 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(sums[3] / kDraws, 0, 5 * std::sqrt(15.0) / root);
  EXPECT_NEAR(sums[4] / kDraws, 3, 5 * std::sqrt(96.0) / root);
}

TEST(RandomStream, DrawsBelowABoundWithoutBias) {
  RandomStream random(7, 2, 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(random.below(1), 0u);
  // 3/4 of the range of 64 bits: taking the remainder alone would give the lower third twice as often
  const uint64_t large = uint64_t{3} << 62;
  constexpr int kDraws = 30'000;
  int lower = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t value = random.below(large);
    ASSERT_LT(value, large);
    lower += value < large / 3;
  }
  EXPECT_NEAR(lower, kDraws / 3.0, 5 * std::sqrt(kDraws * 2.0 / 9));
}

TEST(RandomStream, ShufflesIntoEveryOrderEquallyOften) {
  RandomStream random(7, 3, 0);
  std::map<std::vector<int>, int> orders;
  constexpr int kDraws = 24'000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<int> values{0, 1, 2, 3};
    random.shuffle(values);
    ++orders[values];
  }
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) {
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), std::vector<int>{0, 1, 2, 3}.begin()));
    EXPECT_NEAR(count, kDraws / 24.0, 5 * std::sqrt(kDraws / 24.0));
  }
}

TEST(RandomStream, DiffersBetweenStreamsAndMembers) {
  RandomStream a(1, 0, 0), b(1, 1, 0), c(1, 0, 1), d(2, 0, 0);
  const uint64_t first = a.next_u64();
  EXPECT_NE(first, b.next_u64());
  EXPECT_NE(first, c.next_u64());
  EXPECT_NE(first, d.next_u64());
}

}  // namespace
}  // namespace headlight
