// A model that keeps its matrices short computes what one with the rounded matrices does, to the bit.

#include <gtest/gtest.h>

#include <bit>

#include "headlight/base/error.h"
#include "headlight/model/run.h"
#include "headlight/tensor/half.h"
#include "model/arrangements.h"

namespace headlight {
namespace {

float rounded(float x, DType type) {
  return type == DType::kBF16 ? widen(narrow<BFloat16>(x)) : widen(narrow<Float16>(x));
}

struct Pair {
  Model short_one, wide;
};

Pair random_pair(const ModelConfig& config, DType type) {
  Pair pair{Model(config, type), Model(config)};
  RandomStream random(9, 1, 0);
  for (const Parameter& p : pair.wide.parameters().all()) {
    const int index = pair.wide.parameters().find(p.name);
    Buffer<float> values(p.count);
    for (float& x : values) x = static_cast<float>(0.5 * random.normal());
    const bool is_matrix = p.shape.size() == 2;
    if (is_matrix) pair.short_one.set_matrix(index, values.view<1>({p.count}));
    for (int64_t i = 0; i < p.count; ++i) {
      pair.wide.vector(index)(i) = is_matrix ? rounded(values[i], type) : values[i];
      if (!is_matrix) pair.short_one.vector(index)(i) = values[i];
    }
  }
  return pair;
}

TEST(ShortWeights, GiveTheBitsOfTheRoundedModelInEveryArrangement) {
  for (const Arrangement& arrangement : all_arrangements()) {
    for (const DType type : {DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(arrangement.name + " " + std::string(dtype_info(type).name));
      const Pair pair = random_pair(arrangement.config, type);
      const Batch batch = make_batch(uneven_sequences(arrangement.config.vocabulary));
      RunOptions options;
      if (arrangement.config.blocks > 0) options.capture = {"hook_embed", "blocks.*.attn.hook_result"};
      BasicRun<float> a = plan(pair.short_one, batch, options), b = plan(pair.wide, batch, options);
      forward(pair.short_one, batch, a);
      forward(pair.wide, batch, b);
      const View<const float, 3> found = a.logits(), wanted = b.logits();
      for (int64_t i = 0; i < wanted.count(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(found.data[i]), std::bit_cast<uint32_t>(wanted.data[i])) << i;
      }
    }
  }
}

TEST(ShortWeights, TakeHalfTheMemoryAndAreClonedAsTheyAre) {
  const ModelConfig config{.vocabulary = 50, .context = 8, .width = 32, .blocks = 2, .heads = 4};
  const Pair pair = random_pair(config, DType::kBF16);
  EXPECT_LT(pair.short_one.weight_bytes(), 0.6 * static_cast<double>(pair.wide.weight_bytes()));
  const Model copy = pair.short_one.clone();
  EXPECT_EQ(copy.matrices(), DType::kBF16);
  const int index = copy.parameters().find("blocks.1.attn.W_K");
  EXPECT_EQ(copy.stored(index).bf16(3, 2).bits, pair.short_one.stored(index).bf16(3, 2).bits);
}

TEST(ShortWeights, RefuseWhatNeedsThemWide) {
  const ModelConfig config{.vocabulary = 5, .context = 8, .width = 8, .blocks = 1, .heads = 2};
  Model model(config, DType::kF16);
  EXPECT_THROW(model.weights(), LogicError);
  EXPECT_THROW(model.matrix("blocks.0.attn.W_K"), LogicError);
  EXPECT_THROW(model.unembedding(), LogicError);
  EXPECT_THROW(Model(config, DType::kU8), LogicError);
  EXPECT_THROW(BasicModel<double>(config, DType::kBF16), LogicError);
  const Batch batch = make_batch({{1, 2, 3}});
  BasicRun<float> run = plan(model, batch, {.gradients = true});
  forward(model, batch, run);
  Buffer<float> gradients(Model(config).weights().count());
  EXPECT_THROW(backward(model, batch, run, 1.0F, gradients.view<1>({gradients.count()})), LogicError);
}

}  // namespace
}  // namespace headlight
