#include "headlight/explain/ablation.h"

#include <algorithm>

#include "explain/parts.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

std::string z_site(int64_t block) { return "blocks." + std::to_string(block) + ".attn.hook_z"; }

// Sums of z over a reference set: (L, H, times, M), and how many values each time has.
struct ZSums {
  int64_t times = 1;
  std::vector<double> sums;
  std::vector<int64_t> counts;
};

void add_part(const Model& model, const Batch& part, const Run& run, bool per_position, ZSums& total) {
  const ModelConfig& config = model.config();
  const int64_t width = config.value_width;
  for (int64_t block = 0; block < config.blocks; ++block) {
    const View<const float, 4> z = run.site(z_site(block));
    for (int64_t b = 0; b < part.size; ++b) {
      for (int64_t i = 0; i < part.lengths[b]; ++i) {
        const int64_t time = per_position ? i : 0;
        for (int64_t h = 0; h < config.heads; ++h) {
          double* const sum = total.sums.data() + ((block * config.heads + h) * total.times + time) * width;
          const float* const values = &z(b, part.begins[b] + i, h, 0);
          for (int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(values[c]);
        }
      }
    }
  }
  for (int64_t b = 0; b < part.size; ++b) {
    for (int64_t i = 0; i < part.lengths[b]; ++i) ++total.counts[static_cast<std::size_t>(per_position ? i : 0)];
  }
}

LossMetric copy_loss(const RepeatedBatch& repeated, bool second) {
  const Batch& batch = repeated.batch;
  LossMetric metric;
  metric.name = second ? "loss on the second copy" : "loss on the first copy";
  metric.chosen.assign(static_cast<std::size_t>(batch.size * batch.time), 0);
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      metric.chosen[static_cast<std::size_t>(batch.row(b, i))] = (i >= repeated.second_copy(b)) == second;
    }
  }
  return metric;
}

}  // namespace

Ablation zero_ablation() { return {}; }

Ablation mean_ablation(const Model& model, const Batch& reference, bool per_position) {
  const ModelConfig& config = model.config();
  const int64_t width = config.value_width;
  ZSums total;
  if (per_position) total.times = *std::max_element(reference.lengths.begin(), reference.lengths.end());
  total.counts.assign(static_cast<std::size_t>(total.times), 0);
  total.sums.assign(static_cast<std::size_t>(config.blocks * config.heads * total.times * width), 0);
  const int64_t step =
      std::min(reference.size, sequences_per_part(reference.time * config.blocks * config.heads * width));
  Run run(model, step, reference.time, {.logits = false, .capture = {"blocks.*.attn.hook_z"}});
  for (int64_t begin = 0; begin < reference.size; begin += step) {
    const Batch part = slice_sequences(reference, begin, std::min(reference.size, begin + step));
    forward(model, part, run);
    add_part(model, part, run, per_position, total);
  }
  if (total.times == 0 || total.counts.front() == 0) throw LogicError("mean_ablation", "the reference set is empty");
  Ablation ablation;
  ablation.id = "mean";
  ablation.definition = std::string("the head's output z, before W_O, is set to its mean over ") +
                        (per_position ? "the sequences of the reference set, position by position"
                                      : "all positions of the reference set");
  ablation.means_time = total.times;
  for (const HeadId& head : all_heads(config)) {
    std::vector<float> means(static_cast<std::size_t>(total.times * width));
    const std::size_t first = static_cast<std::size_t>((head.block * config.heads + head.head) * total.times * width);
    for (std::size_t i = 0; i < means.size(); ++i) {
      const double sum = total.sums[first + i];
      const int64_t count = total.counts[i / static_cast<std::size_t>(width)];
      means[i] = static_cast<float>(sum / static_cast<double>(count));
    }
    ablation.means.emplace(head, std::make_shared<const std::vector<float>>(std::move(means)));
  }
  return ablation;
}

Intervention ablate(const HeadId& head, const Ablation& ablation) {
  Intervention intervention{.site = z_site(head.block), .head = head.head};
  if (ablation.means.empty()) return intervention;
  const auto mean = ablation.means.find(head);
  if (mean == ablation.means.end()) throw LogicError("ablate", "no mean for head " + to_string(head));
  intervention.kind = InterventionKind::kReplace;
  intervention.values = mean->second;
  intervention.values_time = ablation.means_time;
  return intervention;
}

std::vector<Intervention> ablate(const std::vector<HeadId>& heads, const Ablation& ablation) {
  std::vector<Intervention> interventions;
  for (const HeadId& head : heads) interventions.push_back(ablate(head, ablation));
  return interventions;
}

std::vector<Intervention> each_head(const ModelConfig& config, const Ablation& ablation) {
  return ablate(all_heads(config), ablation);
}

LossMetric second_copy_loss(const RepeatedBatch& repeated) { return copy_loss(repeated, true); }
LossMetric first_copy_loss(const RepeatedBatch& repeated) { return copy_loss(repeated, false); }

}  // namespace headlight
