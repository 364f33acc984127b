#include "headlight/formats/gguf.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>

#include "support/expect_error.h"
#include "support/gguf_writer.h"
#include "support/mutate.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 63;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Reads whatever the file hands out, so that a sanitizer sees a byte that is out of bounds.
unsigned touch(const Gguf& gguf) {
  unsigned sum = gguf.version();
  for (const GgufValue& value : gguf.values()) {
    for (std::byte byte : value.bytes) sum += std::to_integer<unsigned>(byte);
    if (value.is_array && value.type == GgufType::kString) sum += static_cast<unsigned>(gguf.texts(value.key).size());
    if (!value.is_array && value.type == GgufType::kString) sum += static_cast<unsigned>(gguf.text(value.key).size());
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    for (std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
  }
  return sum;
}

void expect_bad(std::initializer_list<std::string> words, const std::string& bytes) {
  SCOPED_TRACE(bytes.substr(0, 120));
  expect_error(ErrorKind::kBadData, words, [&] { touch(Gguf(bytes_of(bytes), "m.gguf")); });
}

std::string f32s(std::initializer_list<float> values) {
  std::string bytes;
  for (float value : values) bytes += raw(value);
  return bytes;
}

// Values of several types, tensors of two types and an empty one, with padding between them.
std::string small_file(uint32_t version = 3) {
  const std::string data = f32s({1, 2, 3, 4, 5, 6}) + std::string(8, '\0') + std::string("\x00\x3c\x00\xc0", 4);
  return gguf_file(
      {gguf_value("general.architecture", 8, gguf_text("llama")), gguf_value("llama.block_count", 4, raw(uint32_t{2})),
       gguf_array("tokens", 8, 2, gguf_text("a") + gguf_text("bc")), gguf_array("scores", 6, 2, f32s({0.5f, -1})),
       gguf_value("flag", 7, "\x01")},
      {gguf_tensor("w", {3, 2}, 0, 0), gguf_tensor("h", {2}, 1, 32), gguf_tensor("none", {32, 0}, 2, 64)},
      data + std::string(28, '\0'), 32, version);
}

TEST(GgufFile, GivesVersionValuesAndTensors) {
  for (const uint32_t version : {2u, 3u}) {
    const std::string bytes = small_file(version);
    const Gguf gguf(bytes_of(bytes), "m.gguf");
    EXPECT_EQ(gguf.version(), version);
    ASSERT_EQ(gguf.values().size(), 5u);
    EXPECT_EQ(gguf.values()[0].key, "flag");
    EXPECT_EQ(gguf.values()[4].type_name(), "array of string");
    EXPECT_EQ(gguf.text("general.architecture"), "llama");
    EXPECT_EQ(gguf.texts("tokens"), (std::vector<std::string>{"a", "bc"}));
    EXPECT_EQ(gguf.numbers("scores"), (std::vector<float>{0.5f, -1}));
    EXPECT_TRUE(gguf.boolean("flag"));
    EXPECT_FALSE(gguf.has("no"));
    EXPECT_EQ(gguf.find_value("no"), nullptr);

    ASSERT_EQ(gguf.tensors().size(), 3u);
    const GgufTensor& w = gguf.tensor("w", std::array<int64_t, 2>{2, 3});
    EXPECT_EQ(w.type, "F32");
    EXPECT_EQ(w.columns(), 3);
    std::array<float, 6> all{};
    read_floats(w, all);
    EXPECT_EQ(all, (std::array<float, 6>{1, 2, 3, 4, 5, 6}));
    std::array<float, 3> row{};
    read_rows(w, 1, row);
    EXPECT_EQ(row, (std::array<float, 3>{4, 5, 6}));
    std::array<float, 2> halves{};
    read_floats(*gguf.find("h"), halves);
    EXPECT_EQ(halves, (std::array<float, 2>{1, -2}));
    EXPECT_EQ(gguf.find("none")->shape, (std::vector<int64_t>{0, 32}));
    read_floats(*gguf.find("none"), {});
    EXPECT_EQ(gguf.find("no"), nullptr);
  }
}

TEST(GgufFile, TakesAFileWithoutTensorsOrValues) {
  const std::string empty = gguf_file({});
  EXPECT_TRUE(Gguf(bytes_of(empty), "m.gguf").tensors().empty());
  // its end may be padded
  const std::string padded = empty + std::string(8, '\0');
  EXPECT_TRUE(Gguf(bytes_of(padded), "m.gguf").values().empty());
  expect_bad({"m.gguf", "1 bytes after the last tensor"}, padded + "x");
}

TEST(GgufFile, TakesScalarsAndTensorsOfFourDimensions) {
  const std::string bytes = gguf_file({}, {gguf_tensor("s", {}, 0, 0), gguf_tensor("d", {1, 2, 1, 1}, 0, 32)},
                                      f32s({7}) + std::string(28, '\0') + f32s({8, 9}));
  const Gguf gguf(bytes_of(bytes), "m.gguf");
  std::array<float, 1> scalar{};
  read_floats(gguf.tensor("s", {}), scalar);
  EXPECT_EQ(scalar[0], 7);
  EXPECT_EQ(gguf.find("d")->shape, (std::vector<int64_t>{1, 1, 2, 1}));
}

TEST(GgufFile, FollowsTheAlignment) {
  for (const uint32_t alignment : {1u, 8u, 256u}) {
    std::string data = f32s({1});
    const uint64_t second = std::max(4u, alignment);
    data.resize(second, '\0');
    const std::string bytes =
        gguf_file({gguf_value("general.alignment", 4, raw(alignment))},
                  {gguf_tensor("a", {1}, 0, 0), gguf_tensor("b", {1}, 0, second)}, data + f32s({2}), alignment);
    const Gguf gguf(bytes_of(bytes), "m.gguf");
    std::array<float, 1> out{};
    read_floats(*gguf.find("b"), out);
    EXPECT_EQ(out[0], 2) << "alignment " << alignment;
  }
}

TEST(GgufFile, RefusesAnAlignmentThatIsNone) {
  const auto file = [](uint32_t type, const std::string& value) {
    return gguf_file({gguf_value("general.alignment", type, value)});
  };
  for (const uint32_t alignment : {0u, 13u, 48u}) {
    expect_bad({"m.gguf", "general.alignment", "found " + std::to_string(alignment), "power of two"},
               file(4, raw(alignment)));
  }
  expect_bad({"general.alignment", "found string", "u32"}, file(8, gguf_text("32")));
  expect_bad({"general.alignment", "found u64", "u32"}, file(10, raw(uint64_t{32})));
  expect_bad({"general.alignment", "found array of u32"},
             gguf_file({gguf_array("general.alignment", 4, 1, raw(uint32_t{32}))}));
}

TEST(GgufFile, RefusesWhatDoesNotBeginLikeOne) {
  expect_bad({"m.gguf", "byte 0", "cut short"}, "");
  expect_bad({"byte 0", "cut short"}, "GGU");
  expect_bad({"byte 0", "found \"GGML\"", "GGUF"}, "GGML" + std::string(20, '\0'));
  expect_bad({"byte 4: version of 4 bytes; expected at most 1; the file is cut short"}, "GGUF\x03");
  for (const uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
    expect_bad({"byte 4", "version " + std::to_string(version), "2 or 3"}, gguf_header(0, 0, version));
  }
  expect_bad({"byte 4", "big-endian"}, gguf_header(0, 0, 0x03000000));
}

TEST(GgufFile, RefusesCountsBeyondTheFile) {
  for (const uint64_t count : {uint64_t{1}, kHuge, ~uint64_t{0}, kHuge / 12}) {
    expect_bad({"byte 8", std::to_string(count) + " tensors", "at most 0"}, gguf_header(count, 0));
    expect_bad({"byte 16", std::to_string(count) + " key-values", "at most 0"}, gguf_header(0, count));
  }
  expect_bad({"byte 16", "2 key-values", "at most 1"}, gguf_header(0, 2) + gguf_value("k", 0, "\x01"));
}

TEST(GgufFile, RefusesStringsAndArraysLongerThanTheFile) {
  for (const uint64_t length : {uint64_t{100}, kHuge, ~uint64_t{0}, ~uint64_t{7}}) {
    const std::string number = std::to_string(length);
    expect_bad({"byte 32", "a key of " + number + " bytes"}, gguf_header(0, 1) + raw(length) + std::string(20, 'x'));
    expect_bad({"a string of key \"k\" of " + number + " bytes", "cut short"},
               gguf_file({gguf_value("k", 8, raw(length) + "x")}));
    expect_bad({number + " elements of key \"k\""}, gguf_file({gguf_array("k", 0, length, "x")}));
    expect_bad({number + " elements of key \"k\""}, gguf_file({gguf_array("k", 10, length, raw(uint64_t{1}))}));
    expect_bad({number + " elements of key \"k\""}, gguf_file({gguf_array("k", 8, length, gguf_text("x"))}));
    expect_bad({"a string of key \"k\""}, gguf_file({gguf_array("k", 8, 2, gguf_text("x") + raw(length))}));
    expect_bad({"a tensor's name of " + number + " bytes"}, gguf_header(1, 0) + raw(length) + std::string(20, 'x'));
  }
}

TEST(GgufFile, RefusesTypesOfValuesThatAreNone) {
  expect_bad({"byte 33", "key \"k\"", "unknown type 13"}, gguf_file({gguf_value("k", 13, raw(uint64_t{1}))}));
  expect_bad({"unknown type 4294967295"}, gguf_file({gguf_value("k", ~0u, raw(uint64_t{1}))}));
  expect_bad({"unknown type 13"}, gguf_file({gguf_array("k", 13, 1, "x")}));
  expect_bad({"key \"k\" is an array of arrays"},
             gguf_file({gguf_array("k", 9, 1, raw(uint32_t{0}) + raw(uint64_t{1}) + "x")}));
  expect_bad({"byte 37", "key \"k\"", "a bool of 2", "0 or 1"}, gguf_file({gguf_value("k", 7, "\x02")}));
  expect_bad({"a bool of 255"}, gguf_file({gguf_array("k", 7, 2, "\x01\xff")}));
}

TEST(GgufFile, RefusesNamesThatOccurTwice) {
  const std::string value = gguf_value("k", 0, "\x01");
  expect_bad({"m.gguf", "key \"k\" occurs twice"}, gguf_file({value, gguf_value("a", 0, "\x01"), value}));
  expect_bad({"tensor \"t\" occurs twice"},
             gguf_file({}, {gguf_tensor("t", {8}, 0, 0), gguf_tensor("t", {8}, 0, 32)}, std::string(64, 'x')));
}

TEST(GgufFile, RefusesRecordsOfTensorsThatAreNone) {
  const auto expect_record = [](std::initializer_list<std::string> words, const std::vector<uint64_t>& sizes,
                                uint32_t type) {
    expect_bad(words, gguf_file({}, {gguf_tensor("t", sizes, type, 0)}, std::string(64, 'x')));
  };
  expect_record({"byte 33", "tensor \"t\" has 5 dimensions", "at most 4"}, {1, 1, 1, 1, 1}, 0);
  expect_record({"tensor \"t\" has the unknown type 4;"}, {8}, 4);
  expect_record({"unknown type 4294967295"}, {8}, ~0u);
  expect_record({"tensor \"t\"", "a dimension of 9223372036854775808", "2^63"}, {kHuge}, 0);
  expect_record({"a dimension of 18446744073709551615"}, {1, ~uint64_t{0}}, 0);
  expect_record({"tensor \"t\" of Q4_0 has rows of 33", "multiple of 32"}, {33}, 2);
  expect_record({"Q4_0 has rows of 16"}, {16, 2}, 2);
  expect_record({"Q4_0 has rows of 1;"}, {}, 2);
  expect_record({"Q6_K has rows of 32", "multiple of 256"}, {32}, 14);
  // the number of dimensions is refused before memory is taken for them
  expect_bad({"4294967295 dimensions"}, gguf_header(1, 0) + gguf_text("t") + raw(~uint32_t{0}) + std::string(64, '\0'));
}

TEST(GgufFile, RefusesProductsThatOverflow) {
  const uint64_t big = uint64_t{1} << 32;
  const auto expect_sizes = [](const std::string& word, const std::vector<uint64_t>& sizes, uint32_t type) {
    expect_bad({"tensor \"t\"", word}, gguf_file({}, {gguf_tensor("t", sizes, type, 0)}, std::string(64, 'x')));
  };
  expect_sizes("2^63", {big, big}, 0);
  expect_sizes("2^63", {big, big / 2, 2, 2}, 0);
  expect_sizes("2^63", {kHuge / 4}, 28);  // elements fit, bytes do not
  expect_sizes("2^63", {0, big, big}, 0);
  // the largest that fits 63 bits, and would not after padding
  expect_sizes("cut short", {kHuge - 1}, 24);
  expect_sizes("cut short", {kHuge - 32}, 2);
}

TEST(GgufFile, RefusesOffsetsThatAreNotTheRunningSum) {
  const auto file = [](uint64_t first, uint64_t second, std::size_t data) {
    return gguf_file({}, {gguf_tensor("a", {1}, 0, first), gguf_tensor("b", {1}, 0, second)}, std::string(data, 'x'));
  };
  touch(Gguf(bytes_of(file(0, 32, 36)), "m.gguf"));
  touch(Gguf(bytes_of(file(0, 32, 64)), "m.gguf"));
  expect_bad({"m.gguf: tensor \"b\"", "at byte 4 ", "expected 32"}, file(0, 4, 36));
  expect_bad({"tensor \"b\"", "at byte 0 ", "expected 32"}, file(0, 0, 36));
  expect_bad({"tensor \"b\"", "at byte 64 ", "expected 32"}, file(0, 64, 96));
  expect_bad({"tensor \"a\"", "at byte 32 ", "expected 0"}, file(32, 0, 64));
  expect_bad({"tensor \"b\"", "18446744073709551584"}, file(0, ~uint64_t{31}, 64));
  expect_bad({"tensor \"b\"", "data of 4 bytes", "cut short"}, file(0, 32, 35));
  expect_bad({"tensor \"b\"", "cut short"}, file(0, 32, 4));
  expect_bad({"1 bytes after the last tensor"}, file(0, 32, 65));
}

TEST(GgufFile, RefusesAFileCutAtAnyByte) {
  // also in the padding at the end: the empty tensor after it still needs its place
  expect_every_cut_refused(small_file(), [](auto bytes) { touch(Gguf(bytes, "m.gguf")); });
}

TEST(GgufFile, TakesOrRefusesAnyMutationWithoutHarm) {
  constexpr std::string_view kTypesAndLimits("\0\1\2\3\4\5\6\7\10\11\12\13\14\377", 14);
  const Mutations mutations{.seed = 20261130, .bytes = kTypesAndLimits};
  const int refused = expect_mutations_borne(small_file(), mutations, [](auto bytes) { touch(Gguf(bytes, "m.gguf")); });
  EXPECT_GT(refused, mutations.trials / 2);
}

TEST(GgufFile, IsMappedFromAPathAndSurvivesAMove) {
  const TempFolder folder;
  std::ofstream(folder / "m.gguf", std::ios::binary) << small_file();
  Gguf first(folder / "m.gguf");
  const Gguf gguf = std::move(first);
  EXPECT_EQ(gguf.name(), (folder / "m.gguf").string());
  std::array<float, 3> row{};
  read_rows(*gguf.find("w"), 0, row);
  EXPECT_EQ(row[2], 3);
}

TEST(GgufFile, RefusesWhatIsNoRegularFile) {
  const TempFolder folder;
  expect_error(ErrorKind::kMissingInput, {"none.gguf"}, [&] { Gguf file(folder / "none.gguf"); });
  expect_error(ErrorKind::kBadData, {folder.path().string()}, [&] { Gguf file(folder.path()); });
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorKind::kBadData, {"pipe"}, [&] { Gguf file(folder / "pipe"); });
  expect_error(ErrorKind::kBadData, {"/dev/zero"}, [&] { Gguf file("/dev/zero"); });
  std::ofstream(folder / "empty.gguf").close();
  expect_error(ErrorKind::kBadData, {"empty.gguf", "cut short"}, [&] { Gguf file(folder / "empty.gguf"); });
}

TEST(GgufWhole, TakesAnyIntegerTypeWithinTheRange) {
  const std::string bytes =
      gguf_file({gguf_value("u8", 0, "\xff"), gguf_value("i8", 1, "\xff"), gguf_value("u16", 2, raw(uint16_t{65535})),
                 gguf_value("i16", 3, raw(int16_t{-2})), gguf_value("u32", 4, raw(~uint32_t{0})),
                 gguf_value("i32", 5, raw(int32_t{-3})), gguf_value("u64", 10, raw(kHuge - 1)),
                 gguf_value("i64", 11, raw(std::numeric_limits<int64_t>::min())), gguf_value("huge", 10, raw(kHuge)),
                 gguf_value("f32", 6, raw(2.0f)), gguf_value("bool", 7, "\x01"), gguf_value("text", 8, gguf_text("2")),
                 gguf_array("array", 4, 2, raw(uint32_t{1}) + raw(uint32_t{9})), gguf_array("floats", 6, 0, "")});
  const Gguf gguf(bytes_of(bytes), "m.gguf");
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(gguf.whole("u8", 0), 255);
  EXPECT_EQ(gguf.whole("i8", -1), -1);
  EXPECT_EQ(gguf.whole("u16", 0, 65535), 65535);
  EXPECT_EQ(gguf.whole("i16", -2, -2), -2);
  EXPECT_EQ(gguf.whole("u32", 0), 4294967295);
  EXPECT_EQ(gguf.whole("i32", kMin), -3);
  EXPECT_EQ(gguf.whole("u64", 0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(gguf.whole("i64", kMin), kMin);
  EXPECT_EQ(gguf.wholes("array", 1, 9), (std::vector<int64_t>{1, 9}));

  const auto refuse = [&](std::initializer_list<std::string> words, const std::string& key, int64_t min, int64_t max) {
    expect_error(ErrorKind::kBadData, words, [&] { gguf.whole(key, min, max); });
  };
  refuse({"m.gguf: key \"none\" is missing", "from 0 to 9"}, "none", 0, 9);
  refuse({"key \"huge\": found 9223372036854775808", "from 0 to 9"}, "huge", 0, 9);
  refuse({"key \"i8\": found -1"}, "i8", 0, 9);
  refuse({"key \"u8\": found 255"}, "u8", 0, 254);
  refuse({"key \"f32\": found f32"}, "f32", 0, 9);
  refuse({"key \"bool\": found bool"}, "bool", 0, 9);
  refuse({"key \"text\": found string"}, "text", 0, 9);
  refuse({"key \"array\": found array of u32"}, "array", 0, 9);
  const auto refuse_array = [&](std::initializer_list<std::string> words, const std::string& key) {
    expect_error(ErrorKind::kBadData, words, [&] { gguf.wholes(key, 0, 8); });
  };
  refuse_array({"key \"array\": element 1: found 9", "from 0 to 8"}, "array");
  refuse_array({"key \"u8\": found u8", "an array"}, "u8");
  refuse_array({"key \"none\" is missing"}, "none");
}

TEST(GgufValues, AreOfTheTypeThatIsAskedFor) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string bytes =
      gguf_file({gguf_value("f32", 6, raw(0.25f)), gguf_value("f64", 12, raw(0.1)), gguf_value("nan", 6, raw(nan)),
                 gguf_value("infinite", 12, raw(HUGE_VAL)), gguf_value("u32", 4, raw(uint32_t{1})),
                 gguf_value("text", 8, gguf_text(std::string("a\0\xff", 3))),
                 gguf_value("off", 7, std::string(1, '\0')), gguf_array("floats", 6, 2, f32s({nan, 1})),
                 gguf_array("texts", 8, 3, gguf_text("") + gguf_text("a") + gguf_text("")),
                 gguf_array("wholes", 4, 1, raw(uint32_t{1}))});
  const Gguf gguf(bytes_of(bytes), "m.gguf");
  EXPECT_EQ(gguf.number("f32", 0, 1), 0.25);
  EXPECT_EQ(gguf.number("f64", 0, 1), 0.1);
  EXPECT_EQ(gguf.text("text"), std::string("a\0\xff", 3));
  EXPECT_FALSE(gguf.boolean("off"));
  EXPECT_TRUE(std::isnan(gguf.numbers("floats")[0]));
  EXPECT_EQ(gguf.texts("texts"), (std::vector<std::string>{"", "a", ""}));

  const auto refuse = [](std::initializer_list<std::string> words, auto call) {
    expect_error(ErrorKind::kBadData, words, call);
  };
  refuse({"m.gguf: key \"nan\": found nan", "from 0 to 1"}, [&] { gguf.number("nan", 0, 1); });
  refuse({"key \"infinite\": found inf"}, [&] { gguf.number("infinite", 0, HUGE_VAL); });
  refuse({"key \"f32\": found 0.25"}, [&] { gguf.number("f32", 0.5, 1); });
  refuse({"key \"f64\": found 0.1"}, [&] { gguf.number("f64", 0, 0.05); });
  refuse({"key \"u32\": found u32"}, [&] { gguf.number("u32", 0, 1); });
  refuse({"key \"none\" is missing", "f32 or f64"}, [&] { gguf.number("none", 0, 1); });
  refuse({"key \"u32\": found u32", "a bool"}, [&] { gguf.boolean("u32"); });
  refuse({"key \"texts\": found array of string", "a string"}, [&] { gguf.text("texts"); });
  refuse({"key \"u32\": found u32", "a string"}, [&] { gguf.text("u32"); });
  refuse({"key \"text\": found string", "array of string"}, [&] { gguf.texts("text"); });
  refuse({"key \"floats\": found array of f32", "array of string"}, [&] { gguf.texts("floats"); });
  refuse({"key \"wholes\": found array of u32", "array of f32"}, [&] { gguf.numbers("wholes"); });
  refuse({"key \"floats\": found array of f32", "array of whole"}, [&] { gguf.wholes("floats", 0); });
}

TEST(GgufTensors, AreListedWhenTheyAreNotRead) {
  const std::string bytes = gguf_file({}, {gguf_tensor("t", {256}, 10, 0)}, std::string(84, 'x'));
  const Gguf gguf(bytes_of(bytes), "m.gguf");
  EXPECT_EQ(gguf.find("t")->type, "Q2_K");
  std::vector<float> out(256);
  expect_error(ErrorKind::kBadData, {"m.gguf: tensor \"t\"", "Q2_K", "Q4_K"},
               [&] { read_floats(*gguf.find("t"), out); });
}

TEST(GgufTensors, AreAskedForByNameAndShape) {
  const std::string bytes = small_file();
  const Gguf gguf(bytes_of(bytes), "m.gguf");
  expect_error(ErrorKind::kBadData, {"m.gguf: tensor \"v\" is missing"},
               [&] { gguf.tensor("v", std::array<int64_t, 1>{1}); });
  expect_error(ErrorKind::kBadData, {"tensor \"w\"", "found shape (2,3)", "expected (3,2)"}, [&] {
    gguf.tensor("w", std::array<int64_t, 2>{3, 2});
  });
}

TEST(GgufReadRows, RefusesWhatIsNoRangeOfRowsAndWritesNothing) {
  const std::string bytes = small_file();
  const Gguf gguf(bytes_of(bytes), "m.gguf");
  const GgufTensor& w = *gguf.find("w");
  std::array<float, 9> out{};
  const auto refuse = [&](int64_t first, std::size_t size) {
    EXPECT_THROW(read_rows(w, first, std::span(out).first(size)), LogicError) << first << ", " << size;
    EXPECT_EQ(out, (std::array<float, 9>{}));
  };
  refuse(0, 9);
  refuse(0, 4);
  refuse(-1, 3);
  refuse(1, 6);
  refuse(2, 3);
  refuse(std::numeric_limits<int64_t>::max(), 3);
  EXPECT_THROW(read_floats(w, std::span(out).first(3)), LogicError);
  EXPECT_NO_THROW(read_rows(w, 2, {}));
}

}  // namespace
}  // namespace headlight
