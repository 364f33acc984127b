#include "headlight/explain/sweep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "explain/models.h"
#include "headlight/base/memory.h"
#include "headlight/base/thread_pool.h"
#include "headlight/explain/ablation.h"
#include "headlight/explain/knockout.h"
#include "headlight/explain/sweep_record.h"
#include "headlight/kernels/cross_entropy.h"
#include "model/arrangements.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

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

// The least memory that a sweep runs in: one sequence of one group at a time.
int64_t least_memory(const Model& model, const Batch& batch, const std::vector<Group>& groups,
                     const LossMetric& metric) {
  int64_t too_little = 0;
  int64_t enough = plan_sweep(model, batch, groups, metric).bytes;
  while (enough - too_little > 1) {
    const int64_t middle = too_little + (enough - too_little) / 2;
    try {
      plan_sweep(model, batch, groups, metric, {.memory = middle});
      enough = middle;
    } catch (const Error&) {
      too_little = middle;
    }
  }
  return enough;
}

void expect_naive(const std::string& name, const Model& model, const Batch& batch, const std::vector<Group>& groups,
                  const LossMetric& metric, int64_t memory = 0) {
  const SweepResult result =
      sweep_groups(model, batch, groups, metric, {.compare = static_cast<int64_t>(groups.size()), .memory = memory});
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

// A model of random shape and arrangement, with sequences, groups and chosen losses of every kind.
void expect_naive_of_a_random_model(uint64_t seed) {
  RandomStream random(seed, 9, 0);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random.below(n)); };
  const int64_t shared = 1 + below(3);
  ModelConfig config{.vocabulary = 20 + below(30),
                     .context = 24,
                     .width = 8 + 4 * below(6),
                     .blocks = 1 + below(6),
                     .heads = shared * (1 + below(3)),
                     .key_value_heads = shared,
                     .head_width = 2 + 2 * below(5),
                     .feed_forward = below(2) == 0 ? FeedForward::kGelu : FeedForward::kSiluGated,
                     .norm = below(2) == 0 ? NormKind::kLayerNorm : NormKind::kRmsNorm,
                     .parallel = below(2) == 0,
                     .positions = below(2) == 0 ? Positions::kRotary : Positions::kAlibi,
                     .tied = below(2) == 0};
  config.causal = below(4) > 0;
  if (!config.parallel && below(2) == 0) config.norm_placement = NormPlacement::kPost;
  const Model model = random_model(config, seed);
  const ModelConfig& c = model.config();
  std::vector<std::vector<int32_t>> sequences{random_tokens(24, c.vocabulary, seed)};
  for (int64_t b = below(12); b > 0; --b) sequences.push_back(random_tokens(below(25), c.vocabulary, seed + 99));
  const Batch batch = make_batch(sequences, below(2) == 0 ? PadSide::kRight : PadSide::kLeft);
  std::vector<Group> groups;
  const Ablation mean = mean_ablation(model, batch);
  for (const HeadId& head : all_heads(c)) groups.push_back({ablate(head, below(2) == 0 ? mean : zero_ablation())});
  for (int64_t i = 0; i < 6; ++i) {
    std::vector<HeadId> heads = all_heads(c);
    random.shuffle(heads);
    heads.resize(static_cast<std::size_t>(1 + below(heads.size())));
    groups.push_back(ablate(heads, below(2) == 0 ? mean : zero_ablation()));
  }
  groups.push_back({{.site = "blocks.0.attn.hook_z",
                     .kind = InterventionKind::kReplace,
                     .head = 0,
                     .values = some_values(batch.size * c.value_width, seed),
                     .values_batch = batch.size}});
  groups.push_back({{.site = "blocks.0.hook_attn_out", .kind = InterventionKind::kScale, .entry = 0, .factor = 0.5}});
  LossMetric metric;
  metric.chosen.assign(static_cast<std::size_t>(batch.size * batch.time), 0);
  for (uint8_t& chosen : metric.chosen) chosen = below(3) > 0;
  for (int64_t row = 0; row < batch.time; ++row) metric.chosen[static_cast<std::size_t>(row)] = 1;
  const std::string name = "seed " + std::to_string(seed) + ", " + summary(c);
  expect_naive(name, model, batch, groups, metric);
  expect_naive(name + ", least memory", model, batch, groups, metric, least_memory(model, batch, groups, metric));
}

TEST(Sweep, EqualsOneWholeRunPerInterventionOfRandomModelsWhateverItsMemory) {
  for (uint64_t seed = 1; seed <= 24; ++seed) expect_naive_of_a_random_model(seed);
}

TEST(Sweep, RunsInThePartsThatItsMemoryAllows) {
  const Model model = random_model(
      {.vocabulary = 4000, .context = 8, .width = 4, .blocks = 2, .heads = 2, .feed_forward = FeedForward::kNone});
  std::vector<std::vector<int32_t>> sequences;
  for (uint64_t b = 0; b < 29; ++b) sequences.push_back(random_tokens(8 - static_cast<int64_t>(b % 3), 4000, b));
  const Batch batch = make_batch(sequences);
  const std::vector<Group> groups{{ablate({0, 1})},
                                  {{.site = "blocks.1.attn.hook_z", .head = 0, .entry = 28}},
                                  {{.site = "blocks.1.hook_resid_post",
                                    .kind = InterventionKind::kAdd,
                                    .values = some_values(29 * 4, 2),
                                    .values_batch = 29}}};
  const SweepPlan whole = plan_sweep(model, batch, groups);
  EXPECT_EQ(whole.sequences, 29);
  EXPECT_EQ(whole.runs, 1 + 3 + 2) << "the clean run, the groups, and two of them once more";
  const int64_t least = least_memory(model, batch, groups, {});
  const SweepPlan smallest = plan_sweep(model, batch, groups, {}, {.memory = least});
  EXPECT_EQ(smallest.sequences, 1);
  EXPECT_EQ(smallest.abreast, 1);
  EXPECT_EQ(smallest.runs, 29 * (1 + 3 + 2));
  const int64_t some = least + (whole.bytes - least) / 3;
  const SweepPlan part = plan_sweep(model, batch, groups, {}, {.memory = some});
  EXPECT_LE(part.bytes, some);
  EXPECT_GT(part.sequences, 1);
  EXPECT_LT(part.sequences, 29);
  expect_naive("some memory", model, batch, groups, {}, some);
  expect_error(ErrorKind::kUsage, {"memory for the sweep", std::to_string(least)},
               [&] { sweep_groups(model, batch, groups, {}, {.memory = least - 1}); });
}

TEST(Sweep, PutsShortRunsOfOneBlockSideBySide) {
  const Model model = random_model({.vocabulary = 20, .context = 21, .width = 16, .blocks = 3, .heads = 4});
  const std::vector<Intervention> heads = each_head(model.config());
  std::vector<Group> groups;
  for (const Intervention& head : heads) groups.push_back({head});
  EXPECT_EQ(plan_sweep(model, make_batch({random_tokens(9, 20, 1)}), groups).abreast, 4);
  std::vector<std::vector<int32_t>> many(40, random_tokens(21, 20, 1));
  EXPECT_EQ(plan_sweep(model, make_batch(many), groups).abreast, 1);
}

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Sweeps of the same model and text that keep a record.
struct SweepRecordFile : testing::Test {
  Model model = random_model({.vocabulary = 20, .context = 21, .width = 16, .blocks = 3, .heads = 2});
  RepeatedBatch repeated = repeat_random_tokens(model.config(), {.lengths = {10, 6}, .start = 0, .sequences = 5});
  LossMetric metric = second_copy_loss(repeated);
  std::vector<Intervention> heads = each_head(model.config());
  TempFolder folder;

  SweepRecord record() const { return SweepRecord(model, repeated.batch, metric, "1.2.3"); }

  SweepResult run(SweepRecord* record, int64_t memory = 0) const {
    return sweep(model, repeated.batch, heads, metric, {.memory = memory, .record = record});
  }

  // Stops when `runs` runs are done, and saves.
  void interrupt(int64_t runs, const std::filesystem::path& file, int64_t memory = 0) const {
    std::atomic<bool> stop{false};
    SweepRecord kept = record();
    SweepOptions options{.memory = memory, .stop = &stop, .record = &kept};
    options.progress = [&](const SweepProgress& p) { stop = p.done >= runs; };
    expect_error(ErrorKind::kInterrupted, {"stopped after"},
                 [&] { sweep(model, repeated.batch, heads, metric, options); });
    kept.save(file);
  }

  static void expect_same(const SweepResult& found, const SweepResult& wanted) {
    EXPECT_EQ(found.clean_loss, wanted.clean_loss);
    EXPECT_EQ(found.clean_spread, wanted.clean_spread);
    EXPECT_TRUE(found.same_as_naive.passed);
    ASSERT_EQ(found.effects.size(), wanted.effects.size());
    for (std::size_t i = 0; i < wanted.effects.size(); ++i) {
      EXPECT_EQ(found.effects[i].loss, wanted.effects[i].loss) << i;
      EXPECT_EQ(found.effects[i].change, wanted.effects[i].change) << i;
      EXPECT_EQ(found.effects[i].spread, wanted.effects[i].spread) << i;
    }
  }
};

TEST_F(SweepRecordFile, ContinuesAStoppedSweepWithTheSameBitsFromAnyRunAndMemory) {
  const SweepResult wanted = run(nullptr);
  std::vector<Group> groups;
  for (const Intervention& head : heads) groups.push_back({head});
  const int64_t least = least_memory(model, repeated.batch, groups, metric);
  for (int64_t before : {int64_t{0}, least}) {
    for (int64_t after : {int64_t{0}, least}) {
      const int64_t runs = plan_sweep(model, repeated.batch, groups, metric, {.memory = before}).runs;
      for (int64_t stop = 0; stop + 3 < runs; stop += before == 0 ? 1 : 7) {
        interrupt(stop, folder / "kept", before);
        SweepRecord kept = record();
        kept.load(folder / "kept");
        expect_same(run(&kept, after), wanted);
      }
    }
  }
}

TEST_F(SweepRecordFile, SavesComputingAgainWhatItHas) {
  SweepRecord kept = record();
  run(&kept);
  EXPECT_EQ(kept.effects(), 7) << "six heads and the clean run";
  std::vector<int64_t> done;
  SweepOptions options{.record = &kept};
  options.progress = [&](const SweepProgress& p) { done.push_back(p.done); };
  sweep(model, repeated.batch, heads, metric, options);
  // four heads are known; the clean run, the two compared, and each of these once more
  EXPECT_EQ(done.size(), 5u);
  EXPECT_EQ(done.front(), 4);
  // another sweep of the same text: its groups are others, the clean run is the same
  const SweepResult both =
      sweep_groups(model, repeated.batch, {ablate(all_heads(model.config()))}, metric, {.record = &kept});
  EXPECT_EQ(kept.effects(), 8);
  EXPECT_EQ(both.effects.front().loss,
            sweep_groups(model, repeated.batch, {ablate(all_heads(model.config()))}, metric).effects.front().loss);
}

TEST_F(SweepRecordFile, IsOfOneModelTextMetricAndVersion) {
  const std::string key = record().key();
  EXPECT_EQ(key, record().key());
  EXPECT_NE(key, SweepRecord(random_model(model.config(), 4), repeated.batch, metric, "1.2.3").key());
  EXPECT_NE(key, SweepRecord(model, repeated.batch, first_copy_loss(repeated), "1.2.3").key());
  EXPECT_NE(key, SweepRecord(model, repeated.batch, metric, "1.2.4").key());
  const RepeatedBatch other =
      repeat_random_tokens(model.config(), {.lengths = {10, 6}, .start = 0, .sequences = 5, .seed = 8});
  SweepRecord stale(model, other.batch, metric, "1.2.3");
  EXPECT_NE(key, stale.key());
  run(nullptr);
  record().save(folder / "kept");
  expect_error(ErrorKind::kBadData, {"kept", "another model, text, version", "remove it to begin anew"},
               [&] { stale.load(folder / "kept"); });
}

TEST_F(SweepRecordFile, TellsADamagedFileFromAWholeOne) {
  SweepRecord kept = record();
  run(&kept);
  kept.save(folder / "kept");
  const std::string whole = content_of(folder / "kept");
  const auto loads = [&](const std::string& content) {
    std::ofstream(folder / "kept") << content;
    SweepRecord again = record();
    again.load(folder / "kept");
  };
  loads(whole);
  expect_error(ErrorKind::kMissingInput, {"absent"}, [&] { record().load(folder / "absent"); });
  for (std::size_t length : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 3}) {
    expect_error(ErrorKind::kBadData, {"kept"}, [&] { loads(whole.substr(0, length)); });
  }
  for (const std::string digit : {"0", "9"}) {
    std::string changed = whole;
    const std::size_t at = changed.rfind('.') + 3;
    if (changed.substr(at, 1) == digit) continue;
    changed.replace(at, 1, digit);
    expect_error(ErrorKind::kBadData, {"kept", "damaged"}, [&] { loads(changed); });
  }
  expect_error(ErrorKind::kBadData, {"kept", "format"}, [&] { loads("{\"format\": \"other\"}"); });
  expect_error(ErrorKind::kBadData, {"kept"}, [&] { loads("{\"a\": 1}"); });
}

TEST_F(SweepRecordFile, RefusesSumsThatAnotherProgramComputed) {
  SweepRecord kept = record();
  kept.put(SweepRecord::name_of({}), 0, 1.5);
  expect_error(ErrorKind::kBadData, {"not those that this program computes"}, [&] { run(&kept); });
}

TEST_F(SweepRecordFile, ServesTheKnockOutToo) {
  const HeadScores scores = head_scores(model, repeated);
  const auto knock = [&](SweepRecord* kept, const std::atomic<bool>* stop) {
    KnockoutOptions options{.orders = 3, .sweep = {.stop = stop, .record = kept}};
    return knock_out(model, repeated.batch, ranked(scores, HeadScore::kInduction), metric, options);
  };
  const Knockout wanted = knock(nullptr, nullptr);
  SweepRecord kept = record();
  knock(&kept, nullptr);
  const Knockout found = knock(&kept, nullptr);
  ASSERT_EQ(found.ordered.size(), wanted.ordered.size());
  for (std::size_t i = 0; i < wanted.ordered.size(); ++i) {
    EXPECT_EQ(found.ordered[i].change, wanted.ordered[i].change);
    EXPECT_EQ(found.random[i].mean, wanted.random[i].mean);
    EXPECT_EQ(found.random[i].spread, wanted.random[i].spread);
  }
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
  double share = -1;
  options.progress = [&](const SweepProgress& p) {
    done.push_back(p.done);
    EXPECT_EQ(p.total, 8);  // the clean run, six heads, and one of them once more
    EXPECT_GT(p.share, share);
    EXPECT_LT(p.share, 1);
    share = p.share;
    if (p.done == 4) stop = true;
  };
  // three heads of block 0 beside each other, those of block 1, and one alone
  expect_error(ErrorKind::kInterrupted, {"7 of 8 runs"},
               [&] { sweep(model, batch, each_head(model.config()), {}, options); });
  EXPECT_EQ(done, (std::vector<int64_t>{0, 1, 4}));
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

}  // namespace
}  // namespace headlight
