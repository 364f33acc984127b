#include "headlight/explain/ablation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "explain/models.h"
#include "headlight/base/thread_pool.h"
#include "headlight/kernels/cross_entropy.h"
#include "model/arrangements.h"
#include "support/expect_error.h"

namespace headlight {
namespace {

using Group = std::vector<Intervention>;

std::shared_ptr<const std::vector<float>> some_values(int64_t count, uint64_t seed) {
  RandomStream random(seed, 3, 0);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random.normal()));
  return std::make_shared<const std::vector<float>>(values);
}

// A whole run of the model with the group, planned for it alone: the mean loss over chosen targets, per sequence.
struct Naive {
  double loss = 0;
  std::vector<double> means;
};
Naive naive(const Model& model, const Batch& batch, const Group& group, const LossMetric& metric) {
  auto run = plan(model, batch, {.interventions = group});
  forward(model, batch, run);
  Buffer<float> losses(batch.size * batch.time);
  token_losses<float>(batch, run, losses.view<2>({batch.size, batch.time}));
  Naive result;
  double total = 0;
  double targets = 0;
  for (int64_t b = 0; b < batch.size; ++b) {
    double sum = 0;
    double count = 0;
    for (int64_t row = b * batch.time; row < (b + 1) * batch.time; ++row) {
      if (batch.targets[row] == kIgnoredTarget) continue;
      if (!metric.chosen.empty() && metric.chosen[static_cast<std::size_t>(row)] == 0) continue;
      sum += static_cast<double>(losses[row]);
      count += 1;
    }
    total += sum;
    targets += count;
    if (count > 0) result.means.push_back(sum / count);
  }
  result.loss = total / targets;
  return result;
}

void expect_naive(const std::string& name, const Model& model, const Batch& batch, const std::vector<Group>& groups,
                  const LossMetric& metric) {
  const SweepResult result =
      sweep_groups(model, batch, groups, metric, {.compare = static_cast<int64_t>(groups.size())});
  EXPECT_TRUE(result.same_as_naive.passed) << name;
  ASSERT_EQ(result.effects.size(), groups.size());
  const Naive clean = naive(model, batch, {}, metric);
  EXPECT_EQ(result.clean_loss, clean.loss) << name;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Naive one = naive(model, batch, groups[g], metric);
    EXPECT_EQ(result.effects[g].loss, one.loss) << name << ", group " << g;
    EXPECT_EQ(result.effects[g].change, one.loss - clean.loss) << name << ", group " << g;
    std::vector<double> changes;
    for (std::size_t b = 0; b < one.means.size(); ++b) changes.push_back(one.means[b] - clean.means[b]);
    if (changes.size() > 1) {
      EXPECT_EQ(result.effects[g].spread, estimate_of(changes).spread) << name << ", group " << g;
    }
  }
}

// Interventions of every kind, at every depth, alone and together.
std::vector<Group> many_groups(const Model& model, const Batch& reference) {
  const ModelConfig& c = model.config();
  std::vector<Group> groups;
  for (const Ablation& ablation :
       {zero_ablation(), mean_ablation(model, reference), mean_ablation(model, reference, true)}) {
    for (const Intervention& each : each_head(c, ablation)) groups.push_back({each});
    groups.push_back(ablate(all_heads(c), ablation));
  }
  groups.push_back({});
  groups.push_back({{.site = "hook_embed", .kind = InterventionKind::kScale, .position = 0, .factor = 0.5}});
  for (int64_t block = 0; block < c.blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block) + ".";
    groups.push_back({{.site = name + "hook_resid_pre", .kind = InterventionKind::kScale, .factor = 0.9}});
    groups.push_back({{.site = name + "hook_attn_out", .kind = InterventionKind::kZero, .entry = 3}});
    groups.push_back({{.site = name + "attn.hook_v",
                       .kind = InterventionKind::kReplace,
                       .head = 1,
                       .position = 2,
                       .values = some_values(c.value_width, 1)}});
    groups.push_back({{.site = name + "hook_resid_post",
                       .kind = InterventionKind::kAdd,
                       .factor = 0.1,
                       .values = some_values(4 * 7 * c.width, 2),
                       .values_batch = 4,
                       .values_time = 7}});
    // at two depths: the earlier one counts
    groups.push_back({ablate({c.blocks - 1, 0}), {.site = name + "attn.hook_q", .head = 0}});
  }
  return groups;
}

TEST(Sweep, EqualsOneWholeRunPerInterventionInEveryArrangement) {
  for (const Arrangement& arrangement : all_arrangements()) {
    if (arrangement.config.blocks == 0) continue;
    const Model model = random_model(arrangement.config);
    const auto sequences = uneven_sequences(arrangement.config.vocabulary);
    for (PadSide side : {PadSide::kRight, PadSide::kLeft}) {
      const Batch batch = make_batch(sequences, side);
      expect_naive(arrangement.name, model, batch, many_groups(model, batch), {});
    }
  }
}

TEST(Sweep, OfAModelWithoutBlocksRunsWhole) {
  ModelConfig config{
      .vocabulary = 11, .context = 8, .width = 12, .blocks = 0, .heads = 3, .positions = Positions::kLearned};
  const Model model = random_model(config);
  const Group group{{.site = "hook_embed", .kind = InterventionKind::kScale, .factor = 2}};
  expect_naive("no blocks", model, make_batch(uneven_sequences(11)), {group}, {});
}

TEST(Sweep, OfALargeBatchEqualsOneWholeRun) {
  // 8 x 40,000 logits, twice, of a sequence: 26 sequences fill a part
  const Model model = random_model(
      {.vocabulary = 40000, .context = 8, .width = 4, .blocks = 2, .heads = 2, .feed_forward = FeedForward::kNone});
  std::vector<std::vector<int32_t>> sequences;
  for (uint64_t b = 0; b < 29; ++b) sequences.push_back(random_tokens(8 - static_cast<int64_t>(b % 3), 40000, b));
  const Batch batch = make_batch(sequences);
  const std::vector<Group> groups{{ablate({0, 1})},
                                  {{.site = "blocks.1.attn.hook_z", .head = 0, .entry = 28}},
                                  {{.site = "blocks.1.hook_resid_post",
                                    .kind = InterventionKind::kAdd,
                                    .values = some_values(29 * 4, 2),
                                    .values_batch = 29}}};
  expect_naive("large", model, batch, groups, {});
}

TEST(Sweep, CountsChosenTargetsOnly) {
  const Model model = random_model({.vocabulary = 20, .context = 21, .width = 16});
  const RepeatedBatch repeated = repeat_random_tokens(model.config(), {.lengths = {10, 6}, .start = 0, .sequences = 3});
  const LossMetric second = second_copy_loss(repeated);
  const LossMetric first = first_copy_loss(repeated);
  expect_naive("second", model, repeated.batch, {{ablate({0, 0})}}, second);
  expect_naive("first", model, repeated.batch, {{ablate({0, 0})}}, first);
  const SweepResult result = sweep(model, repeated.batch, each_head(model.config()), second);
  EXPECT_EQ(result.targets, 9 + 5 + 9) << "all of the second copy but its last position";
  EXPECT_EQ(result.sequences, 3);
  EXPECT_EQ(result.metric, "loss on the second copy");
  EXPECT_EQ(sweep(model, repeated.batch, each_head(model.config()), first).targets, 11 + 7 + 11);
}

TEST(Sweep, LeavesOutSequencesWithoutAChosenTarget) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  const SweepResult result = sweep(model, make_batch(uneven_sequences(11)), each_head(model.config()));
  EXPECT_EQ(result.targets, 6 + 3);
  EXPECT_EQ(result.sequences, 2);
}

TEST(Sweep, HasTheSameBitsForAnyThreads) {
  const Model model = random_model({.vocabulary = 30, .context = 41, .width = 32});
  const RepeatedBatch repeated = repeat_random_tokens(model.config(), {.sequences = 5});
  std::vector<double> first;
  for (int threads : {1, 2, 3}) {
    set_threads(threads);
    std::vector<double> changes;
    for (const Effect& effect : sweep(model, repeated.batch, each_head(model.config())).effects)
      changes.push_back(effect.change);
    if (first.empty()) first = changes;
    EXPECT_EQ(changes, first) << threads << " threads";
  }
  set_threads(2);
}

TEST(Sweep, ShowsWhatHeadsMadeByHandAreFor) {
  const Model model = CircuitModel::make();
  const RepeatedBatch repeated = CircuitModel::repeated();
  const LossMetric metric = second_copy_loss(repeated);
  const std::vector<Group> groups{
      {ablate({0, 0})}, {ablate({0, 1})}, {ablate({1, 0})}, ablate(std::vector<HeadId>{{1, 0}, {1, 1}})};
  const SweepResult result = sweep_groups(model, repeated.batch, groups, metric);
  // both heads say 20 for one token: the others share 15 exp(-20); one alone says 10
  EXPECT_NEAR(result.clean_loss, 15 * std::exp(-20), 1e-7);
  EXPECT_EQ(result.effects[1].change, 0) << "a head that writes nothing";
  EXPECT_NEAR(result.effects[2].change, std::log1p(15 * std::exp(-10)), 1e-5) << "covered by the other";
  EXPECT_NEAR(result.effects[3].change, std::log(16), 1e-5) << "nothing is written to the logits";
  EXPECT_GT(result.effects[0].change, 2) << "no predecessor is known";
  EXPECT_EQ(result.by_size().front().interventions.size(), result.effects[0].change > std::log(16) ? 1u : 2u);
  EXPECT_EQ(result.by_size().back().change, 0);
}

TEST(Sweep, TellsItsProgressAndStops) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  const Batch batch = make_batch(uneven_sequences(11));
  std::vector<int64_t> done;
  std::atomic<bool> stop{false};
  SweepOptions options{.compare = 1, .stop = &stop};
  options.progress = [&](int64_t runs, int64_t total) {
    done.push_back(runs);
    EXPECT_EQ(total, 8);  // the clean run, six heads, and one of them once more
    if (runs == 3) stop = true;
  };
  expect_error(ErrorKind::kInterrupted, {"4 of 8 runs"},
               [&] { sweep(model, batch, each_head(model.config()), {}, options); });
  EXPECT_EQ(done, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(Sweep, RefusesWhatDoesNotFit) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  const Batch batch = make_batch(uneven_sequences(11));
  const auto refuses = [&](const Intervention& x) {
    EXPECT_THROW(sweep(model, batch, Group{x}), LogicError) << to_string(x);
  };
  refuses({.site = "blocks.7.attn.hook_z"});
  refuses({.site = "blocks.0.attn.hook_z", .head = 3});
  refuses({.site = "blocks.0.attn.hook_z", .entry = 4});
  refuses({.site = "blocks.0.attn.hook_z", .kind = InterventionKind::kReplace});
  refuses({.site = "blocks.0.attn.hook_z", .kind = InterventionKind::kReplace, .values_batch = 2});
  refuses({.site = "blocks.0.attn.hook_z",
           .kind = InterventionKind::kReplace,
           .head = 0,
           .values = some_values(2 * 4, 1),
           .values_batch = 2});
  EXPECT_THROW(sweep(model, batch, each_head(model.config()), {.chosen = {1, 0}}), LogicError);
  EXPECT_THROW(sweep(model, batch, each_head(model.config()), {.chosen = std::vector<uint8_t>(28, 0)}), LogicError);
}

TEST(MeanAblation, IsTheMeanOverAllPositions) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  for (PadSide side : {PadSide::kRight, PadSide::kLeft}) {
    const Batch batch = make_batch(uneven_sequences(11), side);
    auto run = plan(model, batch, {.capture = {"blocks.*.attn.hook_z"}});
    forward(model, batch, run);
    const Ablation all = mean_ablation(model, batch);
    const Ablation each = mean_ablation(model, batch, true);
    EXPECT_EQ(all.means_time, 1);
    EXPECT_EQ(each.means_time, 7);
    for (HeadId head : all_heads(model.config())) {
      const View<const float, 4> z = run.site("blocks." + std::to_string(head.block) + ".attn.hook_z");
      for (int64_t c = 0; c < 4; ++c) {
        double sum = 0;
        std::vector<double> by_position(7, 0);
        std::vector<double> count(7, 0);
        for (int64_t b = 0; b < 4; ++b) {
          for (int64_t i = 0; i < batch.lengths[b]; ++i) {
            const double value = static_cast<double>(z(b, batch.begins[b] + i, head.head, c));
            sum += value;
            by_position[static_cast<std::size_t>(i)] += value;
            count[static_cast<std::size_t>(i)] += 1;
          }
        }
        EXPECT_FLOAT_EQ((*all.means.at(head))[static_cast<std::size_t>(c)], static_cast<float>(sum / 12));
        for (std::size_t i = 0; i < 7; ++i) {
          EXPECT_FLOAT_EQ((*each.means.at(head))[i * 4 + static_cast<std::size_t>(c)],
                          static_cast<float>(by_position[i] / count[i]));
        }
      }
    }
  }
}

TEST(MeanAblation, OfOneSequencePerPositionChangesNothing) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  const Batch batch = make_batch({random_tokens(8, 11, 1)});
  const Ablation own = mean_ablation(model, batch, true);
  for (const Effect& effect : sweep(model, batch, each_head(model.config(), own)).effects) EXPECT_EQ(effect.change, 0);
}

TEST(MeanAblation, RefusesAnEmptyReferenceAndAnUnknownHead) {
  const Model model = random_model({.vocabulary = 11, .context = 8, .width = 12, .heads = 3});
  EXPECT_THROW(mean_ablation(model, make_batch(std::vector<std::vector<int32_t>>{{}})), LogicError);
  EXPECT_THROW(mean_ablation(model, make_batch(std::vector<std::vector<int32_t>>{{}, {}}), true), LogicError);
  EXPECT_THROW(ablate({0, 3}, mean_ablation(model, make_batch(uneven_sequences(11)))), LogicError);
}

}  // namespace
}  // namespace headlight
