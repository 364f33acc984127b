#include "headlight/model/cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "arrangements.h"
#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

std::vector<int32_t> tokens_of(const Batch& batch, int64_t begin, int64_t end) {
  return {batch.tokens.begin() + begin, batch.tokens.begin() + end};
}

template <class T>
BasicModel<T> random_model(const ModelConfig& config, uint64_t seed) {
  BasicModel<T> model(config);
  initialise(model, seed);
  // norms, biases and the like away from 1 and 0
  RandomStream random(seed, 7, 0);
  const View<T, 1> weights = model.weights();
  for (int64_t i = 0; i < weights.count(); ++i) weights(i) += static_cast<T>(0.2 * random.uniform() - 0.1);
  return model;
}

// Runs `text` in pieces of the given lengths, all of them on one cache, and compares with the text run at once.
template <class T>
void expect_pieces(const BasicModel<T>& model, const std::vector<int32_t>& text, const std::vector<int64_t>& lengths) {
  const auto size = static_cast<int64_t>(text.size());
  std::vector<std::string> sites;
  for (int64_t block = 0; block < model.config().blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block) + ".hook_resid_post";
    if (model.sites().contains(name)) sites.push_back(name);
  }
  const Batch whole = make_batch({text});
  BasicRun<T> expected = plan(model, whole, {.capture = sites});
  forward(model, whole, expected);

  BasicCache<T> cache(model, size);
  BasicRun<T> run(model, 1, *std::max_element(lengths.begin(), lengths.end()), {.positions = size, .capture = sites});
  for (const int64_t length : lengths) {
    const int64_t begin = cache.length();
    const Batch piece = make_batch({tokens_of(whole, begin, begin + length)});
    forward(model, piece, run, {.cache = &cache});
    const auto expect_same = [&](const std::string& name, View<const T, 3> got, View<const T, 3> want) {
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t c = 0; c < got.size(2); ++c) {
          ASSERT_EQ(got(0, i, c), want(0, begin + i, c)) << name << ", token " << begin + i << ", column " << c;
        }
      }
    };
    expect_same("logits", run.logits(), expected.logits());
    for (const std::string& name : sites) expect_same(name, run.site(name), expected.site(name));
  }
  EXPECT_EQ(cache.length(), size);
}

TEST(Cache, GivesTheBitsOfTheWholeForwardInAnyPiecesForEveryArrangement) {
  for (const Arrangement& arrangement : all_arrangements()) {
    if (!arrangement.config.causal) continue;
    SCOPED_TRACE(arrangement.name);
    const ModelConfig config = resolve(arrangement.config);
    const auto text = random_tokens(8, config.vocabulary, 3);
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{8}, {1, 1, 1, 1, 1, 1, 1, 1}, {5, 1, 2}}) {
      expect_pieces(random_model<float>(config, 4), text, lengths);
      expect_pieces(random_model<double>(config, 4), text, lengths);
    }
  }
}

TEST(Cache, GivesTheBitsOfTheWholeForwardOverChunksAndThreads) {
  const ModelConfig config = resolve({.vocabulary = 50,
                                      .context = 1200,
                                      .width = 32,
                                      .blocks = 1,
                                      .heads = 4,
                                      .key_value_heads = 2,
                                      .positions = Positions::kRotary});
  for (const int threads : {1, 3}) {
    set_threads(threads);
    expect_pieces(random_model<float>(config, 5), random_tokens(1200, 50, 6), {1000, 1, 30, 1, 2, 100, 66});
  }
}

TEST(Cache, ForgetsWhatIsTakenBack) {
  const Model model = random_model<float>(resolve({.vocabulary = 11, .context = 8, .width = 16, .heads = 2}), 7);
  const auto last_logits = [&](Cache& cache, const std::vector<int32_t>& tokens) {
    headlight::Run run(model, 1, static_cast<int64_t>(tokens.size()), {.positions = 8});
    forward(model, make_batch({tokens}), run, {.cache = &cache});
    const View<const float, 1> row = run.logits()[0][static_cast<int64_t>(tokens.size()) - 1];
    return std::vector<float>(row.data, row.data + row.count());
  };
  Cache straight(model, 8), detour(model, 8);
  const std::vector<float> expected = last_logits(straight, {1, 2, 3, 4});
  last_logits(detour, {1, 2, 9, 9, 9});
  detour.shorten(2);
  EXPECT_EQ(detour.length(), 2);
  EXPECT_EQ(last_logits(detour, {3, 4}), expected);
}

TEST(Cache, RefusesWhatDoesNotFit) {
  const ModelConfig config = resolve({.vocabulary = 11, .context = 8, .width = 16, .heads = 2});
  const Model model = random_model<float>(config, 8), other = random_model<float>(config, 8);
  EXPECT_THROW(Cache(model, 9), Error);
  ModelConfig bidirectional = config;
  bidirectional.causal = false;
  EXPECT_THROW(Cache(Model(bidirectional), 4), Error);

  Cache cache(model, 4);
  EXPECT_THROW(cache.shorten(1), LogicError);
  EXPECT_THROW(cache.add(5), LogicError);
  headlight::Run run(model, 2, 5, {.positions = 8});
  EXPECT_THROW(forward(model, make_batch({{1, 2, 3, 4, 5}}), run, {.cache = &cache}), LogicError) << "no room";
  EXPECT_THROW(forward(model, make_batch({{1}, {2}}), run, {.cache = &cache}), LogicError) << "two sequences";
  Cache foreign(other, 4);
  EXPECT_THROW(forward(model, make_batch({{1}}), run, {.cache = &foreign}), LogicError) << "another model";
  headlight::Run patterns(model, 1, 5, {.positions = 8, .capture = {"blocks.0.attn.hook_pattern"}});
  EXPECT_THROW(forward(model, make_batch({{1}}), patterns, {.cache = &cache}), LogicError) << "pattern";
  headlight::Run gradients(model, 1, 5, {.gradients = true});
  EXPECT_THROW(forward(model, make_batch({{1}}), gradients, {.cache = &cache}), LogicError) << "gradients";
  EXPECT_EQ(cache.length(), 0) << "refused batches leave the cache as it was";
  EXPECT_THROW(headlight::Run(model, 1, 5, {.positions = 9}), Error) << "beyond the context";
}

}  // namespace
}  // namespace headlight
