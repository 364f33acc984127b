#pragma once
// What a parser of untrusted files must bear: the file cut at any byte, and random changes of a right one.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/base/random.h"

namespace headlight {

// `parse(bytes)` throws Error of bad data for every proper beginning of `whole`, `step` bytes apart.
template <class Parse>
void expect_every_cut_refused(const std::string& whole, Parse parse, std::size_t step = 1) {
  for (std::size_t length = 0; length < whole.size(); length += step) {
    // a copy of its own size, so that a sanitizer sees a read beyond it
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    try {
      parse(std::as_bytes(std::span(cut)));
      ADD_FAILURE() << "cut at byte " << length << " of " << whole.size() << ": no error";
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::kBadData)) << error.what();
    }
  }
}

struct Mutations {
  uint64_t seed;
  std::string_view bytes;  // those that mean something to the format; put in and put over more often than others
  int trials = 20'000;
};

// `parse(bytes)` takes or throws Error of bad data for each of `mutations.trials` files that differ from `whole` in one
// to four places; returns how many it refused.
template <class Parse>
int expect_mutations_borne(const std::string& whole, const Mutations& mutations, Parse parse) {
  int refused = 0;
  for (int trial = 0; trial < mutations.trials; ++trial) {
    SCOPED_TRACE("seed " + std::to_string(mutations.seed) + ", trial " + std::to_string(trial));
    RandomStream random(mutations.seed, 0, static_cast<uint64_t>(trial));
    std::vector<char> bytes(whole.begin(), whole.end());
    for (uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
      const std::size_t at = random.below(bytes.size());
      const char meaningful = mutations.bytes[random.below(mutations.bytes.size())];
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes[at] = meaningful;
          break;
        case 2:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
          break;
        default:
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), meaningful);
      }
    }
    try {
      parse(std::as_bytes(std::span(bytes)));
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::kBadData)) << error.what();
    }
    if (testing::Test::HasFailure()) break;
  }
  return refused;
}

}  // namespace headlight
