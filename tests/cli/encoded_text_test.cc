#include "encoded_text.h"

#include <gtest/gtest.h>

#include <map>

#include "headlight/base/error.h"
#include "support/expect_error.h"

namespace headlight::cli {
namespace {

std::vector<int32_t> counted(int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

TEST(EncodedText, PredictsEachTokenOnceAfterTheOneBeforeIt) {
  for (int32_t count : {2, 3, 7, 8, 9, 30}) {
    for (int64_t context : {1, 2, 7, 100}) {
      for (bool start : {false, true}) {
        EncodedTextOptions options{.ids = counted(count), .context = context};
        if (start) options.start = 99;
        const auto source = encoded_text(byte_tokenizer(), options);
        Samples samples;
        source->validation(0, source->validation_count(), samples);
        std::map<int32_t, int> predicted;
        for (int64_t i = 0; i < samples.size; ++i) {
          for (int64_t t = 0; t < samples.time; ++t) {
            const std::size_t at = static_cast<std::size_t>(i * samples.time + t);
            if (start && t == 0) {
              EXPECT_EQ(samples.tokens[at], 99);
            }
            if (samples.targets[at] == kNoTarget) continue;
            ++predicted[samples.targets[at]];
            if (!start || t > 0) {
              EXPECT_EQ(samples.tokens[at] + 1, samples.targets[at]);
            }
          }
        }
        EXPECT_EQ(static_cast<int32_t>(predicted.size()), start ? count : count - 1) << count << " in " << context;
        for (const auto& [token, times] : predicted)
          EXPECT_EQ(times, 1) << token << " of " << count << " in " << context;
      }
    }
  }
}

TEST(EncodedText, TakesWindowsSpreadEvenly) {
  const auto source = encoded_text(byte_tokenizer(), {.ids = counted(101), .context = 10, .limit = 2});
  EXPECT_EQ(source->validation_count(), 2);
  Samples samples;
  source->validation(0, 2, samples);
  EXPECT_EQ(samples.tokens[0], 0);
  EXPECT_EQ(samples.tokens[10], 50);
}

TEST(EncodedText, NeedsATokenToPredict) {
  expect_error(ErrorKind::kUsage, {"no token that could be predicted"},
               [] { encoded_text(byte_tokenizer(), {.ids = {5}, .context = 4}); });
  expect_error(ErrorKind::kUsage, {"no token"}, [] { encoded_text(byte_tokenizer(), {.start = 1, .context = 4}); });
}

}  // namespace
}  // namespace headlight::cli
