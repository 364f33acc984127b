#include "headlight/text/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "support/expect_error.h"
#include "text/source_checks.h"

namespace headlight {
namespace {

// N of a row `[start] R R ...`, read off its classes; checks that the row is what it says.
int64_t length_of_row(const Samples& samples, int64_t row, int32_t start) {
  const int32_t* tokens = samples.tokens.data() + row * samples.time;
  const uint8_t* classes = samples.classes.data() + row * samples.time;
  EXPECT_EQ(tokens[0], start);
  const int64_t length = std::count(classes, classes + samples.time, 0) - 1;
  for (int64_t t = 1; t < samples.time; ++t) {
    EXPECT_EQ(classes[t], t > length ? 1 : 0) << "class of position " << t << ", N " << length;
    if (t <= length) continue;
    EXPECT_EQ(tokens[t], tokens[t - length]) << "position " << t << ", N " << length;
  }
  const std::set<int32_t> distinct(tokens, tokens + length + 1);
  EXPECT_EQ(static_cast<int64_t>(distinct.size()), length + 1) << "R holds a token twice";
  return length;
}

TEST(Repeats, NamesSequencesByNumbers) {
  expect_named_by_numbers(*repeats({}));
  expect_named_by_numbers(*repeats({.vocabulary = 5, .context = 40, .held_out_every = 0}));
}

TEST(Repeats, RepeatsAndNeverTrainsAHeldOutLength) {
  const uint64_t seed = 3;
  RandomStream random(seed, 0, 0);
  for (int round = 0; round < 30; ++round) {
    const int64_t context = 16 + static_cast<int64_t>(random.below(100));
    const int64_t every = 2 + static_cast<int64_t>(random.below(3));
    SCOPED_TRACE("seed " + std::to_string(seed) + ", context " + std::to_string(context) + ", every " +
                 std::to_string(every));
    const auto source = repeats({.vocabulary = 64, .context = context, .held_out_every = every});
    Samples samples;
    std::set<int64_t> trained, validated;
    source->training(random.next_u64(), 5, 0, 600, samples);
    for (int64_t i = 0; i < samples.size; ++i) trained.insert(length_of_row(samples, i, 64));
    source->validation(0, source->validation_count(), samples);
    for (int64_t i = 0; i < samples.size; ++i) validated.insert(length_of_row(samples, i, 64));
    for (int64_t n : trained) {
      EXPECT_NE(n % every, 1);
      EXPECT_GE(n, context / 4);
      EXPECT_LE(n, context / 2);
    }
    for (int64_t n : validated) EXPECT_EQ(n % every, 1);
    EXPECT_EQ(std::vector<int64_t>(trained.begin(), trained.end()), source->training_lengths());
    EXPECT_EQ(std::vector<int64_t>(validated.begin(), validated.end()), source->validation_lengths());
  }
}

TEST(Repeats, UsesEveryTokenAlike) {
  const auto source = repeats({});
  std::vector<int64_t> counts(65, 0);
  Samples samples;
  source->training(2, 0, 0, 4000, samples);
  for (int32_t token : samples.tokens) ++counts[static_cast<std::size_t>(token)];
  const double mean = 4000.0 * 95 / 64;
  // a token is in R with probability about 1/2, then 2 to 4 times: five deviations of the count are below 4%
  for (std::size_t t = 0; t < 64; ++t) EXPECT_NEAR(static_cast<double>(counts[t]), mean, 0.04 * mean) << "token " << t;
  EXPECT_EQ(counts[64], 4000);
}

TEST(Repeats, DrawsWithReplacementWhenThereAreFewerTokens) {
  const auto source = repeats({.vocabulary = 2, .context = 40, .held_out_every = 0});
  Samples samples;
  source->training(1, 0, 0, 50, samples);
  for (int64_t i = 0; i < 50; ++i) {
    const int32_t* tokens = samples.tokens.data() + i * 40;
    const int64_t length = std::count(samples.classes.begin() + i * 40, samples.classes.begin() + (i + 1) * 40, 0) - 1;
    for (int64_t t = length + 1; t < 40; ++t) ASSERT_EQ(tokens[t], tokens[t - length]);
  }
}

TEST(Repeats, NamesTheOptionThatDoesNotFit) {
  const auto refuse = [](const RepeatsOptions& options, std::initializer_list<std::string> words) {
    expect_error(ErrorKind::kUsage, words, [&] { repeats(options); });
  };
  refuse({.vocabulary = 1}, {"vocabulary is 1"});
  refuse({.context = 3}, {"context is 3"});
  refuse({.shortest = -2}, {"shortest"});
  refuse({.shortest = 40, .longest = 30}, {"longest is 30", "40"});
  refuse({.longest = 96}, {"longest is 96", "96"});
  refuse({.held_out_every = 1}, {"held_out_every"});
  refuse({.shortest = 26, .longest = 26}, {"held_out_every", "26"});
  refuse({.shortest = 24, .longest = 25}, {"held_out_every", "25"});
  refuse({.validation_sequences = -1}, {"validation_sequences"});
}

TEST(RepeatedSequences, HoldTheCopiesAndPredictNothingAtTheEnd) {
  const Samples samples = repeated_sequences({.vocabulary = 50, .start = 50, .length = 20, .count = 8, .seed = 4});
  ASSERT_EQ(samples.time, 41);
  for (int64_t i = 0; i < 8; ++i) {
    const int32_t* tokens = samples.tokens.data() + i * 41;
    EXPECT_EQ(tokens[0], 50);
    EXPECT_TRUE(std::equal(tokens + 1, tokens + 21, tokens + 21));
    for (int64_t t = 0; t < 40; ++t) {
      EXPECT_EQ(samples.targets[static_cast<std::size_t>(i * 41 + t)], tokens[t + 1]);
      EXPECT_EQ(samples.classes[static_cast<std::size_t>(i * 41 + t)], t > 20 ? 1 : 0) << "position " << t;
    }
    EXPECT_EQ(samples.targets[static_cast<std::size_t>(i * 41 + 40)], kNoTarget);
  }
  EXPECT_EQ(repeated_sequences({.length = 5, .copies = 3}).time, 15);
  EXPECT_THROW(repeated_sequences({.length = 0}), LogicError);
}

struct Line {
  std::string id, name;
  bool is_new = false;
};

// "P-104 coolant pump: noisy" or "check P-104 coolant pump"
Line read_line(const std::string& line) {
  char letter = 0;
  int number = 0, end = 0;
  char quality[16] = "", part[16] = "", word[16] = "";
  const char* text = line.c_str();
  bool is_new =
      std::sscanf(text, "%c-%3d %15[a-z] %15[a-z]: %15[a-z]%n", &letter, &number, quality, part, word, &end) == 5;
  if (!is_new) {
    const int read =
        std::sscanf(text, "%15[a-z] %c-%3d %15[a-z] %15[a-z]%n", word, &letter, &number, quality, part, &end);
    EXPECT_TRUE(read == 5 && static_cast<std::size_t>(end) == line.size()) << line;
  }
  EXPECT_TRUE(letter >= 'A' && letter <= 'Z' && number >= 100) << line;
  return {std::string(1, letter) + "-" + std::to_string(number), std::string(quality) + " " + part, is_new};
}

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream stream(text.substr(0, text.rfind('\n') + 1));  // whole lines
  for (std::string line; std::getline(stream, line);) lines.push_back(read_line(line));
  return lines;
}

// The texts of all runs of targets of one class, without the blank before them.
std::vector<std::string> targets_of_class(const DataSource& source, const Samples& samples, int64_t row,
                                          uint8_t wanted) {
  std::vector<std::string> found;
  bool inside = false;
  for (int64_t t = 0; t < samples.time; ++t) {
    const std::size_t at = static_cast<std::size_t>(row * samples.time + t);
    const bool here = samples.classes[at] == wanted;
    if (here && !inside) found.emplace_back();
    if (here) found.back() += source.tokenizer()->token_text(samples.targets[at]);
    inside = here;
  }
  for (std::string& text : found) {
    EXPECT_EQ(text[0], ' ') << text;
    text.erase(0, 1);
  }
  return found;
}

TEST(LogLines, NamesSequencesByNumbers) { expect_named_by_numbers(*log_lines({})); }

TEST(LogLines, ReturnsNamesThatTheContextGivesAndMarksThem) {
  for (const int64_t context : {32, 64, 128}) {
    const auto source = log_lines({.context = context});
    Samples samples;
    source->training(9, 1, 0, 500, samples);
    int64_t copied = 0;
    for (int64_t i = 0; i < samples.size; ++i) {
      const std::string text = row_text(*source, samples, i);
      SCOPED_TRACE(text);
      std::map<std::string, std::string> names;
      std::vector<std::string> fresh, again;
      for (const Line& line : lines_of(text)) {
        (line.is_new ? fresh : again).push_back(line.name);
        if (line.is_new) {
          EXPECT_TRUE(names.emplace(line.id, line.name).second) << line.id << " is introduced twice";
        } else {
          EXPECT_EQ(names[line.id], line.name);
        }
      }
      EXPECT_LE(names.size(), 6u);
      // marked are the whole names, those in whole lines and perhaps one in the last
      const std::vector<std::string> marked = targets_of_class(*source, samples, i, 2);
      ASSERT_TRUE(marked.size() == again.size() || marked.size() == again.size() + 1);
      EXPECT_TRUE(std::equal(again.begin(), again.end(), marked.begin()));
      if (marked.size() > again.size()) {
        const auto known = [&](const auto& entry) { return entry.second == marked.back(); };
        EXPECT_TRUE(std::any_of(names.begin(), names.end(), known)) << marked.back();
      }
      const std::vector<std::string> introduced = targets_of_class(*source, samples, i, 1);
      EXPECT_TRUE(std::equal(fresh.begin(), fresh.end(), introduced.begin()));
      copied += static_cast<int64_t>(marked.size());
    }
    EXPECT_GT(copied, context >= 64 ? 700 : 100) << "context " << context;
  }
}

TEST(LogLines, KeepsHeldOutIdentifiersOutOfTraining) {
  const LogLinesOptions options;
  const auto source = log_lines(options);
  Samples samples;
  const auto numbers = [&] {
    std::set<int64_t> found;
    for (int64_t i = 0; i < samples.size; ++i) {
      for (const Line& line : lines_of(row_text(*source, samples, i))) found.insert(std::stoll(line.id.substr(2)));
    }
    return found;
  };
  source->training(1, 0, 0, 3000, samples);
  const std::set<int64_t> trained = numbers();
  for (int64_t number : trained) EXPECT_FALSE(is_held_out(options, number)) << number;
  EXPECT_GT(trained.size(), 700u);
  source->validation(0, source->validation_count(), samples);
  for (int64_t number : numbers()) EXPECT_TRUE(is_held_out(options, number)) << number;
  EXPECT_TRUE(is_held_out(options, 104));
}

TEST(LogLines, PairsIdentifiersWithNamesAfreshEachTime) {
  const auto source = log_lines({});
  Samples samples;
  source->training(1, 0, 0, 3000, samples);
  std::map<std::string, std::set<std::string>> names;
  for (int64_t i = 0; i < samples.size; ++i) {
    for (const Line& line : lines_of(row_text(*source, samples, i))) {
      if (line.is_new) names[line.id].insert(line.name);
    }
  }
  const auto paired_often = [](const auto& entry) { return entry.second.size() > 1; };
  EXPECT_GT(std::count_if(names.begin(), names.end(), paired_often), 500);
}

TEST(LogLines, NamesTheOptionThatDoesNotFit) {
  const auto refuse = [](const LogLinesOptions& options, const std::string& words) {
    expect_error(ErrorKind::kUsage, {words}, [&] { log_lines(options); });
  };
  refuse({.context = 31}, "context is 31");
  refuse({.identifiers = 0}, "identifiers is 0");
  refuse({.identifiers = 17}, "identifiers is 17");
  refuse({.held_out_every = 6}, "held_out_every is 6");
  refuse({.validation_sequences = -1}, "validation_sequences is -1");
}

}  // namespace
}  // namespace headlight
