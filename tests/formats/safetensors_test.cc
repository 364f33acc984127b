#include "headlight/formats/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "headlight/base/random.h"
#include "support/expect_error.h"
#include "support/mutate.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

std::string le64(uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, 8);
  return bytes;
}

std::string file_of(const std::string& header, const std::string& data) { return le64(header.size()) + header + data; }

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values.data(), values.size()));
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

void write(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Reads every byte that the content hands out, so that a sanitizer sees one that is out of bounds.
unsigned touch(const SafetensorsContent& content) {
  unsigned sum = 0;
  for (const StoredTensor& tensor : content.tensors) {
    for (std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
  }
  return sum;
}

void expect_bad(std::initializer_list<std::string> words, const std::string& bytes) {
  SCOPED_TRACE(bytes.substr(0, 120));
  expect_error(ErrorKind::kBadData, words, [&] { parse_safetensors(bytes_of(bytes), "m.safetensors"); });
}

void expect_bad_header(std::initializer_list<std::string> words, const std::string& header, std::size_t data = 0) {
  expect_bad(words, file_of(header, std::string(data, 'x')));
}

TEST(ParseSafetensors, GivesNamesTypesShapesAndBytes) {
  // written by hand: unaligned, not in the order of names, with spaces after the header
  const std::string header = R"({"__metadata__":{"format":"pt"},)" + entry("z", "U8", "[3]", "[0,3]") + "," +
                             entry("a", "F32", "[2,1]", "[3,11]") + "," + entry("none", "F32", "[0,5]", "[11,11]") +
                             "," + entry("scalar", "I16", "[]", "[11,13]") + "}   ";
  const std::string bytes = file_of(header, "abcWXYZwxyz\x01\x02");
  const SafetensorsContent content = parse_safetensors(bytes_of(bytes), "m.safetensors");
  ASSERT_EQ(content.tensors.size(), 4u);
  EXPECT_EQ(content.metadata.at("format"), "pt");
  EXPECT_EQ(content.tensors[0].name, "z");
  EXPECT_EQ(content.tensors[1].name, "a");
  EXPECT_EQ(content.tensors[1].dtype, DType::kF32);
  EXPECT_EQ(content.tensors[1].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::memcmp(content.tensors[1].bytes.data(), "WXYZwxyz", 8), 0);
  EXPECT_EQ(content.tensors[2].count, 0);
  EXPECT_EQ(content.tensors[3].count, 1);
  EXPECT_TRUE(content.tensors[3].shape.empty());
}

TEST(ParseSafetensors, AcceptsAFileWithoutTensors) {
  EXPECT_TRUE(parse_safetensors(bytes_of(file_of("{}", "")), "m.safetensors").tensors.empty());
}

TEST(ParseSafetensors, TakesOffsetsInAnyOrderOfNamesWithEmptyTensorsBetween) {
  const std::string header = "{" + entry("a", "U8", "[2]", "[2,4]") + "," + entry("b", "U8", "[0]", "[2,2]") + "," +
                             entry("c", "U8", "[2]", "[0,2]") + "," + entry("d", "U8", "[0]", "[0,0]") + "}";
  const std::string bytes = file_of(header, "1234");
  EXPECT_EQ(parse_safetensors(bytes_of(bytes), "m.safetensors").tensors.size(), 4u);
}

TEST(ParseSafetensors, ListsTypesThatItDoesNotRead) {
  const std::string header = "{" + entry("a", "F8_E4M3", "[3]", "[0,3]") + "," + entry("b", "F4", "[2,1]", "[3,4]") +
                             "," + entry("c", "C64", "[1]", "[4,12]") + "}";
  const std::string bytes = file_of(header, std::string(12, 'x'));
  const SafetensorsContent content = parse_safetensors(bytes_of(bytes), "m.safetensors");
  ASSERT_EQ(content.tensors.size(), 3u);
  EXPECT_EQ(content.tensors[0].type, "F8_E4M3");
  EXPECT_FALSE(content.tensors[0].dtype.has_value());
  std::array<float, 3> out{};
  expect_error(ErrorKind::kBadData, {"m.safetensors", "\"a\"", "F8_E4M3"},
               [&] { read_floats(content.tensors[0], out); });
}

TEST(ParseSafetensors, RefusesAWrongLengthOfTheHeader) {
  expect_bad({"m.safetensors", "0 bytes long"}, "");
  expect_bad({"7 bytes long"}, "1234567");
  expect_bad({"byte 0", "header of 100 bytes in a file of 10", "at most 2"}, le64(100) + "{}");
  expect_bad({"byte 0", "header of 3 bytes"}, le64(3) + "{}");
  expect_bad({"100000001", "at most 100000000"}, le64(100'000'001) + "{}");
  expect_bad({"byte 0", "18446744073709551615"}, le64(~uint64_t{0}) + "{}");
  expect_bad({"byte 0", "18446744073709551608"}, le64(~uint64_t{7}) + "{}");
  expect_bad({"byte 8"}, le64(0));
  expect_bad({"byte 8"}, file_of(" {}", ""));
  expect_bad({"byte 8"}, file_of("[]", ""));
}

TEST(ParseSafetensors, AdvisesOnAPickle) {
  expect_bad({"pickle", "safetensors.torch.save_file"}, std::string("PK\3\4\0\0\x08\x08\0\0\0\0", 12));
  expect_bad({"pickle"}, std::string("\x80\x02}q\0X\4\0\0\0", 10));
}

TEST(ParseSafetensors, RefusesAHeaderThatIsNotStrictJson) {
  expect_bad_header({"byte 9"}, "{x}");
  expect_bad_header({"UTF-8"}, "{\"\xff\":1}");
  expect_bad_header({"byte 10", "zero byte"}, std::string("{}\0{}", 5));
  expect_bad_header({"nested deeper"}, "{\"a\":" + std::string(100'000, '['));
  expect_bad_header({"key a occurs twice"},
                    "{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("a", "U8", "[1]", "[1,2]") + "}", 2);
  expect_bad_header({"key a occurs twice"},
                    "{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("\\u0061", "U8", "[1]", "[1,2]") + "}", 2);
  expect_bad_header({"key dtype occurs twice"}, R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                    1);
}

TEST(ParseSafetensors, RefusesAnEntryThatIsNotOne) {
  expect_bad_header({"tensor \"a\"", "expected an object"}, R"({"a":[]})");
  expect_bad_header({"tensor \"a\"", "key dtype is missing"}, R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1);
  expect_bad_header({"key shape is missing"}, R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1);
  expect_bad_header({"key data_offsets is missing"}, R"({"a":{"dtype":"U8","shape":[1]}})", 1);
  expect_bad_header({"key extra is unknown"}, R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1}})", 1);
  expect_bad_header({"key dtype", "expected a string"}, R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,1]}})", 1);
  expect_bad_header({"type \"Q9\" is unknown"}, "{" + entry("a", "Q9", "[1]", "[0,1]") + "}", 1);
  expect_bad_header({"data_offsets has 1 numbers"}, "{" + entry("a", "U8", "[1]", "[1]") + "}", 1);
  expect_bad_header({"data_offsets has 3 numbers"}, "{" + entry("a", "U8", "[1]", "[0,1,1]") + "}", 1);
  expect_bad_header({"__metadata__", "found 1", "expected a string"}, R"({"__metadata__":{"a":1}})");
  expect_bad_header({"__metadata__", "expected an object"}, R"({"__metadata__":"a"})");
}

TEST(ParseSafetensors, RefusesWhatIsNoWholeNumber) {
  for (const std::string number : {"1.0", "-1", "-0", "1e0", "\"1\"", "null", "true", "[1]", "9223372036854775808",
                                   "18446744073709551616", "1e400", "123456789012345678901234567890"}) {
    expect_bad_header({"m.safetensors"}, "{" + entry("a", "U8", "[" + number + "]", "[0,1]") + "}", 1);
    expect_bad_header({"m.safetensors"}, "{" + entry("a", "U8", "[1]", "[0," + number + "]") + "}", 1);
  }
  expect_bad_header({"key shape[0]: found -1; expected a whole number >= 0"},
                    "{" + entry("a", "U8", "[-1]", "[0,1]") + "}", 1);
}

TEST(ParseSafetensors, RefusesProductsThatOverflow) {
  expect_bad_header({"tensor \"a\"", "overflows"}, "{" + entry("a", "U8", "[4294967296,4294967296]", "[0,0]") + "}");
  expect_bad_header({"overflows"}, "{" + entry("a", "U8", "[3037000500,3037000500]", "[0,0]") + "}");
  expect_bad_header({"overflows"}, "{" + entry("a", "F64", "[2305843009213693952]", "[0,0]") + "}");
  // a 0 does not excuse the strides
  expect_bad_header({"overflows"}, "{" + entry("a", "U8", "[0,4294967296,4294967296]", "[0,0]") + "}");
  expect_bad_header({"whole bytes"}, "{" + entry("a", "F4", "[3]", "[0,1]") + "}", 1);
}

TEST(ParseSafetensors, RefusesOffsetsThatDoNotFit) {
  const auto two = [](const std::string& a, const std::string& b) {
    return "{" + entry("a", "U8", "[2]", a) + "," + entry("b", "U8", "[2]", b) + "}";
  };
  EXPECT_NO_THROW(parse_safetensors(bytes_of(file_of(two("[0,2]", "[2,4]"), "1234")), "m.safetensors"));
  expect_bad_header({"tensor \"b\"", "at byte 1", "expected 2"}, two("[0,2]", "[1,3]"), 3);
  expect_bad_header({"tensor \"b\"", "at byte 0", "expected 2"}, two("[0,2]", "[0,2]"), 2);
  expect_bad_header({"tensor \"b\"", "at byte 3", "expected 2"}, two("[0,2]", "[3,5]"), 5);
  expect_bad_header({"tensor \"a\"", "at byte 1", "expected 0"}, two("[1,3]", "[3,5]"), 5);
  expect_bad_header({"begin at 2 and end at 0"}, two("[2,0]", "[2,4]"), 4);
  expect_bad_header({"tensor \"b\"", "ends at byte 4", "cut short"}, two("[0,2]", "[2,4]"), 3);
  expect_bad_header({"1 bytes after the last tensor"}, two("[0,2]", "[2,4]"), 5);
  expect_bad_header({"5 bytes after the last tensor"}, "{}", 5);
  expect_bad_header({"hold 3 bytes", "expected 2"}, two("[0,3]", "[3,5]"), 5);
  expect_bad_header({"hold 4 bytes", "expected 8 for shape (2) of F32"}, "{" + entry("a", "F32", "[2]", "[0,4]") + "}",
                    4);
}

std::string small_file() {
  const TempFolder folder;
  const std::vector<float> w{1, 2, 3, 4, 5, 6};
  const std::vector<uint8_t> flags{1, 0, 1};
  write_safetensors(folder / "m.safetensors",
                    {{"flags", DType::kBool, {3}, bytes_of(flags)}, {"w", DType::kF32, {2, 3}, bytes_of(w)}},
                    {{"step", "7"}});
  return read_file(folder / "m.safetensors");
}

TEST(ParseSafetensors, RefusesAFileCutAtAnyByte) {
  const std::string whole = small_file();
  EXPECT_EQ(parse_safetensors(bytes_of(whole), "m.safetensors").tensors.size(), 2u);
  expect_every_cut_refused(whole, [](auto bytes) { touch(parse_safetensors(bytes, "m.safetensors")); });
}

TEST(ParseSafetensors, TakesOrRefusesAnyMutationWithoutHarm) {
  const Mutations mutations{.seed = 20240817, .bytes = "0123456789[]{}\",:-.e\\"};
  const int refused = expect_mutations_borne(small_file(), mutations,
                                             [](auto bytes) { touch(parse_safetensors(bytes, "m.safetensors")); });
  EXPECT_GT(refused, mutations.trials / 2);
}

TEST(WriteSafetensors, ReadsBackEveryTypeAndShape) {
  const TempFolder folder;
  const auto path = folder / "m.safetensors";
  RandomStream random(5, 0, 0);
  std::vector<std::vector<uint8_t>> data;
  std::vector<TensorToWrite> tensors;
  const std::vector<std::vector<int64_t>> shapes{{}, {0}, {1}, {3, 5}, {2, 0, 4}, {7}};
  data.reserve(shapes.size() * std::size(kDTypes));
  for (const DTypeInfo& info : kDTypes) {
    for (const std::vector<int64_t>& shape : shapes) {
      int64_t count = 1;
      for (int64_t size : shape) count *= size;
      std::vector<uint8_t>& bytes = data.emplace_back(static_cast<std::size_t>(count * info.bytes));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
      tensors.push_back({"tensor é\"\n" + std::to_string(data.size()), info.dtype, shape, bytes_of(bytes)});
    }
  }
  const std::map<std::string, std::string> metadata{{"format", "headlight"}, {"note", "a\"b\\c\n"}};
  write_safetensors(path, tensors, metadata);

  const Safetensors read(path);
  EXPECT_EQ(read.metadata(), metadata);
  ASSERT_EQ(read.tensors().size(), tensors.size());
  for (const TensorToWrite& wrote : tensors) {
    const StoredTensor& got = read.tensor(wrote.name, wrote.shape);
    EXPECT_EQ(got.dtype, wrote.dtype);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.bytes.data()) % dtype_info(wrote.dtype).bytes, 0u) << got.name;
    ASSERT_EQ(got.bytes.size(), wrote.bytes.size());
    EXPECT_TRUE(std::equal(got.bytes.begin(), got.bytes.end(), wrote.bytes.begin())) << got.name;
  }
}

TEST(WriteSafetensors, GivesTheSameBytesWhateverTheOrder) {
  const TempFolder folder;
  const std::vector<float> a{1, 2};
  const std::vector<uint8_t> b{3};
  const TensorToWrite first{"a", DType::kF32, {2}, bytes_of(a)};
  const TensorToWrite second{"b", DType::kU8, {1}, bytes_of(b)};
  write_safetensors(folder / "1", {first, second});
  write_safetensors(folder / "2", {second, first});
  EXPECT_EQ(read_file(folder / "1"), read_file(folder / "2"));
  EXPECT_EQ(read_file(folder / "1"), file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                             R"("b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})"
                                             "      ",
                                             std::string("\0\0\x80\x3f\0\0\0\x40\x03", 9)));
}

TEST(WriteSafetensors, RefusesWhatTheFormatCannotHoldAndLeavesTheOldFile) {
  const TempFolder folder;
  const auto path = folder / "m.safetensors";
  write(path, "old");
  const std::vector<float> w{1, 2};
  const auto refuse = [&](std::vector<TensorToWrite> tensors, const std::map<std::string, std::string>& metadata = {}) {
    EXPECT_THROW(write_safetensors(path, std::move(tensors), metadata), LogicError);
    EXPECT_EQ(read_file(path), "old");
  };
  refuse({{"w", DType::kF32, {3}, bytes_of(w)}});
  refuse({{"w", DType::kF64, {2}, bytes_of(w)}});
  refuse({{"w", DType::kF32, {-2}, bytes_of(w)}});
  refuse({{"w", DType::kF32, {-1, -2}, bytes_of(w)}});
  refuse({{"w", DType::kF32, {int64_t{1} << 62, 8}, {}}});
  refuse({{"w", DType::kF32, {2}, bytes_of(w)}, {"w", DType::kF32, {2}, bytes_of(w)}});
  refuse({{"__metadata__", DType::kF32, {2}, bytes_of(w)}});
  refuse({{"\xff", DType::kF32, {2}, bytes_of(w)}});
  refuse({}, {{"note", "\xff"}});
}

TEST(Safetensors, NamesWhatIsMissingOrOfAnotherShape) {
  const TempFolder folder;
  const auto path = folder / "m.safetensors";
  const std::vector<float> w{1, 2};
  write_safetensors(path, {{"w", DType::kF32, {2}, bytes_of(w)}});
  const Safetensors file(path);
  EXPECT_NE(file.find("w"), nullptr);
  EXPECT_EQ(file.find("v"), nullptr);
  expect_error(ErrorKind::kBadData, {path.string(), "\"v\" is missing"},
               [&] { file.tensor("v", std::array<int64_t, 1>{2}); });
  expect_error(ErrorKind::kBadData, {path.string(), "\"w\"", "found shape (2)", "expected (2,1)"}, [&] {
    file.tensor("w", std::array<int64_t, 2>{2, 1});
  });
}

TEST(Safetensors, RefusesWhatIsNoRegularFile) {
  const TempFolder folder;
  expect_error(ErrorKind::kMissingInput, {"absent"}, [&] { Safetensors(folder / "absent.safetensors"); });
  expect_error(ErrorKind::kBadData, {"is a folder"}, [&] { Safetensors{folder.path()}; });
  expect_error(ErrorKind::kBadData, {"is a device"}, [&] { Safetensors("/dev/zero"); });
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorKind::kBadData, {"is a named pipe"}, [&] { Safetensors(folder / "pipe"); });
  write(folder / "empty.safetensors", "");
  expect_error(ErrorKind::kBadData, {"0 bytes long"}, [&] { Safetensors(folder / "empty.safetensors"); });
}

class Shards : public ::testing::Test {
 protected:
  Shards() {
    write_safetensors(folder_ / "s1.safetensors",
                      {{"a", DType::kF32, {2}, bytes_of(a_)}, {"b", DType::kF32, {2}, bytes_of(b_)}});
    write_safetensors(folder_ / "s2.safetensors", {{"c", DType::kF32, {2}, bytes_of(c_)}});
  }
  Safetensors open(const std::string& weight_map) {
    write(index_, R"({"metadata":{"total_size":24},"weight_map":)" + weight_map + "}");
    return Safetensors(index_);
  }
  void expect_bad(std::initializer_list<std::string> words, const std::string& weight_map) {
    SCOPED_TRACE(weight_map);
    expect_error(ErrorKind::kBadData, words, [&] { open(weight_map); });
  }

  TempFolder folder_;
  std::filesystem::path index_ = folder_ / "model.safetensors.index.json";
  std::vector<float> a_{1, 2}, b_{3, 4}, c_{5, 6};
};

TEST_F(Shards, AreOneModel) {
  const Safetensors model = open(R"({"c":"s2.safetensors","a":"s1.safetensors","b":"s1.safetensors"})");
  ASSERT_EQ(model.tensors().size(), 3u);
  std::array<float, 2> out{};
  read_floats(model.tensor("c", std::array<int64_t, 1>{2}), out);
  EXPECT_EQ(out, (std::array<float, 2>{5, 6}));
}

TEST_F(Shards, GiveOnlyWhatTheIndexTakesFromThem) {
  const Safetensors model = open(R"({"c":"s2.safetensors","a":"s1.safetensors"})");
  EXPECT_EQ(model.find("b"), nullptr);
}

TEST_F(Shards, MustLieInTheFolderOfTheIndex) {
  expect_bad({"model.safetensors.index.json", "key a", "outside"}, R"({"a":"../s1.safetensors"})");
  expect_bad({"outside"}, R"({"a":"sub/../../s1.safetensors"})");
  expect_bad({"outside"}, "{\"a\":\"" + (folder_ / "s1.safetensors").string() + "\"}");
  expect_bad({"outside"}, R"({"a":".."})");
  expect_bad({"outside"}, R"({"a":""})");
}

TEST_F(Shards, MustBeThereAndHoldTheirTensors) {
  expect_bad({"index.json", "s3.safetensors", "cannot be opened"}, R"({"a":"s1.safetensors","d":"s3.safetensors"})");
  expect_bad({"s1.safetensors", "1 of its 2"}, R"({"a":"s1.safetensors","c":"s1.safetensors"})");
  expect_bad({"is a folder"}, R"({"a":"."})");
  expect_bad({"key a: found 1"}, R"({"a":1})");
  expect_bad({"expected an object"}, R"(["s1.safetensors"])");
  write(index_, "{}");
  expect_error(ErrorKind::kBadData, {"weight_map is missing"}, [&] { Safetensors{index_}; });
}

StoredTensor stored(DType dtype, std::span<const std::byte> bytes) {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t count = static_cast<int64_t>(bytes.size()) / info.bytes;
  return {"m.safetensors", "w", std::string(info.name), dtype, {count}, count, bytes};
}

TEST(ReadFloats, WidensEveryFloatTypeAtAnyAlignment) {
  std::string bytes = "?" + std::string("\x00\x3c\x00\xc0", 4);
  std::array<float, 2> out{};
  read_floats(stored(DType::kF16, bytes_of(bytes).subspan(1)), out);
  EXPECT_EQ(out, (std::array<float, 2>{1, -2}));
  bytes = "?" + std::string("\x80\x3f\x00\xc0", 4);
  read_floats(stored(DType::kBF16, bytes_of(bytes).subspan(1)), out);
  EXPECT_EQ(out, (std::array<float, 2>{1, -2}));
  const std::vector<double> wide{0.1, 1e300};
  read_floats(stored(DType::kF64, bytes_of(wide)), out);
  EXPECT_EQ(out, (std::array<float, 2>{0.1f, std::numeric_limits<float>::infinity()}));
  const std::vector<float> same{std::numeric_limits<float>::denorm_min(), -0.0f};
  read_floats(stored(DType::kF32, bytes_of(same)), out);
  EXPECT_EQ(std::memcmp(out.data(), same.data(), 8), 0);
}

TEST(ReadFloats, RefusesIntegersAndOtherSizes) {
  const std::vector<int32_t> whole{1, 2};
  std::array<float, 2> out{};
  expect_error(ErrorKind::kBadData, {"m.safetensors: tensor \"w\"", "type I32"},
               [&] { read_floats(stored(DType::kI32, bytes_of(whole)), out); });
  const std::vector<float> three{1, 2, 3};
  EXPECT_THROW(read_floats(stored(DType::kF32, bytes_of(three)), out), LogicError);
}

}  // namespace
}  // namespace headlight
