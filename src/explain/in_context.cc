#include "headlight/explain/in_context.h"

#include <algorithm>
#include <array>

#include "explain/parts.h"
#include "headlight/base/error.h"
#include "headlight/kernels/cross_entropy.h"
#include "headlight/model/run.h"
#include "headlight/tensor/buffer.h"

namespace headlight {
namespace {

constexpr int64_t kEarly = 50;
constexpr int64_t kLate = 500;

// The losses at positions i and j of each sequence that has a target at both.
struct TwoLosses {
  std::vector<double> early, late;
};

// whether sequence b has a target at its position i
bool has_target(const Batch& batch, int64_t b, int64_t i) {
  return i < batch.lengths[b] && batch.targets[batch.row(b, i)] != kIgnoredTarget;
}

TwoLosses losses_at(const Model& model, const Batch& batch, int64_t i, int64_t j) {
  const ModelConfig& c = model.config();
  TwoLosses losses;
  const int64_t step = std::min(batch.size, sequences_per_part(batch.time * (c.blocks + 8) * c.width));
  Run run(model, step, batch.time, {.logits = false});
  for (int64_t begin = 0; begin < batch.size; begin += step) {
    const Batch part = slice_sequences(batch, begin, std::min(batch.size, begin + step));
    forward(model, part, run);
    for (int64_t b = 0; b < part.size; ++b) {
      if (!has_target(part, b, i) || !has_target(part, b, j)) continue;
      const std::vector<int64_t> rows{part.row(b, i), part.row(b, j)};
      Buffer<float> logits(2 * c.vocabulary);
      logits_of_rows<float>(model, run, rows, logits.view<2>({2, c.vocabulary}));
      const std::array<int32_t, 2> targets{part.targets[rows[0]], part.targets[rows[1]]};
      std::array<float, 2> loss{};
      cross_entropy<float>(
          {.logits = logits.view<2>({2, c.vocabulary}), .targets = {targets.data(), {2}}, .loss = {loss.data(), {2}}});
      losses.early.push_back(double{loss[0]});
      losses.late.push_back(double{loss[1]});
    }
  }
  return losses;
}

}  // namespace

InContextScore in_context_score(const Model& model, const Batch& batch) {
  int64_t last = -1;  // position of the last target
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      if (has_target(batch, b, i)) last = std::max(last, i);
    }
  }
  if (last < 1) throw LogicError("in_context_score", "no sequence has two tokens to predict");
  InContextScore result;
  // position i predicts the token that is number i + 2, counted from 1
  result.late = std::min(kLate, last + 2);
  result.early = result.late == kLate ? kEarly : std::max<int64_t>(2, result.late / 10);
  const TwoLosses losses = losses_at(model, batch, result.early - 2, result.late - 2);
  std::vector<double> difference;
  for (std::size_t b = 0; b < losses.early.size(); ++b) difference.push_back(losses.late[b] - losses.early[b]);
  result.loss_early = estimate_of(losses.early);
  result.loss_late = estimate_of(losses.late);
  result.score = estimate_of(difference);
  return result;
}

}  // namespace headlight
