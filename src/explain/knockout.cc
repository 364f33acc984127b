#include "headlight/explain/knockout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "headlight/base/random.h"

namespace headlight {
namespace {

constexpr uint32_t kOrderStream = 0x4f524452;  // "ORDR"

// 1, 2, ..., 12, then about a quarter more each time, and all; of many heads twice as many each time
std::vector<int64_t> usual_counts(int64_t heads) {
  constexpr int64_t kMany = 64;
  std::vector<int64_t> counts;
  for (int64_t n = 1; n <= heads; n += heads > kMany ? n : std::max<int64_t>(1, n > 11 ? n / 4 : 1)) {
    counts.push_back(n);
  }
  if (!counts.empty() && counts.back() != heads) counts.push_back(heads);
  return counts;
}

// Sets of heads to ablate together; one that comes up twice is run once.
class SetList {
 public:
  explicit SetList(const Ablation& ablation) : ablation_(ablation) {}

  std::size_t add(std::vector<HeadId> heads) {
    std::sort(heads.begin(), heads.end());
    const auto [place, is_new] = index_.try_emplace(heads, groups_.size());
    if (is_new) groups_.push_back(ablate(heads, ablation_));
    return place->second;
  }
  const std::vector<std::vector<Intervention>>& groups() const { return groups_; }

 private:
  const Ablation& ablation_;
  std::map<std::vector<HeadId>, std::size_t> index_;
  std::vector<std::vector<Intervention>> groups_;
};

std::vector<HeadId> first_of(const std::vector<HeadId>& order, int64_t count) {
  return {order.begin(), order.begin() + count};
}

}  // namespace

Knockout knock_out(const Model& model, const Batch& batch, const std::vector<HeadId>& order, const LossMetric& metric,
                   const KnockoutOptions& options) {
  const int64_t heads = static_cast<int64_t>(order.size());
  const std::vector<int64_t> counts = options.counts.empty() ? usual_counts(heads) : options.counts;
  for (int64_t count : counts) {
    if (count < 1 || count > heads) {
      throw LogicError("knock_out", std::to_string(count) + " heads of " + std::to_string(heads));
    }
  }
  if (options.orders < 1) throw LogicError("knock_out", std::to_string(options.orders) + " random orders");
  SetList sets(options.ablation);
  std::vector<std::size_t> ordered;
  for (int64_t count : counts) ordered.push_back(sets.add(first_of(order, count)));
  std::vector<std::vector<std::size_t>> random(counts.size());
  for (int64_t i = 0; i < options.orders; ++i) {
    std::vector<HeadId> shuffled = order;
    RandomStream(options.seed, kOrderStream, static_cast<uint64_t>(i)).shuffle(shuffled);
    for (std::size_t c = 0; c < counts.size(); ++c) random[c].push_back(sets.add(first_of(shuffled, counts[c])));
  }
  const SweepResult result = sweep_groups(model, batch, sets.groups(), metric, options.sweep);
  Knockout knockout{.order = options.order,
                    .metric = result.metric,
                    .ablation = options.ablation.id,
                    .clean_loss = result.clean_loss,
                    .orders = options.orders,
                    .same_as_naive = result.same_as_naive};
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const Effect& effect = result.effects[ordered[c]];
    knockout.ordered.push_back({first_of(order, counts[c]), effect.change, effect.spread});
    std::vector<double> changes;
    for (std::size_t set : random[c]) changes.push_back(result.effects[set].change);
    knockout.random.push_back(estimate_of(changes));
  }
  return knockout;
}

std::vector<HeadSet> head_sets(const HeadScores& scores, const HeadSetOptions& options) {
  const auto previous = [&](const HeadId& head) { return scores.at(head, HeadScore::kPrevious).mean; };
  HeadSet induction{
      .name = "induction heads",
      .definition = fmt::format("every head with an induction score of at least {:g}", options.induction)};
  for (const HeadId& head : ranked(scores, HeadScore::kInduction)) {
    if (scores.at(head, HeadScore::kInduction).mean >= options.induction) induction.heads.push_back(head);
  }
  const double least = options.times_uniform * options.uniform_previous;
  HeadSet leading{.name = "leading previous-token heads",
                  .definition = fmt::format("of the block with the highest previous-token score, heads that score at "
                                            "least {:g} times an untrained model's {:.3f}, at most half of the block",
                                            options.times_uniform, options.uniform_previous)};
  HeadSet lowest{.name = "lowest previous-token heads",
                 .definition = "as many heads of the same block, with the lowest previous-token scores"};
  std::vector<HeadId> block = ranked(scores, HeadScore::kPrevious);
  if (!block.empty()) {
    const int64_t leader = block.front().block;
    block.erase(std::remove_if(block.begin(), block.end(), [&](const HeadId& head) { return head.block != leader; }),
                block.end());
  }
  const std::size_t most = std::max<std::size_t>(1, block.size() / 2);
  for (std::size_t i = 0; i < std::min(most, block.size()) && previous(block[i]) >= least; ++i) {
    leading.heads.push_back(block[i]);
  }
  // a block of one head has none to compare with
  for (std::size_t i = 0; i < leading.heads.size() && block.size() > 1; ++i) {
    lowest.heads.push_back(block[block.size() - 1 - i]);
  }
  return {induction, leading, lowest};
}

std::vector<HeadSetEffect> ablate_sets(const Model& model, const Batch& batch, const std::vector<HeadSet>& sets,
                                       const LossMetric& metric, const Ablation& ablation,
                                       const SweepOptions& options) {
  std::vector<HeadSetEffect> effects;
  std::vector<std::vector<Intervention>> groups;
  for (const HeadSet& set : sets) {
    if (set.heads.empty()) continue;
    effects.push_back({.set = set});
    groups.push_back(ablate(set.heads, ablation));
  }
  const SweepResult result = sweep_groups(model, batch, groups, metric, options);
  for (std::size_t i = 0; i < effects.size(); ++i) {
    effects[i].change = result.effects[i].change;
    effects[i].spread = result.effects[i].spread;
  }
  return effects;
}

}  // namespace headlight
