#include "headlight/explain/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "explain/parts.h"
#include "explain/sweep_layout.h"
#include "headlight/explain/head.h"
#include "headlight/explain/sweep_record.h"
#include "headlight/kernels/cross_entropy.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

using Group = InterventionGroup;

class Sweep {
 public:
  Sweep(const Model& model, const Batch& batch, const std::vector<Group>& groups, const LossMetric& metric,
        const SweepOptions& options)
      : model_(model), batch_(batch), groups_(groups), metric_(metric), options_(options) {
    check_arguments();
    kinds_ = sweep_kinds(model, groups);
    const int64_t chosen = *std::max_element(counts_.begin(), counts_.end());
    plan_ = lay_out(model, batch, groups, kinds_, chosen, options.memory);
    choose_compared();
    plan_.runs += parts() * static_cast<int64_t>(compared_.size());
    count_costs();
  }

  const SweepPlan& plan() const { return plan_; }

  SweepResult result() {
    logits_ = Buffer<float>(logit_rows(model_.config(), plan_.sequences * plan_.abreast *
                                                            *std::max_element(counts_.begin(), counts_.end())) *
                            model_.config().vocabulary);
    sums_.assign((groups_.size() + 1) * static_cast<std::size_t>(batch_.size), 0);
    read_record();
    for (int64_t begin = 0; begin < batch_.size; begin += plan_.sequences) {
      run_part(begin, std::min(batch_.size, begin + plan_.sequences));
    }
    SweepResult result;
    result.metric = metric_.name;
    result.plan = plan_;
    for (int64_t count : counts_) {
      result.targets += count;
      result.sequences += count > 0;
    }
    const std::vector<double> clean = means(clean_index(), nullptr);
    result.clean_loss = mean(clean_index());
    result.clean_spread = estimate_of(clean).spread;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      result.effects.push_back({.interventions = groups_[g],
                                .loss = mean(g),
                                .change = mean(g) - result.clean_loss,
                                .spread = estimate_of(means(g, &clean)).spread});
    }
    result.same_as_naive = {.name = "sweep = naive loop",
                            .definition = "token losses of " + std::to_string(compared_.size()) + " of " +
                                          std::to_string(groups_.size()) +
                                          " effects, computed once more by a whole run each",
                            .error = difference_.value(),
                            .same_bits = true,
                            .passed = same_};
    return result;
  }

 private:
  std::size_t clean_index() const { return groups_.size(); }

  void check_arguments() {
    const std::size_t rows = static_cast<std::size_t>(batch_.size * batch_.time);
    if (!metric_.chosen.empty() && metric_.chosen.size() != rows) {
      throw LogicError("sweep", "the metric chooses from " + std::to_string(metric_.chosen.size()) +
                                    " rows, the batch has " + std::to_string(rows));
    }
    for (const Group& group : groups_) {
      for (const Intervention& x : group) {
        model_.sites().find(x.site);
        if (x.entry && *x.entry >= batch_.size) {
          throw LogicError("sweep", to_string(x) + " in a batch of " + std::to_string(batch_.size));
        }
      }
    }
    for (int64_t b = 0; b < batch_.size; ++b) {
      counts_.push_back(0);
      for (int64_t row = b * batch_.time; row < (b + 1) * batch_.time; ++row) counts_.back() += is_chosen(row);
    }
    if (std::all_of(counts_.begin(), counts_.end(), [](int64_t count) { return count == 0; })) {
      throw LogicError("sweep", "no target is chosen");
    }
  }

  bool is_chosen(int64_t row) const {
    return batch_.targets[row] != kIgnoredTarget &&
           (metric_.chosen.empty() || metric_.chosen[static_cast<std::size_t>(row)] != 0);
  }

  void choose_compared() {
    const int64_t count = static_cast<int64_t>(groups_.size());
    const int64_t wanted = std::min(count, std::max<int64_t>(1, options_.compare));
    for (int64_t i = 0; i < wanted; ++i) compared_.insert(static_cast<std::size_t>((2 * i + 1) * count / (2 * wanted)));
  }

  int64_t parts() const { return (batch_.size + plan_.sequences - 1) / plan_.sequences; }

  // What the record has of earlier sweeps counts as done.
  void read_record() {
    if (options_.record == nullptr) return;
    for (std::size_t i = 0; i <= groups_.size(); ++i) {
      names_.push_back(SweepRecord::name_of(i < groups_.size() ? groups_[i] : Group{}));
    }
  }

  // The sum that the record has of a sequence; NaN: none.
  double recorded(std::size_t index, int64_t sequence) const {
    if (options_.record == nullptr) return NAN;
    const std::vector<double>* sums = options_.record->find(names_[index]);
    return sums == nullptr ? NAN : (*sums)[static_cast<std::size_t>(sequence)];
  }

  // Whether all of a part is in the record, and is taken from there. What is compared with a whole run runs anyway.
  bool take_recorded(std::size_t index, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      if (std::isnan(recorded(index, b))) return false;
    }
    if (compared_.count(index) > 0) return false;
    for (int64_t b = begin; b < end; ++b) sum(index, b) = recorded(index, b);
    return true;
  }

  double& sum(std::size_t index, int64_t sequence) {
    return sums_[index * static_cast<std::size_t>(batch_.size) + static_cast<std::size_t>(sequence)];
  }

  // The rows of a part whose losses count, and their targets.
  struct Rows {
    std::vector<int64_t> rows;
    std::vector<int32_t> targets;
    std::vector<std::size_t> sequences;  // counted from the part's first
  };
  Rows rows_of_part(int64_t begin, int64_t end) const {
    Rows chosen;
    for (int64_t row = begin * batch_.time; row < end * batch_.time; ++row) {
      if (!is_chosen(row)) continue;
      chosen.rows.push_back(row - begin * batch_.time);
      chosen.targets.push_back(batch_.targets[row]);
      chosen.sequences.push_back(static_cast<std::size_t>(row / batch_.time - begin));
    }
    return chosen;
  }

  void run_part(int64_t begin, int64_t end) {
    std::vector<SweepKind> open = kinds_;
    bool any = !take_recorded(clean_index(), begin, end);
    for (SweepKind& kind : open) {
      const std::size_t all = kind.groups.size();
      const auto done = [&](std::size_t g) { return take_recorded(g, begin, end); };
      kind.groups.erase(std::remove_if(kind.groups.begin(), kind.groups.end(), done), kind.groups.end());
      done_ += static_cast<int64_t>(all - kind.groups.size());
      done_cost_ += static_cast<double>(all - kind.groups.size()) * cost(kind.first);
      any = any || !kind.groups.empty();
    }
    if (!any) return count_clean();
    const Batch part = slice_sequences(batch_, begin, end);
    const Rows chosen = rows_of_part(begin, end);
    if (!clean_) {
      clean_.emplace(model_, plan_.sequences, batch_.time,
                     RunOptions{.logits = false, .capture = prefix_sites(kinds_)});
    }
    announce(1, 0);
    forward(model_, part, *clean_);
    keep(clean_index(), begin, part.size, chosen, losses(*clean_, chosen, part.size, 1).data());
    for (const SweepKind& kind : open) {
      for (std::size_t i = 0; i < kind.groups.size(); i += static_cast<std::size_t>(plan_.abreast)) {
        const std::size_t last = std::min(kind.groups.size(), i + static_cast<std::size_t>(plan_.abreast));
        run_abreast(kind,
                    {kind.groups.begin() + static_cast<std::ptrdiff_t>(i),
                     kind.groups.begin() + static_cast<std::ptrdiff_t>(last)},
                    begin, part, chosen);
      }
    }
  }

  void count_clean() {
    ++done_;
    done_cost_ += cost(0);
  }

  // Several groups of one kind side by side: the part's sequences once for each.
  void run_abreast(const SweepKind& kind, const std::vector<std::size_t>& members, int64_t begin, const Batch& part,
                   const Rows& chosen) {
    announce(static_cast<int64_t>(members.size()), kind.first);
    if (!run_ || kind.asked != planned_) {
      run_.reset();
      run_.emplace(model_, plan_.sequences * plan_.abreast, batch_.time,
                   RunOptions{.logits = false, .capture = {kind.asked.begin(), kind.asked.end()}});
      planned_ = kind.asked;
    }
    const int64_t times = static_cast<int64_t>(members.size());
    std::vector<Group> of_part;
    Group together;
    for (std::size_t i = 0; i < members.size(); ++i) {
      of_part.push_back(part_of(groups_[members[i]], begin, begin + part.size));
      const Group own = times == 1 ? of_part[i] : beside_others(of_part[i], part.size, static_cast<int64_t>(i));
      together.insert(together.end(), own.begin(), own.end());
    }
    run_->set_interventions(together);
    // from the first block that the groups touch
    forward(model_, repeat_sequences(part, times), *run_,
            {.first_block = kind.first, .prefix = kind.first > 0 ? &*clean_ : nullptr});
    const std::vector<float> all = losses(*run_, chosen, part.size, times);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const float* const own = all.data() + i * chosen.rows.size();
      keep(members[i], begin, part.size, chosen, own);
      if (compared_.count(members[i]) > 0) compare(part, of_part[i], chosen, own);
    }
  }

  // The arithmetic of a run from a block on, as numbers of the weights that meet a row.
  double cost_of_run(int64_t first) const {
    const ModelConfig& c = model_.config();
    double blocks = 0;
    for (const Parameter& p : model_.parameters().all()) {
      if (p.name.rfind("blocks.", 0) == 0) blocks += static_cast<double>(p.count);
    }
    const double rows = static_cast<double>(batch_.size * batch_.time);
    const double wanted = static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), int64_t{0}));
    return blocks * static_cast<double>(c.blocks - first) / static_cast<double>(std::max<int64_t>(1, c.blocks)) +
           wanted / rows * static_cast<double>(c.vocabulary * c.width);
  }

  void count_costs() {
    for (int64_t first = 0; first <= model_.config().blocks; ++first) costs_.push_back(cost_of_run(first));
    double all = static_cast<double>(1 + compared_.size()) * cost(0);
    for (const SweepKind& kind : kinds_) all += static_cast<double>(kind.groups.size()) * cost(kind.first);
    cost_ = all * static_cast<double>(parts());
  }

  double cost(int64_t first) const { return costs_[static_cast<std::size_t>(first)]; }

  // `runs` more are about to begin, each at this block
  void announce(int64_t runs, int64_t first) {
    if (options_.stop != nullptr && options_.stop->load()) {
      throw Error(ErrorKind::kInterrupted, "sweep",
                  "stopped after " + std::to_string(done_) + " of " + std::to_string(plan_.runs) + " runs");
    }
    if (options_.progress) options_.progress({done_, plan_.runs, done_cost_ / cost_});
    done_ += runs;
    done_cost_ += static_cast<double>(runs) * cost(first);
  }

  // Losses of the chosen rows, for each of `times` repetitions of a part of `size` sequences.
  std::vector<float> losses(const Run& run, const Rows& chosen, int64_t size, int64_t times) {
    std::vector<float> all;
    std::vector<int64_t> rows;
    std::vector<int32_t> targets;
    for (int64_t i = 0; i < times; ++i) {
      for (int64_t row : chosen.rows) rows.push_back(i * size * batch_.time + row);
      targets.insert(targets.end(), chosen.targets.begin(), chosen.targets.end());
    }
    all.resize(rows.size());
    const std::size_t step = static_cast<std::size_t>(logits_.count() / model_.config().vocabulary);
    for (std::size_t i = 0; i < rows.size(); i += step) {
      const std::size_t count = std::min(step, rows.size() - i);
      const View<float, 2> logits(logits_.data(), {static_cast<int64_t>(count), model_.config().vocabulary});
      logits_of_rows<float>(
          model_, run,
          {rows.begin() + static_cast<std::ptrdiff_t>(i), rows.begin() + static_cast<std::ptrdiff_t>(i + count)},
          logits);
      cross_entropy<float>({.logits = logits,
                            .targets = {targets.data() + i, {static_cast<int64_t>(count)}},
                            .loss = {all.data() + i, {static_cast<int64_t>(count)}}});
    }
    return all;
  }

  // Adds up each sequence's losses; a sum that the record already has must be the same.
  void keep(std::size_t index, int64_t begin, int64_t size, const Rows& chosen, const float* losses) {
    std::vector<double> sums(static_cast<std::size_t>(size), 0);
    for (std::size_t i = 0; i < chosen.rows.size(); ++i) sums[chosen.sequences[i]] += static_cast<double>(losses[i]);
    for (int64_t b = 0; b < size; ++b) {
      const double total = sums[static_cast<std::size_t>(b)];
      sum(index, begin + b) = total;
      if (options_.record == nullptr) continue;
      const double before = recorded(index, begin + b);
      if (!std::isnan(before) && before != total) {
        throw Error(ErrorKind::kBadData, "sweep", "the runs kept from before are not those that this program computes",
                    "remove their file to begin anew");
      }
      options_.record->put(names_[index], begin + b, total);
    }
  }

  // one whole run of the group, from the tokens to the loss
  void compare(const Batch& part, const Group& group, const Rows& chosen, const float* found) {
    announce(1, 0);
    run_->set_interventions(group);
    forward(model_, part, *run_);
    const std::vector<float> wanted = losses(*run_, chosen, part.size, 1);
    if (wanted.empty() || std::memcmp(found, wanted.data(), wanted.size() * sizeof(float)) == 0) return;
    same_ = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      difference_.take(std::abs(static_cast<double>(found[i]) - static_cast<double>(wanted[i])));
    }
  }

  double mean(std::size_t index) const {
    double sum = 0;
    double count = 0;
    for (std::size_t b = 0; b < counts_.size(); ++b) {
      sum += sums_[index * counts_.size() + b];
      count += static_cast<double>(counts_[b]);
    }
    return sum / count;
  }

  // each sequence's own mean, less that of the clean run
  std::vector<double> means(std::size_t index, const std::vector<double>* clean) const {
    std::vector<double> values;
    for (std::size_t b = 0; b < counts_.size(); ++b) {
      if (counts_[b] == 0) continue;
      const double value = sums_[index * counts_.size() + b] / static_cast<double>(counts_[b]);
      values.push_back(clean == nullptr ? value : value - (*clean)[values.size()]);
    }
    return values;
  }

  const Model& model_;
  const Batch& batch_;
  const std::vector<Group>& groups_;
  const LossMetric& metric_;
  const SweepOptions& options_;
  std::vector<SweepKind> kinds_;
  SweepPlan plan_;
  int64_t done_ = 0;           // runs
  std::vector<double> costs_;  // (L + 1) of a run from each block on
  double cost_ = 0;            // of all runs
  double done_cost_ = 0;
  std::set<std::size_t> compared_;
  std::vector<int64_t> counts_;     // (B) chosen targets
  std::vector<double> sums_;        // (groups and the clean run, B) of their losses
  std::vector<std::string> names_;  // (groups and the clean run) in the record
  std::optional<Run> clean_, run_;
  std::set<std::string> planned_;  // sites on request that run_ was planned with
  Buffer<float> logits_;           // some rows at a time
  bool same_ = true;
  Largest difference_;
};

}  // namespace

SweepResult sweep_groups(const Model& model, const Batch& batch, const std::vector<std::vector<Intervention>>& groups,
                         const LossMetric& metric, const SweepOptions& options) {
  return Sweep(model, batch, groups, metric, options).result();
}

SweepResult sweep(const Model& model, const Batch& batch, const std::vector<Intervention>& each,
                  const LossMetric& metric, const SweepOptions& options) {
  std::vector<Group> groups;
  for (const Intervention& intervention : each) groups.push_back({intervention});
  return sweep_groups(model, batch, groups, metric, options);
}

SweepPlan plan_sweep(const Model& model, const Batch& batch, const std::vector<std::vector<Intervention>>& groups,
                     const LossMetric& metric, const SweepOptions& options) {
  return Sweep(model, batch, groups, metric, options).plan();
}

std::vector<Effect> SweepResult::by_size() const {
  std::vector<Effect> sorted = effects;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Effect& a, const Effect& b) {
    return (std::isnan(b.change) ? -HUGE_VAL : b.change) < (std::isnan(a.change) ? -HUGE_VAL : a.change);
  });
  return sorted;
}

}  // namespace headlight
