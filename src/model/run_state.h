#pragma once
// The inside of a run: where each slot of the site table lies, and what is to be done to it on the way.

#include <memory>
#include <vector>

#include "headlight/model/run.h"
#include "headlight/tensor/buffer.h"

namespace headlight {

// An intervention whose site has been looked up and checked.
template <class T>
struct PreparedIntervention {
  int slot = 0;
  InterventionKind kind = InterventionKind::kZero;
  int64_t head = -1;
  int64_t position = -1;
  int64_t entry = -1;
  T factor = T(1);
  std::vector<T> values;
  int64_t values_batch = 1;
  int64_t values_time = 1;
};

template <class T>
struct BasicRun<T>::State {
  ModelConfig config;
  std::shared_ptr<const Architecture<T>> architecture;
  RunOptions options;
  int64_t capacity = 0;  // B T that the buffers hold
  int64_t size = 0;      // B of the batch that ran last
  int64_t time = 0;      // T of it
  bool has_run = false;
  bool keeps_recomputed = false;  // a site that is recomputed by rows was asked for
  int64_t table_length = 0;       // positions in the tables
  Buffer<int32_t> positions;      // (B, T) of the batch that ran last
  std::vector<int64_t> offset;    // per slot: its first element in `memory`, or -1 when it is not stored
  std::vector<bool> wanted;       // per slot: captured, or touched by an intervention
  std::vector<bool> own;          // per slot: it has a place of its own, so that it is there after the forward
  std::vector<std::vector<PreparedIntervention<T>>> interventions;  // per slot
  Buffer<T> memory;

  bool stored(int slot) const { return slot >= 0 && offset[static_cast<std::size_t>(slot)] >= 0; }
  bool is_wanted(int slot) const { return slot >= 0 && wanted[static_cast<std::size_t>(slot)]; }
  T* at(int slot) { return memory.data() + offset[static_cast<std::size_t>(slot)]; }
  const T* at(int slot) const { return memory.data() + offset[static_cast<std::size_t>(slot)]; }

  // (B T, width), absent when the slot is not stored
  View<T, 2> rows(int slot, int64_t width) {
    if (!stored(slot)) return {};
    return {at(slot), {size * time, width}};
  }
  View<T, 1> row_values(int slot) {
    if (!stored(slot)) return {};
    return {at(slot), {size * time}};
  }
  // (positions, width), by position
  View<T, 2> table(int slot, int64_t width) { return {at(slot), {table_length, width}}; }
  // (B, T, heads, width)
  View<T, 4> heads(int slot, int64_t heads, int64_t width) {
    if (!stored(slot)) return {};
    return {at(slot), {size, time, heads, width}};
  }
  View<RowStatistic<T>, 3> statistics(int slot, int64_t heads) {
    return {reinterpret_cast<RowStatistic<T>*>(at(slot)), {size, heads, time}};
  }
};

// Does to the value in `slot` what the run's interventions say. Called where the value is made.
template <class T>
void intervene(const Batch& batch, typename BasicRun<T>::State& run, int slot);

}  // namespace headlight
