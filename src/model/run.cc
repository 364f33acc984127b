#include "headlight/model/run.h"

#include <algorithm>
#include <unordered_map>

#include "model/architecture.h"
#include "model/run_state.h"

namespace headlight {
namespace {

int64_t slot_elements(const Slot& slot, int64_t size, int64_t time, int64_t positions) {
  std::array<int64_t, 4> sizes{1, 1, 1, 1};
  for (std::size_t i = 0; i < slot.shape.size(); ++i) {
    sizes[i] = slot.shape[i] == kBatchSize       ? size
               : slot.shape[i] == kTimeSize      ? time
               : slot.shape[i] == kPositionsSize ? positions
                                                 : slot.shape[i];
  }
  return checked_bytes("BasicRun: " + slot.name, sizes, 1);
}

void want(const SiteTable& sites, int slot, std::vector<bool>& wanted) {
  wanted[static_cast<std::size_t>(slot)] = true;
  for (int source : sites[slot].sources) wanted[static_cast<std::size_t>(source)] = true;
}

bool needs_place(const Slot& slot, bool wanted, bool gradients, bool logits) {
  if (slot.use == SlotUse::kRecomputed) return false;
  if (slot.name == "logits") return logits || gradients;
  if (slot.use == SlotUse::kWorkspace) return gradients;
  if (slot.use == SlotUse::kOnRequest) return wanted || (gradients && slot.saved);
  return true;
}

// Gives each slot a place: its own when it is to be found after the forward, else one shared with its like.
// Returns the elements of all places.
template <class T>
int64_t place_slots(typename BasicRun<T>::State& run, int64_t size, int64_t time) {
  constexpr int64_t kAlignment = 16;
  const std::vector<Slot>& slots = run.architecture->sites.slots();
  struct Place {
    int64_t offset;
    int64_t elements;
  };
  std::unordered_map<std::string, Place> shared;
  int64_t total = 0;
  run.offset.assign(slots.size(), -1);
  run.own.assign(slots.size(), false);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (!needs_place(slot, run.wanted[i], run.options.gradients, run.options.logits)) continue;
    const int64_t elements =
        (slot_elements(slot, size, time, run.table_length) + kAlignment - 1) / kAlignment * kAlignment;
    run.own[i] = slot.use != SlotUse::kWorkspace &&
                 (run.wanted[i] || slot.name == "logits" || (run.options.gradients && slot.saved));
    if (!run.own[i]) {
      const auto [place, is_new] = shared.try_emplace(slot.share, Place{total, elements});
      if (!is_new && place->second.elements < elements)
        throw LogicError("BasicRun", slot.name + " shares a smaller place");
      run.offset[i] = place->second.offset;
      if (!is_new) continue;
    } else {
      run.offset[i] = total;
    }
    total += elements;
  }
  return total;
}

// All of a run but its memory and its interventions. Returns the elements of the memory.
template <class T>
int64_t plan_state(typename BasicRun<T>::State& run, const ModelConfig& config,
                   std::shared_ptr<const Architecture<T>> architecture, int64_t size, int64_t time,
                   const RunOptions& options) {
  if (time > config.context) {
    throw Error(ErrorKind::kUsage, "sequence", std::to_string(time) + " tokens",
                "the model's context is " + std::to_string(config.context));
  }
  if (!config.unembedding && (options.logits || options.gradients)) {
    throw Error(ErrorKind::kUsage, "the model", "predicts no token", "it has no unembedding, so no logits and no loss");
  }
  run.table_length = std::max(time, options.positions);
  if (run.table_length > config.context) {
    throw Error(ErrorKind::kUsage, "positions", std::to_string(run.table_length),
                "the model's context is " + std::to_string(config.context));
  }
  run.config = config;
  run.architecture = std::move(architecture);
  run.options = options;
  run.capacity = checked_bytes("BasicRun", std::array<int64_t, 2>{size, time}, 1);
  const SiteTable& sites = run.architecture->sites;
  run.wanted.assign(sites.slots().size(), false);
  for (const std::string& pattern : options.capture) {
    for (int slot : sites.match(pattern)) want(sites, slot, run.wanted);
  }
  for (const Intervention& x : options.interventions) want(sites, sites.find(x.site), run.wanted);
  for (std::size_t i = 0; i < run.wanted.size(); ++i) {
    if (run.wanted[i] && sites.slots()[i].use == SlotUse::kRecomputed) run.keeps_recomputed = true;
  }
  run.interventions.resize(sites.slots().size());
  return place_slots<T>(run, size, time);
}

std::string values_problem(const Intervention& x, int64_t width) {
  const int64_t wanted = x.values_batch * x.values_time * width;
  const int64_t found = x.values ? static_cast<int64_t>(x.values->size()) : 0;
  if (found == wanted && x.values_batch >= 1 && x.values_time >= 1) return "";
  return std::to_string(found) + " values; wanted " + std::to_string(x.values_batch) + " x " +
         std::to_string(x.values_time) + " x " + std::to_string(width);
}

template <class T>
PreparedIntervention<T> prepare(const SiteTable& sites, const Intervention& x) {
  PreparedIntervention<T> out;
  out.slot = sites.find(x.site);
  const Slot& slot = sites[out.slot];
  const auto refuse = [&](const std::string& why) { throw LogicError("intervention at " + x.site, why); };
  if (!slot.changeable) {
    refuse("this site can be read but not changed (a head is changed at hook_z)");
  }
  int64_t width = 1;
  for (std::size_t i = 2; i < slot.shape.size(); ++i) width *= slot.shape[i];
  if (x.head) {
    if (slot.shape.size() != 4) refuse("it has no heads");
    if (*x.head < 0 || *x.head >= slot.shape[2]) {
      refuse("head " + std::to_string(*x.head) + " of " + std::to_string(slot.shape[2]));
    }
    width = slot.shape[3];
  }
  if (x.position && *x.position < 0) refuse("position " + std::to_string(*x.position));
  if (x.entry && *x.entry < 0) refuse("entry " + std::to_string(*x.entry));
  if (x.kind == InterventionKind::kReplace || x.kind == InterventionKind::kAdd) {
    const std::string problem = values_problem(x, width);
    if (!problem.empty()) refuse(problem);
    out.values.assign(x.values->begin(), x.values->end());
  }
  out.kind = x.kind;
  out.head = x.head.value_or(-1);
  out.position = x.position.value_or(-1);
  out.entry = x.entry.value_or(-1);
  out.factor = static_cast<T>(x.factor);
  out.values_batch = x.values_batch;
  out.values_time = x.values_time;
  return out;
}

template <class T>
void apply_to_row(const PreparedIntervention<T>& x, const T* values, T* row, int64_t width) {
  for (int64_t c = 0; c < width; ++c) {
    switch (x.kind) {
      case InterventionKind::kZero:
        row[c] = T(0);
        break;
      case InterventionKind::kReplace:
        row[c] = values[c];
        break;
      case InterventionKind::kScale:
        row[c] = x.factor * row[c];
        break;
      case InterventionKind::kAdd:
        row[c] = row[c] + x.factor * values[c];
        break;
    }
  }
}

int64_t one_or(int64_t index, int64_t size, const char* what, const std::string& site) {
  if (size == 1) return 0;
  if (index < size) return index;
  throw LogicError("intervention at " + site,
                   "values for " + std::to_string(size) + " " + what + ", the batch has more");
}

template <class T>
void apply(const PreparedIntervention<T>& x, const Slot& slot, const Batch& batch, T* data) {
  int64_t row_width = 1;
  for (std::size_t i = 2; i < slot.shape.size(); ++i) row_width *= slot.shape[i];
  const int64_t width = x.head >= 0 ? slot.shape[3] : row_width;
  for (int64_t b = 0; b < batch.size; ++b) {
    if (x.entry >= 0 && x.entry != b) continue;
    for (int64_t i = 0; i < batch.lengths[b]; ++i) {
      if (x.position >= 0 && x.position != i) continue;
      const T* values = nullptr;
      if (!x.values.empty()) {
        const int64_t value_row = one_or(b, x.values_batch, "entries", slot.name) * x.values_time +
                                  one_or(i, x.values_time, "positions", slot.name);
        values = x.values.data() + value_row * width;
      }
      T* row = data + batch.row(b, i) * row_width + (x.head >= 0 ? x.head * width : 0);
      apply_to_row(x, values, row, width);
    }
  }
}

}  // namespace

template <class T>
void intervene(const Batch& batch, typename BasicRun<T>::State& run, int slot) {
  for (const PreparedIntervention<T>& x : run.interventions[static_cast<std::size_t>(slot)]) {
    apply(x, run.architecture->sites[slot], batch, run.at(slot));
  }
}

template <class T>
BasicRun<T>::BasicRun(const BasicModel<T>& model, int64_t size, int64_t time, const RunOptions& options)
    : state_(std::make_unique<State>()) {
  State& run = *state_;
  const int64_t elements = plan_state<T>(run, model.config(), model.shared_architecture(), size, time, options);
  run.memory = Buffer<T>(elements);
  run.positions = Buffer<int32_t>(run.capacity);
  fill_position_tables<T>(run.config, run);
  set_interventions(options.interventions);
}

template <class T>
BasicRun<T>::~BasicRun() = default;
template <class T>
BasicRun<T>::BasicRun(BasicRun&&) noexcept = default;
template <class T>
BasicRun<T>& BasicRun<T>::operator=(BasicRun&&) noexcept = default;

template <class T>
const RunOptions& BasicRun<T>::options() const noexcept {
  return state_->options;
}

template <class T>
void BasicRun<T>::set_interventions(const std::vector<Intervention>& interventions) {
  if (!interventions.empty() && state_->options.gradients) {
    throw LogicError("set_interventions", "a run with gradients takes no interventions");
  }
  std::vector<std::vector<PreparedIntervention<T>>> prepared(state_->interventions.size());
  for (const Intervention& x : interventions) {
    PreparedIntervention<T> p = prepare<T>(state_->architecture->sites, x);
    const Slot& slot = state_->architecture->sites[p.slot];
    // values that are not made unless asked for, and steps that are fused unless asked apart
    if (slot.use == SlotUse::kOnRequest && !state_->is_wanted(p.slot)) {
      throw LogicError("intervention at " + x.site, "the run was planned without this site; name it in `capture`");
    }
    prepared[static_cast<std::size_t>(p.slot)].push_back(std::move(p));
  }
  state_->interventions = std::move(prepared);
  state_->options.interventions = interventions;
}

template <class T>
SiteValue<T> BasicRun<T>::site(const std::string& name) const {
  const int slot = state_->architecture->sites.find(name);
  const Slot& info = state_->architecture->sites[slot];
  if (info.use == SlotUse::kRecomputed) throw LogicError("site " + name, "is read by rows: pattern_rows()");
  if (!state_->own[static_cast<std::size_t>(slot)]) {
    throw LogicError("site " + name, "was not kept; name it in RunOptions::capture");
  }
  if (!state_->has_run) throw LogicError("site " + name, "forward() has not run");
  std::vector<int64_t> shape = info.shape;
  for (int64_t& n : shape) n = n == kBatchSize ? state_->size : n == kTimeSize ? state_->time : n;
  return {state_->at(slot), shape, name};
}

template <class T>
View<const T, 3> BasicRun<T>::logits() const {
  if (!state_->has_run) throw LogicError("logits", "forward() has not run");
  if (!state_->stored(state_->architecture->logits)) throw LogicError("logits", "the run was planned without them");
  return {state_->at(state_->architecture->logits), {state_->size, state_->time, state_->config.vocabulary}};
}

template <class T>
int64_t BasicRun<T>::bytes() const noexcept {
  return state_->memory.count() * static_cast<int64_t>(sizeof(T));
}

template <class T>
int64_t planned_bytes(const ModelConfig& given, int64_t size, int64_t time, const RunOptions& options) {
  const ModelConfig config = resolve(given);
  typename BasicRun<T>::State state;
  return plan_state<T>(state, config, build_architecture<T>(config), size, time, options) *
         static_cast<int64_t>(sizeof(T));
}

std::string to_string(const Intervention& x) {
  std::string text = x.site;
  if (x.head) text += " head " + std::to_string(*x.head);
  if (x.position) text += " position " + std::to_string(*x.position);
  if (x.entry) text += " entry " + std::to_string(*x.entry);
  switch (x.kind) {
    case InterventionKind::kZero:
      return text + ": zero";
    case InterventionKind::kReplace:
      return text + ": replace";
    case InterventionKind::kScale:
      return text + ": scale by " + std::to_string(x.factor);
    case InterventionKind::kAdd:
      return text + ": add " + std::to_string(x.factor) + " times the values";
  }
  return text;
}

template class BasicRun<float>;
template class BasicRun<double>;
template int64_t planned_bytes<float>(const ModelConfig&, int64_t, int64_t, const RunOptions&);
template int64_t planned_bytes<double>(const ModelConfig&, int64_t, int64_t, const RunOptions&);
template void intervene<float>(const Batch&, BasicRun<float>::State&, int);
template void intervene<double>(const Batch&, BasicRun<double>::State&, int);

}  // namespace headlight
