#pragma once
// A run: every buffer that forward and backward write, planned before the first step. The model stays constant.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headlight/kernels/attention.h"
#include "headlight/model/batch.h"
#include "headlight/model/cache.h"
#include "headlight/model/intervention.h"
#include "headlight/model/model.h"

namespace headlight {

struct RunOptions {
  bool gradients = false;  // backward() will follow
  bool logits = true;      // compute the logits (B, T, V)
  int64_t positions = 0;   // the longest sequence together with what a cache holds of it; 0: the batch alone
  // Sites to keep, `*` for any run of characters: "blocks.*.attn.hook_z". "blocks.L.attn.hook_pattern" keeps what
  // pattern_rows() recomputes the weights from.
  std::vector<std::string> capture{};
  std::vector<Intervention> interventions{};
};

// One captured value, read as View<const T, Rank> of the site's rank.
template <class T>
struct SiteValue {
  const T* data;
  std::vector<int64_t> shape;
  std::string name;

  template <int Rank>
  operator View<const T, Rank>() const {  // NOLINT: implicit so that the rank is written once
    if (static_cast<int>(shape.size()) != Rank) {
      throw LogicError(name, "has " + std::to_string(shape.size()) + " sizes, read with " + std::to_string(Rank));
    }
    std::array<int64_t, Rank> sizes{};
    for (int i = 0; i < Rank; ++i) sizes[static_cast<std::size_t>(i)] = shape[static_cast<std::size_t>(i)];
    return {data, sizes};
  }
};

template <class T>
class BasicRun {
 public:
  // Plans all buffers for batches of up to `size` x `time`. Throws LogicError on a site that never fires, on an
  // intervention that does not fit, Error (usage) when `time` exceeds the model's context.
  BasicRun(const BasicModel<T>& model, int64_t size, int64_t time, const RunOptions& options = {});
  ~BasicRun();
  BasicRun(BasicRun&&) noexcept;
  BasicRun& operator=(BasicRun&&) noexcept;

  const RunOptions& options() const noexcept;
  // Replaces the interventions. Sites that are only computed on request must have been named in `capture` or in
  // the interventions that the run was planned with.
  void set_interventions(const std::vector<Intervention>& interventions);

  // A captured site after forward(), shaped for the batch that ran. Throws LogicError when it was not kept.
  SiteValue<T> site(const std::string& name) const;
  // (B, T, V) after forward(); overwritten by backward().
  View<const T, 3> logits() const;
  // Bytes of all buffers.
  int64_t bytes() const noexcept;

  struct State;  // src/model/run_state.h
  State& state() noexcept { return *state_; }
  const State& state() const noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

using Run = BasicRun<float>;

template <class T>
BasicRun<T> plan(const BasicModel<T>& model, const Batch& batch, const RunOptions& options = {}) {
  return BasicRun<T>(model, batch.size, batch.time, options);
}

// BasicRun::bytes() of a run so planned, from counting: nothing is allocated. Throws as BasicRun, and as resolve().
template <class T>
int64_t planned_bytes(const ModelConfig& config, int64_t size, int64_t time, const RunOptions& options = {});

template <class T>
struct ForwardOptions {
  // Start at this block, from the residual stream that `prefix`, a run of the same batch with
  // "blocks.*.hook_resid_pre" captured, has there. Gives the bits of the whole forward when no
  // intervention acts before. The batch may also repeat the prefix's batch several times: each time continues from
  // the same stream.
  int64_t first_block = 0;
  const BasicRun<T>* prefix = nullptr;
  // The batch, of one sequence, continues the one that the cache holds, and is added to it. Gives the bits that its
  // rows have in a forward of the whole sequence. The run must not have been planned with gradients or hook_pattern.
  BasicCache<T>* cache = nullptr;
};

// Runs the model on the batch. Values land in the run; the model is not written.
// A sequence gives the same bits alone and in any padded batch, on either side, for any number of threads.
// Throws Error (bad data) when a token is not in the vocabulary.
template <class T>
void forward(const BasicModel<T>& model, const Batch& batch, BasicRun<T>& run, const ForwardOptions<T>& options = {});

// After forward(), in a run planned with or without logits: the logits of chosen rows (b T + t) of the batch, bit for
// bit those that the forward computes. logits: (rows, V), set. Throws LogicError when a row is outside, or backward()
// has run.
template <class T>
void logits_of_rows(const BasicModel<T>& model, const BasicRun<T>& run, const std::vector<int64_t>& rows,
                    View<T, 2> logits);

// Cross-entropy in nats of each position after forward(): loss (B, T), 0 where the target is ignored.
// Returns the sum over positions in double, in row order.
template <class T>
double token_losses(const Batch& batch, const BasicRun<T>& run, View<T, 2> loss);

// After forward() in a run with gradients: adds d(scale * sum of the token losses) / d(weights) to `gradients`,
// laid out like model.weights(), and returns the sum of the token losses. Overwrites the logits.
template <class T>
double backward(const BasicModel<T>& model, const Batch& batch, BasicRun<T>& run, T scale, View<T, 1> gradients);

// Attention weights of a block, bit for bit those that the forward used, for query rows
// [row_begin, row_begin + R) of all entries and heads [head_begin, head_begin + N). weights: (B, N, R, T), set.
// Rows and columns are rows of the batch (padding included, where weights are 0).
// Throws LogicError unless "blocks.L.attn.hook_pattern" of that block was captured.
template <class T>
void pattern_rows(const BasicModel<T>& model, const Batch& batch, const BasicRun<T>& run, int64_t block,
                  int64_t head_begin, int64_t row_begin, View<T, 4> weights);

// What the attention weights of each row add up to, and single ones of them; see AttentionSums. Rows and keys are rows
// of the batch. Each output is optional.
template <class T>
struct PatternSums {
  View<double, 3> sum{};            // (B, H, T), set: 1 for each valid row, but for rounding
  View<double, 3> entropy{};        // (B, H, T), set, in nats
  View<double, 3> distance{};       // (B, H, T), set, in tokens
  View<const int64_t, 3> chosen{};  // (B, T, N), keys; -1 for none
  View<T, 4> weights{};             // (B, H, T, N), set: the weights of the chosen keys
};

// Sums over the weights that pattern_rows() gives, for all rows and heads of a block; no weights are stored.
// Throws LogicError unless "blocks.L.attn.hook_pattern" of that block was captured.
template <class T>
void pattern_sums(const BasicModel<T>& model, const Batch& batch, const BasicRun<T>& run, int64_t block,
                  const PatternSums<T>& sums);

}  // namespace headlight
