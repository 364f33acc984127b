#include "text/normalizer.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "support/expect_error.h"
#include "text/base64.h"
#include "text/utf8.h"

namespace headlight {
namespace {

std::string normalized(const std::vector<NormalizerStep>& steps, const std::string& text) {
  Flow flow(text, 0, text.size(), true);
  normalize(steps, flow);
  return std::string(flow.text());
}

TEST(Normalize, GivesTheFourForms) {
  const std::string text = "e\xCC\x81 \xEF\xAC\x81 \xED\x95\x9C \xE2\x84\xAB";  // e + acute, fi, han, Angstrom
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfc}}, text), "\xC3\xA9 \xEF\xAC\x81 \xED\x95\x9C \xC3\x85");
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfd}}, text),
            "e\xCC\x81 \xEF\xAC\x81 \xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB A\xCC\x8A");
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfkc}}, text), "\xC3\xA9 fi \xED\x95\x9C \xC3\x85");
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfkd}}, text),
            "e\xCC\x81 fi \xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB A\xCC\x8A");
}

TEST(Normalize, OrdersMarksAndComposesOverCompatibleCharacters) {
  // below before above, whatever the order they came in
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfc}}, "a\xCC\x81\xCC\xA3"), "\xE1\xBA\xA1\xCC\x81");
  // marks of one class keep their order, however many
  std::string many = "a";
  for (int i = 0; i < 40; ++i) many += i % 3 == 0 ? "\xCC\x81" : "\xCC\x80";
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfd}}, many), many);
  // halfwidth ka and voiced sign make one ga
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfkc}}, "\xEF\xBD\xB6\xEF\xBE\x9E"), "\xE3\x82\xAC");
  // Hangul letters become a syllable
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfc}}, "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "\xED\x95\x9C");
}

TEST(Normalize, KeepsBrokenBytesUntilTheyAreReplaced) {
  const std::string text = "\xC3\xA9\xFF\xCC\x81z\xE2\x82";
  EXPECT_EQ(normalized({UnicodeForm{NormalForm::kNfd}}, text), "e\xCC\x81\xFF\xCC\x81z\xE2\x82");
  EXPECT_EQ(normalized({LowerCase{}, StripMarks{true}}, text), "\xC3\xA9\xFFz\xE2\x82");
  EXPECT_EQ(normalized({ReplaceBroken{}}, text), "\xC3\xA9\xEF\xBF\xBD\xCC\x81z\xEF\xBF\xBD");
}

TEST(Normalize, KnowsWhereEachByteCameFrom) {
  const std::string text = "..\xEF\xAC\x81x";  // fi
  Flow flow(text, 2, text.size(), true);
  normalize({Prepend{">"}, UnicodeForm{NormalForm::kNfkc}}, flow);
  ASSERT_EQ(flow.text(), ">fix");
  EXPECT_EQ(flow.span(0, 1), (TokenSpan{2, 2}));
  EXPECT_EQ(flow.span(1, 2), (TokenSpan{2, 5}));
  EXPECT_EQ(flow.span(2, 4), (TokenSpan{2, 6}));
}

TEST(Normalize, ChangesCaseAsUnicodeSays) {
  EXPECT_EQ(normalized({LowerCase{}}, "\xC3\x80\xC4\xB0 \xCE\x91\xCE\xA3 \xE1\xBA\x9E"),
            "\xC3\xA0i\xCC\x87 \xCE\xB1\xCF\x83 \xC3\x9F");
}

TEST(Normalize, CleansAndSetsApartAsBert) {
  const std::vector<NormalizerStep> steps{CleanText{}, SpaceIdeographs{}};
  EXPECT_EQ(normalized(steps, std::string("a\0\x01\xE2\x80\x8B"
                                          "b\t\xC2\xA0\xE4\xBD\xA0"
                                          "c",
                                          14)),
            "ab   \xE4\xBD\xA0 c");
}

TEST(Normalize, LeavesOutTheReplacementCharacterWhereItCleans) {
  EXPECT_EQ(normalized({ReplaceBroken{}, CleanText{}}, "a\xFF\xEF\xBF\xBD z"), "a z");
}

TEST(Normalize, StripsAndPrepends) {
  EXPECT_EQ(normalized({Strip{true, false}}, " \n\xE3\x80\x80 a "), "a ");
  EXPECT_EQ(normalized({Strip{false, true}}, " a \xC2\xA0\n"), " a");
  EXPECT_EQ(normalized({Strip{true, true}, Prepend{"x"}}, " \t "), "");
  EXPECT_EQ(normalized({SingleBlanks{}}, "  a   b \n "), "a b \n");
}

// A charsmap by hand: A becomes "<a>".
std::string tiny_charsmap() {
  // the root's offset leads to unit 1; unit (1 ^ 'A') is labelled 'A', ends there, and leads to its value
  std::vector<uint32_t> units(256, 0);
  units[0] = 1u << 10;
  units[1 ^ 'A'] = static_cast<uint32_t>('A') | 1u << 8 | 3u << 10;
  units[1 ^ 'A' ^ 3] = 0x80000000u | 2u;
  std::string bytes;
  const auto put = [&](uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * i) & 0xFF));
  };
  put(static_cast<uint32_t>(units.size() * 4));
  for (uint32_t unit : units) put(unit);
  return bytes + std::string("x\0<a>\0", 6);
}

TEST(ApplyCharsmap, ReplacesWhatTheMapKnows) {
  const auto map = std::make_shared<const Charsmap>(tiny_charsmap(), "map");
  EXPECT_EQ(normalized({ApplyCharsmap{map}}, "bAAb\xFF"), "b<a><a>b\xFF");
  EXPECT_EQ(normalized({ApplyCharsmapToGraphemes{map}}, "bAAb\xFF"), "b<a><a>b\xFF");
  // all of a short grapheme goes with its first character, as the reference has it
  EXPECT_EQ(normalized({ApplyCharsmapToGraphemes{map}},
                       "A\xCC\x81"
                       "b"),
            "<a>b");
  EXPECT_EQ(normalized({ApplyCharsmap{map}},
                       "A\xCC\x81"
                       "b"),
            "<a>\xCC\x81"
            "b");
}

TEST(Charsmap, RefusesSizesThatDoNotFit) {
  const auto refuse = [](const std::string& bytes, std::initializer_list<std::string> words) {
    expect_error(ErrorKind::kBadData, words, [&] { Charsmap(bytes, "a map"); });
  };
  const std::string whole = tiny_charsmap();
  refuse("", {"a map", "0 bytes"});
  refuse(std::string("\0\0\0\0\0", 5), {"a map of 0 bytes"});
  refuse(std::string("\xFF\xFF\xFF\xFF", 4), {"4294967295"});
  refuse(whole.substr(0, whole.size() - 1), {"without an end"});
  refuse(whole.substr(0, 1028), {"without an end"});
  // offsets beyond the map lead nowhere
  std::string wild = whole;
  for (std::size_t at = 4; at < 1028; ++at) wild[at] = static_cast<char>(0xFF);
  const auto map = std::make_shared<const Charsmap>(wild, "map");
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_FALSE(map->longest(std::string(3, static_cast<char>(byte))).has_value());
}

TEST(Base64, ReadsBackWhatItWrites) {
  std::string bytes;
  for (int size = 0; size < 300; ++size) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(size * 37 % 256);
  }
  EXPECT_EQ(to_base64("Man"), "TWFu");
  EXPECT_EQ(to_base64("Ma"), "TWE=");
  for (const char* wrong : {"A", "AA=", "A?==", "====", "AA==AA=="})
    EXPECT_FALSE(from_base64(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace headlight
