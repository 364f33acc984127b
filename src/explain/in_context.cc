#include "headlight/explain/in_context.h"

#include <algorithm>
#include <string>
#include <vector>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr int64_t kEarly = 50;
constexpr int64_t kLate = 500;

// whether sequence b has a target at its position i
bool has_target(const Batch& batch, int64_t b, int64_t i) {
  return i < batch.lengths[b] && batch.targets[batch.row(b, i)] != kIgnoredTarget;
}

}  // namespace

InContextScore in_context_score(const Batch& batch, View<const float, 2> losses) {
  if (losses.size(0) != batch.size || losses.size(1) != batch.time) {
    throw LogicError("in_context_score", "losses " + shape_text(losses) + " for a batch of " +
                                             std::to_string(batch.size) + " x " + std::to_string(batch.time));
  }
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
  std::vector<double> early, late, difference;
  const int64_t i = result.early - 2, j = result.late - 2;
  for (int64_t b = 0; b < batch.size; ++b) {
    if (!has_target(batch, b, i) || !has_target(batch, b, j)) continue;
    early.push_back(double{losses(b, batch.begins[b] + i)});
    late.push_back(double{losses(b, batch.begins[b] + j)});
    difference.push_back(late.back() - early.back());
  }
  result.loss_early = estimate_of(early);
  result.loss_late = estimate_of(late);
  result.score = estimate_of(difference);
  return result;
}

}  // namespace headlight
