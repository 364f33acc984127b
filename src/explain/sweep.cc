#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "explain/parts.h"
#include "headlight/explain/ablation.h"
#include "headlight/kernels/cross_entropy.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

using Group = std::vector<Intervention>;

// The first block that a group touches: the streams before it are those of the clean run.
int64_t first_block(const Group& group, int64_t blocks) {
  int64_t first = std::max<int64_t>(0, blocks - 1);
  for (const Intervention& x : group) {
    if (x.site.rfind("ln_final.", 0) == 0) continue;
    first = std::min(first, x.site.rfind("blocks.", 0) == 0 ? int64_t{std::stol(x.site.substr(7))} : 0);
  }
  return first;
}

std::set<std::string> sites_of(const Group& group) {
  std::set<std::string> sites;
  for (const Intervention& x : group) sites.insert(x.site);
  return sites;
}

// What of a group acts on sequences [begin, end) of the batch, counted from `begin`.
Group part_of(const Group& group, int64_t begin, int64_t end) {
  Group part;
  for (Intervention x : group) {
    if (x.entry && (*x.entry < begin || *x.entry >= end)) continue;
    if (x.entry) *x.entry -= begin;
    if (x.values && x.values_batch > 1 && static_cast<int64_t>(x.values->size()) % x.values_batch == 0) {
      if (x.values_batch < end) {
        throw LogicError("sweep", to_string(x) + " has values for " + std::to_string(x.values_batch) +
                                      " sequences, the batch has more");
      }
      const int64_t each = static_cast<int64_t>(x.values->size()) / x.values_batch;
      x.values =
          std::make_shared<const std::vector<float>>(x.values->begin() + begin * each, x.values->begin() + end * each);
      x.values_batch = end - begin;
    }
    part.push_back(std::move(x));
  }
  return part;
}

class Sweep {
 public:
  Sweep(const Model& model, const Batch& batch, const std::vector<Group>& groups, const LossMetric& metric,
        const SweepOptions& options)
      : model_(model), batch_(batch), groups_(groups), metric_(metric), options_(options) {
    check_arguments();
    const ModelConfig& c = model.config();
    step_ = std::min(batch.size, sequences_per_part(batch.time * (2 * c.vocabulary + (c.blocks + 8) * c.width)));
    const int64_t parts = (batch.size + step_ - 1) / step_;
    choose_compared();
    total_ = parts * static_cast<int64_t>(groups.size() + compared_.size() + 1);
    loss_ = Buffer<float>(step_ * batch.time);
    whole_loss_ = Buffer<float>(step_ * batch.time);
    sums_.assign((groups.size() + 1) * static_cast<std::size_t>(batch.size), 0);
  }

  SweepResult result() {
    for (int64_t begin = 0; begin < batch_.size; begin += step_) {
      run_part(begin, std::min(batch_.size, begin + step_));
    }
    SweepResult result;
    result.metric = metric_.name;
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

  void run_part(int64_t begin, int64_t end) {
    const Batch part = slice_sequences(batch_, begin, end);
    if (!clean_) {
      RunOptions options;
      if (model_.config().blocks > 0) options.capture = {"blocks.*.hook_resid_pre"};
      clean_.emplace(model_, step_, batch_.time, options);
    }
    announce();
    forward(model_, part, *clean_);
    add_losses(clean_index(), begin, part, *clean_, loss_);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      announce();
      const Group group = part_of(groups_[g], begin, end);
      run_group(part, group);
      add_losses(g, begin, part, *run_, loss_);
      if (compared_.count(g) == 0) continue;
      announce();
      Run whole(model_, part.size, part.time, {.interventions = group});
      forward(model_, part, whole);
      compare(part, whole);
    }
  }

  // Continues from the first block that the group touches. What the run was planned with is what a whole run of this
  // group would be planned with: sites that are asked for are computed in steps of their own.
  void run_group(const Batch& part, const Group& group) {
    const std::set<std::string> sites = sites_of(group);
    if (!run_ || sites != planned_) {
      run_.emplace(model_, step_, batch_.time, RunOptions{.interventions = group});
      planned_ = sites;
    } else {
      run_->set_interventions(group);
    }
    const int64_t first = first_block(group, model_.config().blocks);
    forward(model_, part, *run_, {.first_block = first, .prefix = first > 0 ? &*clean_ : nullptr});
  }

  // one more run is about to begin
  void announce() {
    if (options_.stop != nullptr && options_.stop->load()) {
      throw Error(ErrorKind::kInterrupted, "sweep",
                  "stopped after " + std::to_string(done_) + " of " + std::to_string(total_) + " runs");
    }
    if (options_.progress) options_.progress(done_, total_);
    ++done_;
  }

  void add_losses(std::size_t index, int64_t begin, const Batch& part, const Run& run, Buffer<float>& loss) {
    token_losses<float>(part, run, loss.view<2>({part.size, part.time}));
    for (int64_t b = 0; b < part.size; ++b) {
      double& sum = sums_[index * static_cast<std::size_t>(batch_.size) + static_cast<std::size_t>(begin + b)];
      for (int64_t t = 0; t < part.time; ++t) {
        if (is_chosen((begin + b) * batch_.time + t)) sum += static_cast<double>(loss[b * part.time + t]);
      }
    }
  }

  void compare(const Batch& part, const Run& whole) {
    token_losses<float>(part, whole, whole_loss_.view<2>({part.size, part.time}));
    const int64_t rows = part.size * part.time;
    if (std::memcmp(loss_.data(), whole_loss_.data(), static_cast<std::size_t>(rows) * sizeof(float)) == 0) return;
    same_ = false;
    for (int64_t row = 0; row < rows; ++row) {
      difference_.take(std::abs(static_cast<double>(loss_[row]) - static_cast<double>(whole_loss_[row])));
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
  int64_t step_ = 1;  // sequences at once
  int64_t done_ = 0;  // runs
  int64_t total_ = 0;
  std::set<std::size_t> compared_;
  std::vector<int64_t> counts_;  // (B) chosen targets
  std::vector<double> sums_;     // (groups and the clean run, B) of their losses
  std::optional<Run> clean_, run_;
  std::set<std::string> planned_;  // sites that run_ was planned with
  Buffer<float> loss_, whole_loss_;
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

std::vector<Effect> SweepResult::by_size() const {
  std::vector<Effect> sorted = effects;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Effect& a, const Effect& b) {
    return (std::isnan(b.change) ? -HUGE_VAL : b.change) < (std::isnan(a.change) ? -HUGE_VAL : a.change);
  });
  return sorted;
}

}  // namespace headlight
