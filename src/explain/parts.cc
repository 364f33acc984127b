#include "explain/parts.h"

#include <algorithm>

namespace headlight {
namespace {

template <class T>
Buffer<T> part_of(const Buffer<T>& whole, int64_t begin, int64_t end) {
  Buffer<T> part(end - begin);
  std::copy(whole.begin() + begin, whole.begin() + end, part.begin());
  return part;
}

template <class T>
Buffer<T> repeated(const Buffer<T>& once, int64_t times) {
  Buffer<T> all(once.count() * times);
  for (int64_t i = 0; i < times; ++i) std::copy(once.begin(), once.end(), all.begin() + i * once.count());
  return all;
}

}  // namespace

Batch slice_sequences(const Batch& batch, int64_t begin, int64_t end) {
  Batch part;
  part.size = end - begin;
  part.time = batch.time;
  part.tokens = part_of(batch.tokens, begin * batch.time, end * batch.time);
  part.positions = part_of(batch.positions, begin * batch.time, end * batch.time);
  part.types = part_of(batch.types, begin * batch.time, end * batch.time);
  part.targets = part_of(batch.targets, begin * batch.time, end * batch.time);
  part.begins = part_of(batch.begins, begin, end);
  part.lengths = part_of(batch.lengths, begin, end);
  return part;
}

const float* optional_vector(const Model& model, const std::string& name) {
  return model.parameters().contains(name) ? model.vector(name).data : nullptr;
}

Batch repeat_sequences(const Batch& batch, int64_t times) {
  Batch all;
  all.size = batch.size * times;
  all.time = batch.time;
  all.tokens = repeated(batch.tokens, times);
  all.positions = repeated(batch.positions, times);
  all.types = repeated(batch.types, times);
  all.targets = repeated(batch.targets, times);
  all.begins = repeated(batch.begins, times);
  all.lengths = repeated(batch.lengths, times);
  return all;
}

int64_t sequences_per_part(int64_t numbers_per_sequence) {
  constexpr int64_t kNumbers = int64_t{1} << 24;
  return std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, numbers_per_sequence));
}

}  // namespace headlight
