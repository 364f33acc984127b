#include "headlight/model/batch.h"

#include <algorithm>

#include "headlight/base/error.h"

namespace headlight {

int64_t Batch::target_count() const {
  return std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target != kIgnoredTarget; });
}

Batch make_batch(const std::vector<std::vector<int32_t>>& sequences, const std::vector<std::vector<int32_t>>& targets,
                 PadSide side) {
  if (sequences.empty()) throw LogicError("make_batch", "no sequence");
  if (targets.size() != sequences.size()) throw LogicError("make_batch", "targets for another number of sequences");
  Batch batch;
  batch.size = static_cast<int64_t>(sequences.size());
  for (const auto& sequence : sequences) batch.time = std::max(batch.time, static_cast<int64_t>(sequence.size()));
  batch.tokens = Buffer<int32_t>(batch.size * batch.time);
  batch.positions = Buffer<int32_t>(batch.size * batch.time);
  batch.types = Buffer<int32_t>(batch.size * batch.time);
  batch.targets = Buffer<int32_t>(batch.size * batch.time);
  std::fill(batch.targets.begin(), batch.targets.end(), kIgnoredTarget);
  batch.begins = Buffer<int64_t>(batch.size);
  batch.lengths = Buffer<int64_t>(batch.size);
  for (int64_t b = 0; b < batch.size; ++b) {
    const auto& sequence = sequences[static_cast<std::size_t>(b)];
    const auto& target = targets[static_cast<std::size_t>(b)];
    if (target.size() != sequence.size()) {
      throw LogicError("make_batch", "sequence " + std::to_string(b) + " has " + std::to_string(sequence.size()) +
                                         " tokens and " + std::to_string(target.size()) + " targets");
    }
    batch.lengths[b] = static_cast<int64_t>(sequence.size());
    batch.begins[b] = side == PadSide::kLeft ? batch.time - batch.lengths[b] : 0;
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      const int64_t row = batch.row(b, i);
      batch.tokens[row] = sequence[static_cast<std::size_t>(i)];
      batch.targets[row] = target[static_cast<std::size_t>(i)];
      batch.positions[row] = static_cast<int32_t>(i);
    }
  }
  return batch;
}

Batch make_batch(const std::vector<std::vector<int32_t>>& sequences, PadSide side) {
  std::vector<std::vector<int32_t>> targets;
  targets.reserve(sequences.size());
  for (const auto& sequence : sequences) {
    std::vector<int32_t> next(sequence.begin() + (sequence.empty() ? 0 : 1), sequence.end());
    if (!sequence.empty()) next.push_back(kIgnoredTarget);
    targets.push_back(std::move(next));
  }
  return make_batch(sequences, targets, side);
}

}  // namespace headlight
