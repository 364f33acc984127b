#pragma once
// What every source of sequences must keep, whatever it makes.

#include <gtest/gtest.h>

#include <string>

#include "headlight/text/data_source.h"

namespace headlight {

inline std::string row_text(const DataSource& source, const Samples& samples, int64_t row) {
  return source.tokenizer()->decode(
      std::span(samples.tokens)
          .subspan(static_cast<std::size_t>(row * samples.time), static_cast<std::size_t>(samples.time)));
}

inline void expect_same(const Samples& got, int64_t got_row, const Samples& expected, int64_t expected_row) {
  ASSERT_EQ(got.time, expected.time);
  for (int64_t t = 0; t < got.time; ++t) {
    const std::size_t a = static_cast<std::size_t>(got_row * got.time + t);
    const std::size_t b = static_cast<std::size_t>(expected_row * got.time + t);
    ASSERT_EQ(got.tokens[a], expected.tokens[b]) << "token of row " << got_row << ", position " << t;
    ASSERT_EQ(got.targets[a], expected.targets[b]) << "target of row " << got_row << ", position " << t;
    ASSERT_EQ(got.classes[a], expected.classes[b]) << "class of row " << got_row << ", position " << t;
  }
}

// Tokens and classes in range; a position predicts the next position's token.
inline void expect_well_formed(const DataSource& source, const Samples& samples) {
  ASSERT_EQ(samples.time, source.context());
  for (int64_t row = 0; row < samples.size; ++row) {
    for (int64_t t = 0; t < samples.time; ++t) {
      const std::size_t at = static_cast<std::size_t>(row * samples.time + t);
      ASSERT_GE(samples.tokens[at], 0);
      ASSERT_LT(samples.tokens[at], source.tokenizer()->vocabulary());
      ASSERT_LT(samples.classes[at], source.classes().size());
      if (samples.targets[at] == kNoTarget || t + 1 == samples.time) continue;
      ASSERT_EQ(samples.targets[at], samples.tokens[at + 1]) << "row " << row << ", position " << t;
    }
  }
}

// A sequence depends on (seed, step, row) alone: not on how the batch is cut, nor on what was made before.
inline void expect_named_by_numbers(const DataSource& source) {
  Samples whole, part;
  source.training(7, 3, 0, 9, whole);
  expect_well_formed(source, whole);
  for (const int64_t first : {5, 0, 8}) {
    const int64_t size = first == 0 ? 4 : 1;
    source.training(7, 3, first, size, part);
    for (int64_t i = 0; i < size; ++i) expect_same(part, i, whole, first + i);
  }
  source.training(7, 4, 0, 9, part);
  EXPECT_NE(part.tokens, whole.tokens) << "another step gives the same batch";
  source.training(8, 3, 0, 9, part);
  EXPECT_NE(part.tokens, whole.tokens) << "another seed gives the same batch";
  EXPECT_NE(row_text(source, whole, 0), row_text(source, whole, 1));

  const int64_t count = source.validation_count();
  source.validation(0, count, whole);
  expect_well_formed(source, whole);
  source.validation(count - 1, 1, part);
  expect_same(part, 0, whole, count - 1);
  EXPECT_THROW(source.validation(count - 1, 2, part), LogicError);
  EXPECT_THROW(source.training(7, -1, 0, 1, part), LogicError);
  EXPECT_THROW(source.training(7, 0, (1 << 20) - 1, 2, part), LogicError);

  const auto again = data_source_from_json(source.to_json(), "training.json");
  EXPECT_EQ(again->to_json(), source.to_json());
  again->training(7, 3, 2, 1, part);
  source.training(7, 3, 2, 1, whole);
  expect_same(part, 0, whole, 0);
}

}  // namespace headlight
