#include "predicted.h"

#include <gtest/gtest.h>

#include <cmath>

#include "encoded_text.h"
#include "headlight/base/error.h"
#include "headlight/tensor/buffer.h"

namespace headlight::cli {
namespace {

// a source whose targets are the tokens themselves
class Echo final : public DataSource {
 public:
  std::string kind() const override { return "echo"; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return byte_tokenizer(); }
  int64_t context() const override { return 3; }
  const std::vector<std::string>& classes() const override {
    static const std::vector<std::string> names{"all"};
    return names;
  }
  void training(uint64_t, int64_t, int64_t, int64_t, Samples&) const override { throw LogicError("Echo", "no"); }
  int64_t validation_count() const override { return 1; }
  void validation(int64_t, int64_t, Samples& out) const override {
    out.resize(1, 3);
    out.tokens = out.targets = {1, 2, 3};
    out.classes = {0, 0, 0};
  }
  std::string to_json() const override { return "{}"; }
};

TEST(PredictedSequences, PutEachLossBesideTheTokenItIsOf) {
  // windows of 3 of the text abcde, each after a start token: [a b c], then [d e] with c and d before it
  const auto source =
      encoded_text(byte_tokenizer(), {.ids = {'a', 'b', 'c', 'd', 'e'}, .start = int32_t{'^'}, .context = 3});
  Buffer<float> losses(2 * 3);
  for (int64_t i = 0; i < 6; ++i) losses[i] = static_cast<float>(i);
  const std::vector<PredictedSequence> all = predicted_sequences(*source, losses.view<2>({2, 3}));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].ids, (std::vector<int32_t>{'^', 'a', 'b', 'c'}));
  EXPECT_EQ(all[0].losses, (std::vector<std::optional<float>>{std::nullopt, 0, 1, 2}));
  EXPECT_EQ(all[1].ids, (std::vector<int32_t>{'^', 'c', 'd', 'e'}));
  EXPECT_EQ(all[1].losses, (std::vector<std::optional<float>>{std::nullopt, std::nullopt, 4, 5}));
}

TEST(PredictedSequences, RefuseTargetsThatAreNotTheNextToken) {
  Buffer<float> losses(3);
  EXPECT_THROW(predicted_sequences(Echo(), losses.view<2>({1, 3})), LogicError);
}

TEST(PredictedText, PutsWhatIsNoNumberBeforeTheHighest) {
  const std::vector<PredictedSequence> two{{{'a', 'b'}, {std::nullopt, 3.5F}},
                                           {{'c', 'd', 'e'}, {std::nullopt, 7.25F, std::nanf("")}}};
  const std::string text = predicted_text(two, *byte_tokenizer(), {});
  const std::size_t nan = text.find("nan"), high = text.find("7.2500"), low = text.find("3.5000");
  ASSERT_NE(low, std::string::npos) << text;
  EXPECT_LT(nan, high) << text;
  EXPECT_LT(high, low) << text;
}

}  // namespace
}  // namespace headlight::cli
