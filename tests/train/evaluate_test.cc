#include "headlight/train/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "headlight/base/error.h"
#include "headlight/text/tasks.h"
#include "headlight/train/batches.h"
#include "support/expect_error.h"
#include "train/small.h"

namespace headlight {
namespace {

// Five sequences of six positions over eight tokens with classes in a pattern, whose targets are the tokens themselves.
class Given final : public DataSource {
 public:
  std::string kind() const override { return "given"; }
  std::shared_ptr<const Tokenizer> tokenizer() const override {
    return symbol_tokenizer({"a", "b", "c", "d", "e", "f", "g", "h"}, std::nullopt);
  }
  int64_t context() const override { return 6; }
  const std::vector<std::string>& classes() const override {
    static const std::vector<std::string> names{"x", "y", "never"};
    return names;
  }
  void training(uint64_t, int64_t, int64_t, int64_t, Samples&) const override {
    throw LogicError("Given", "is for validation");
  }
  int64_t validation_count() const override { return 5; }
  void validation(int64_t first, int64_t size, Samples& out) const override {
    out.resize(size, 6);
    for (int64_t i = 0; i < size * 6; ++i) {
      const std::size_t at = static_cast<std::size_t>(i);
      const int64_t row = first + i / 6;
      const int64_t t = i % 6;
      out.tokens[at] = static_cast<int32_t>((row + t) % 8);
      // tokens 0 and 1 are wrong: the model below predicts the token itself
      out.targets[at] = t == 2 ? kNoTarget : out.tokens[at] < 2 ? 7 : out.tokens[at];
      out.classes[at] = t >= 4;
    }
  }
  std::string to_json() const override { return "{}"; }
};

// A model without blocks whose unembedding is large on the diagonal.
Model copying_model() {
  Model model({.vocabulary = 8, .context = 8, .width = 8, .blocks = 1, .heads = 2, .feed_forward = FeedForward::kNone});
  const View<float, 2> embed = model.matrix("embed.W_E");
  const View<float, 2> unembed = model.matrix("unembed.W_U");
  for (int64_t i = 0; i < 8; ++i) embed(i, i) = unembed(i, i) = 1;
  for (const char* name : {"ln_final.w"}) {
    const View<float, 1> w = model.vector(name);
    for (int64_t i = 0; i < 8; ++i) w(i) = 1;
  }
  return model;
}

TEST(Evaluator, TellsClassesAndSpansApart) {
  const Model model = copying_model();
  const Evaluation result = Evaluator(model, std::make_shared<Given>()).run(model);
  ASSERT_EQ(result.classes.size(), 3u);
  EXPECT_EQ(result.sequences, 5);
  EXPECT_EQ(result.targets, 25);
  // by hand: tokens of row r at position t are r + t; wrong are those that are 0 or 1 mod 8
  const ClassResult& x = result.classes[0];  // positions 0, 1 | 3: two spans per row, parted by the ignored one
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.targets, 15);
  EXPECT_EQ(x.spans, 10);
  EXPECT_DOUBLE_EQ(x.accuracy, 12.0 / 15);      // wrong: r 0 at t 0 and 1, r 1 at t 0
  EXPECT_DOUBLE_EQ(x.span_accuracy, 8.0 / 10);  // wrong: the first span of rows 0 and 1
  const ClassResult& y = result.classes[1];     // positions 4, 5
  EXPECT_EQ(y.targets, 10);
  EXPECT_EQ(y.spans, 5);
  EXPECT_DOUBLE_EQ(y.accuracy, 7.0 / 10);  // wrong: r 3 at t 5, r 4 at t 4 and 5
  EXPECT_DOUBLE_EQ(y.span_accuracy, 3.0 / 5);
  EXPECT_TRUE(std::isnan(result.classes[2].loss));
  EXPECT_EQ(result.classes[2].targets, 0);
  EXPECT_DOUBLE_EQ(result.accuracy, 19.0 / 25);
  EXPECT_NEAR(result.loss, (15 * x.loss + 10 * y.loss) / 25, 1e-12);  // sums of doubles
}

TEST(Evaluator, GivesTheSameBitsForAnyBatch) {
  const TrainerOptions options = resolve(small_run());
  Model model(options.model);
  initialise(model, 3);
  const Evaluation whole = Evaluator(model, options.data, 6).run(model);
  EXPECT_GT(whole.loss, 2.0);
  for (const int64_t batch : {1, 2, 4, 100}) {
    const Evaluation part = Evaluator(model, options.data, batch).run(model);
    EXPECT_EQ(part.loss, whole.loss) << "batch " << batch;
    EXPECT_EQ(part.classes[1].loss, whole.classes[1].loss) << "batch " << batch;
    EXPECT_EQ(part.classes[1].accuracy, whole.classes[1].accuracy) << "batch " << batch;
  }
}

TEST(Evaluator, GivesTheLossOfEachTargetAndSaysHowFarItIs) {
  const Model model = copying_model();
  Samples samples;
  Given().validation(0, 5, samples);
  for (const int64_t batch : {1, 2, 5}) {
    Buffer<float> losses(5 * 6);
    std::fill_n(losses.data(), 5 * 6, -1.0F);
    std::vector<int64_t> done;
    const auto progress = [&](int64_t sequences, int64_t count) {
      EXPECT_EQ(count, 5);
      done.push_back(sequences);
    };
    const Evaluation result =
        Evaluator(model, std::make_shared<Given>(), batch).run(model, {losses.view<2>({5, 6}), progress});
    EXPECT_EQ(done, (batch == 1   ? std::vector<int64_t>{1, 2, 3, 4, 5}
                     : batch == 2 ? std::vector<int64_t>{2, 4, 5}
                                  : std::vector<int64_t>{5}));
    double sum = 0;
    for (std::size_t i = 0; i < 30; ++i) {
      const float loss = losses[static_cast<int64_t>(i)];
      if (samples.targets[i] == kNoTarget) {
        EXPECT_EQ(loss, 0) << "position " << i;
      } else {
        EXPECT_GT(loss, 0) << "position " << i;
        sum += double{loss};
      }
    }
    EXPECT_NEAR(sum / 25, result.loss, 1e-12);  // sums of doubles
  }
  Buffer<float> losses(5 * 7);
  EXPECT_THROW(Evaluator(model, std::make_shared<Given>()).run(model, {losses.view<2>({5, 7})}), LogicError);
}

TEST(Evaluator, RefusesDataThatTheModelCannotRead) {
  Model model({.vocabulary = 8, .context = 100, .width = 8, .heads = 2});
  expect_error(ErrorKind::kUsage, {"vocabulary of 65", "8"}, [&] { Evaluator(model, repeats({})); });
  Model brief({.vocabulary = 65, .context = 95, .width = 8, .heads = 2});
  expect_error(ErrorKind::kUsage, {"context of 96", "95"}, [&] { Evaluator(brief, repeats({})); });
}

TEST(FillBatch, CopiesTheRowsAndCountsPositions) {
  Samples samples;
  repeats({})->training(1, 0, 0, 5, samples);
  Batch batch;
  fill_batch(samples, 3, 2, batch);
  EXPECT_EQ(batch.target_count(), 2 * 96);
  for (int64_t b = 0; b < 2; ++b) {
    EXPECT_EQ(batch.lengths[b], 96);
    EXPECT_EQ(batch.begins[b], 0);
    for (int64_t t = 0; t < 96; ++t) {
      const std::size_t at = static_cast<std::size_t>((3 + b) * 96 + t);
      ASSERT_EQ(batch.tokens[b * 96 + t], samples.tokens[at]);
      ASSERT_EQ(batch.targets[b * 96 + t], samples.targets[at]);
      ASSERT_EQ(batch.positions[b * 96 + t], t);
    }
  }
  const int32_t* memory = batch.tokens.data();
  fill_batch(samples, 0, 2, batch);
  EXPECT_EQ(batch.tokens.data(), memory) << "equal sizes must not allocate";
  EXPECT_THROW(fill_batch(samples, 4, 2, batch), LogicError);
}

}  // namespace
}  // namespace headlight
