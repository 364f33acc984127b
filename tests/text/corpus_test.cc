#include "headlight/text/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/base/random.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"
#include "text/source_checks.h"

namespace headlight {
namespace {

class TextFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    write_file_atomically(folder_ / "text.txt", text);
    return folder_ / "text.txt";
  }

  // bytes that tell where they stand: no three in a row occur twice
  std::filesystem::path write_numbered(int64_t bytes) {
    std::string text;
    for (int64_t i = 0; i < bytes; ++i) {
      text += static_cast<char>(i % 3 == 0 ? 1 + i / 3 % 85 : i % 3 == 1 ? 86 + i / 255 % 85 : 171 + i / 21675 % 85);
    }
    return write(text);
  }

  TempFolder folder_;
};

TEST_F(TextFileTest, NamesSequencesByNumbers) {
  expect_named_by_numbers(*text_file({.path = write_numbered(5000), .context = 32}));
}

TEST_F(TextFileTest, TrainsOnTheFirstPartOnly) {
  const auto path = write(std::string(900, 'a') + std::string(100, 'b'));
  const auto source = text_file({.path = path, .context = 16});
  Samples samples;
  for (int64_t step = 0; step < 200; ++step) {
    source->training(1, step, 0, 8, samples);
    EXPECT_EQ(std::count(samples.targets.begin(), samples.targets.end(), 'a'), 8 * 16) << "step " << step;
  }
}

TEST_F(TextFileTest, DrawsEveryWindowOfTheFirstPart) {
  const auto source = text_file({.path = write_numbered(200), .context = 15});
  std::vector<int> seen(180 - 15, 0);
  const std::string text = read_file(folder_ / "text.txt");
  Samples samples;
  source->training(5, 0, 0, 4000, samples);
  for (int64_t i = 0; i < samples.size; ++i) {
    const std::size_t at = text.find(row_text(*source, samples, i));
    ASSERT_LT(at, seen.size());
    ++seen[at];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 0);
}

TEST_F(TextFileTest, ValidatesEachByteOfTheLastPartOnce) {
  const uint64_t seed = 11;
  SCOPED_TRACE(seed);
  RandomStream random(seed, 0, 0);
  for (int round = 0; round < 60; ++round) {
    const int64_t bytes = 700 + static_cast<int64_t>(random.below(3000));
    const int64_t context = 1 + static_cast<int64_t>(random.below(60));
    SCOPED_TRACE(std::to_string(bytes) + " bytes, context " + std::to_string(context));
    const auto source = text_file({.path = write_numbered(bytes), .context = context});
    const std::string text = read_file(folder_ / "text.txt");
    const std::size_t begin = static_cast<std::size_t>(static_cast<double>(bytes) * 0.9);
    Samples samples;
    source->validation(0, source->validation_count(), samples);
    std::string targets;
    for (int32_t target : samples.targets) {
      if (target != kNoTarget) targets += static_cast<char>(target);
    }
    ASSERT_EQ(targets, text.substr(begin + 1));
    expect_well_formed(*source, samples);
  }
}

TEST_F(TextFileTest, SpreadsALimitedValidationEvenly) {
  const auto path = write_numbered(4000);
  const auto all = text_file({.path = path, .context = 8});
  const auto some = text_file({.path = path, .context = 8, .validation_limit = 5});
  ASSERT_EQ(all->validation_count(), 50);
  ASSERT_EQ(some->validation_count(), 5);
  Samples every, chosen;
  all->validation(0, 50, every);
  some->validation(0, 5, chosen);
  for (int64_t i = 0; i < 5; ++i) expect_same(chosen, i, every, 10 * i);
}

TEST_F(TextFileTest, GivesTheWholeTextToOnePart) {
  const auto path = write_numbered(100);
  Samples samples;
  const auto validation = text_file({.path = path, .context = 10, .validation_fraction = 1});
  EXPECT_EQ(validation->validation_count(), 10);  // 99 targets
  EXPECT_THROW(validation->training(1, 0, 0, 1, samples), LogicError);
  const auto training = text_file({.path = path, .context = 99, .validation_fraction = 0});
  EXPECT_EQ(training->validation_count(), 0);
  training->training(1, 0, 0, 1, samples);
  EXPECT_EQ(row_text(*training, samples, 0), read_file(path).substr(0, 99));
}

TEST_F(TextFileTest, SaysWhatIsWrongWithTheFile) {
  const auto refuse = [](const TextOptions& options, ErrorKind kind, std::initializer_list<std::string> words) {
    expect_error(kind, words, [&] { text_file(options); });
  };
  refuse({.path = folder_ / "none.txt"}, ErrorKind::kMissingInput, {"none.txt"});
  refuse({.path = folder_.path()}, ErrorKind::kBadData, {"folder"});
  refuse({.path = write("")}, ErrorKind::kBadData, {"text.txt", "empty"});
  refuse({.path = write("short"), .context = 64}, ErrorKind::kBadData,
         {"text.txt", "5 bytes", "context of 64", "65", "641 bytes"});
  refuse({.path = write(std::string(640, 'a')), .context = 64}, ErrorKind::kBadData, {"640", "64 are for validation"});
  EXPECT_NO_THROW(text_file({.path = write(std::string(641, 'a')), .context = 64}));
}

TEST_F(TextFileTest, SaysWhichOptionIsOutOfRange) {
  const auto path = write_numbered(1000);
  const auto refuse = [&](TextOptions options, const std::string& name) {
    options.path = path;
    expect_error(ErrorKind::kUsage, {name}, [&] { text_file(options); });
  };
  refuse({.context = 0}, "context");
  refuse({.validation_fraction = 1.5}, "validation_fraction");
  refuse({.validation_fraction = std::nan("")}, "validation_fraction");
  refuse({.validation_limit = -1}, "validation_limit");
}

TEST_F(TextFileTest, RefusesAFileThatChanged) {
  const std::string json = text_file({.path = write_numbered(1000), .context = 8})->to_json();
  std::string text = read_file(folder_ / "text.txt");
  text[500] ^= 1;
  write(text);
  const auto reread = [&] { data_source_from_json(json, "training.json"); };
  expect_error(ErrorKind::kBadData, {"text.txt", "changed", "1000 bytes"}, reread);
  write("");
  expect_error(ErrorKind::kBadData, {"text.txt", "changed", "0 bytes"}, reread);
  std::filesystem::remove(folder_ / "text.txt");
  expect_error(ErrorKind::kMissingInput, {"text.txt"}, reread);
}

TEST(DataSourceFromJson, NamesWhatIsWrong) {
  const auto refuse = [](const std::string& json, std::initializer_list<std::string> words) {
    expect_error(ErrorKind::kBadData, words, [&] { data_source_from_json(json, "training.json"); });
  };
  refuse("{", {"training.json"});
  refuse(R"({"kind": "prose"})", {"kind", "prose", "repeats"});
  refuse(R"({"kind": "repeats", "vocabulary": 64})", {"context", "missing"});
  refuse(R"({"kind": "log-lines", "context": 3, "identifiers": 3, "held_out_every": 7, "validation_sequences": 1})",
         {"training.json", "context is 3"});
  refuse(R"({"kind": "log-lines", "context": 128, "identifiers": 3, "held_out_every": 7, "validation_sequences": 1,
             "colour": "red"})",
         {"colour", "unknown"});
}

}  // namespace
}  // namespace headlight
