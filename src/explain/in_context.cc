#include "headlight/explain/in_context.h"

#include <algorithm>

#include "headlight/base/error.h"
#include "headlight/kernels/cross_entropy.h"
#include "headlight/model/run.h"
#include "headlight/tensor/buffer.h"

namespace headlight {
namespace {

constexpr int64_t kEarly = 50;
constexpr int64_t kLate = 500;

// The loss of each target, with the rows of the batch.
Buffer<float> losses_of(const Model& model, const Batch& batch) {
  Run run = plan(model, batch);
  forward(model, batch, run);
  Buffer<float> losses(batch.size * batch.time);
  token_losses(batch, run, losses.view<2>({batch.size, batch.time}));
  return losses;
}

// whether sequence b has a target at its position i
bool has_target(const Batch& batch, int64_t b, int64_t i) {
  return i < batch.lengths[b] && batch.targets[batch.row(b, i)] != kIgnoredTarget;
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
  const Buffer<float> losses = losses_of(model, batch);
  std::vector<double> early, late, difference;
  for (int64_t b = 0; b < batch.size; ++b) {
    const int64_t i = result.early - 2, j = result.late - 2;
    if (!has_target(batch, b, i) || !has_target(batch, b, j)) continue;
    early.push_back(double{losses[batch.row(b, i)]});
    late.push_back(double{losses[batch.row(b, j)]});
    difference.push_back(late.back() - early.back());
  }
  result.loss_early = estimate_of(early);
  result.loss_late = estimate_of(late);
  result.score = estimate_of(difference);
  return result;
}

}  // namespace headlight
