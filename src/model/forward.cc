// The forward of a whole model, and beside it the backward.

#include <algorithm>
#include <cmath>

#include "headlight/kernels/activation.h"
#include "headlight/kernels/cross_entropy.h"
#include "headlight/kernels/elementwise.h"
#include "headlight/kernels/embedding.h"
#include "headlight/kernels/matmul.h"
#include "headlight/kernels/norm.h"
#include "headlight/model/run.h"
#include "model/architecture.h"
#include "model/attention_sublayer.h"
#include "model/feed_forward_sublayer.h"
#include "model/linear.h"
#include "model/run_state.h"

namespace headlight {
namespace {

template <class T>
int final_slot(const Architecture<T>& a) {
  return a.final_norm.kind == NormKind::kNone ? a.stream_end : a.final_norm.normalized;
}

// what the unembedding reads; nothing overwrites it until the next forward, or the backward
template <class T>
int predicting_slot(const Architecture<T>& a) {
  return a.prediction.weight < 0 ? final_slot(a) : a.prediction.norm.normalized;
}

// logits = y W_U + b_U
template <class T>
void unembed_rows(const BasicModel<T>& model, View<const T, 2> y, View<T, 2> logits) {
  const int bias = model.architecture().unembedding_bias;
  const View<const T, 1> b_u = bias < 0 ? View<const T, 1>{} : model.vector(bias);
  multiply<T>({.a = y, .b = {}, .c = logits, .bias = b_u}, model.stored_unembedding());
}

template <class T>
struct Forward {
  const Pass<T>& pass;
  const Architecture<T>& a = pass.model.architecture();
  typename BasicRun<T>::State& run = pass.run;
  const int64_t width = pass.model.config().width;

  View<T, 2> rows(int slot) const { return run.rows(slot, width); }
  View<const int32_t, 1> tokens() const { return pass.batch.tokens.template view<1>({pass.rows()}); }
  View<const int32_t, 1> types() const { return pass.batch.types.template view<1>({pass.rows()}); }
  View<const int32_t, 1> positions() const { return {pass.positions().data, {pass.rows()}}; }

  // x = W_E[token] + position
  void embed() const {
    const View<T, 2> x = rows(a.embedded);
    if (run.is_wanted(a.embed_site)) {
      const View<T, 2> embedded = rows(a.embed_site);
      look_up(tokens(), pass.weight(a.embedding), embedded);
      intervene<T>(pass.batch, run, a.embed_site);
      std::copy(embedded.data, embedded.data + embedded.count(), x.data);
    } else {
      look_up(tokens(), pass.weight(a.embedding), x);
    }
    if (a.position_site >= 0) add_embedding(positions(), position_table(), a.position_site, x);
    if (a.type_site >= 0) add_embedding(types(), pass.weight(a.type_embedding), a.type_site, x);
    intervene<T>(pass.batch, run, a.embedded);
    if (a.embedding_norm.kind != NormKind::kNone) norm(a.embedding_norm, x);
  }

  StoredMatrix<T> position_table() const {
    if (a.position_embedding >= 0) return pass.weight(a.position_embedding);
    return {.wide = run.table(a.sinusoids, width)};
  }

  // y = or += rows of `table`
  static void look_up(View<const int32_t, 1> index, const StoredMatrix<T>& table, View<T, 2> y,
                      bool accumulate = false) {
    const auto widened = [&](auto rows) {
      for (int64_t i = 0; i < index.count(); ++i) {
        for (int64_t c = 0; c < y.size(1); ++c) {
          const T value = static_cast<T>(widen(rows(index(i), c)));
          y(i, c) = accumulate ? y(i, c) + value : value;
        }
      }
    };
    if (table.bf16.data != nullptr) return widened(table.bf16);
    if (table.f16.data != nullptr) return widened(table.f16);
    embedding_forward<T>(index, table.wide, y, accumulate);
  }

  // x += rows of `table`, by way of `site` when that is asked for
  void add_embedding(View<const int32_t, 1> index, const StoredMatrix<T>& table, int site, View<T, 2> x) const {
    if (!run.is_wanted(site)) return look_up(index, table, x, true);
    const View<T, 2> value = rows(site);
    look_up(index, table, value);
    intervene<T>(pass.batch, run, site);
    add<T>(x, value, x);
  }

  void norm(const NormSlots& slots, View<const T, 2> x) const {
    norm_forward<T>({.kind = slots.kind,
                     .x = x,
                     .weight = pass.weight_vector(slots.weight),
                     .bias = pass.weight_vector(slots.bias),
                     .epsilon = static_cast<T>(pass.model.config().norm_epsilon),
                     .y = rows(slots.normalized),
                     .scale = run.row_values(slots.scale),
                     .mean = slots.mean >= 0 ? run.row_values(slots.mean) : View<T, 1>{}});
    intervene<T>(pass.batch, run, slots.normalized);
  }

  void step(const ResidualStep<T>& s) const {
    const bool post = s.next != s.sum;
    const bool pre = !post && s.norm.kind != NormKind::kNone;
    if (pre) norm(s.norm, rows(s.read));
    const View<const T, 2> in = rows(pre ? s.norm.normalized : s.read);
    if (run.is_wanted(s.out)) {
      s.sublayer->forward(pass, in, {}, rows(s.out));
      intervene<T>(pass.batch, run, s.out);
      add<T>(rows(s.out), rows(s.residual), rows(s.sum));
    } else {
      s.sublayer->forward(pass, in, rows(s.residual), rows(s.sum));
    }
    intervene<T>(pass.batch, run, s.sum);
    if (post) norm(s.norm, rows(s.sum));
  }

  View<T, 2> final_rows() const { return rows(final_slot(a)); }

  View<T, 2> predicting_rows() const { return rows(predicting_slot(a)); }

  void predict() const {
    const PredictionHead& head = a.prediction;
    linear_forward<T>(pass, head.weight, head.bias, final_rows(), {}, rows(head.pre));
    intervene<T>(pass.batch, run, head.pre);
    activation_forward<T>(activation_of(pass.model.config().feed_forward), rows(head.pre), rows(head.post));
    intervene<T>(pass.batch, run, head.post);
    norm(head.norm, rows(head.post));
  }

  void unembed() const {
    if (a.final_norm.kind != NormKind::kNone) norm(a.final_norm, rows(a.stream_end));
    if (a.prediction.weight >= 0) predict();
    if (run.stored(a.logits)) {
      unembed_rows<T>(pass.model, predicting_rows(), run.rows(a.logits, pass.model.config().vocabulary));
    }
  }
};

template <class T>
struct Backward {
  const Forward<T>& forward;
  const Pass<T>& pass = forward.pass;
  const Architecture<T>& a = forward.a;

  // y = norm(x):  dx += or =, and the gradients of weight and bias
  void norm(const NormSlots& slots, View<const T, 2> x, View<const T, 2> dy, View<T, 2> dx, bool accumulate) const {
    norm_backward<T>({.kind = slots.kind,
                      .x = x,
                      .weight = pass.weight_vector(slots.weight),
                      .scale = forward.run.row_values(slots.scale),
                      .mean = slots.mean >= 0 ? forward.run.row_values(slots.mean) : View<T, 1>{},
                      .dy = dy,
                      .dx = dx,
                      .accumulate = accumulate,
                      .dweight = pass.gradient_vector(slots.weight),
                      .dbias = pass.gradient_vector(slots.bias)});
  }

  // y = norm(f(x W + b))
  void predict(View<T, 2> d) const {
    const PredictionHead& head = a.prediction;
    const View<T, 2> d_pre = forward.rows(a.d_normalized);
    norm(head.norm, forward.rows(head.post), d, d_pre, false);
    activation_backward<T>(activation_of(pass.model.config().feed_forward), forward.rows(head.pre), d_pre, d_pre);
    linear_backward_weights<T>(pass, head.weight, head.bias, forward.final_rows(), d_pre);
    linear_backward_input<T>(pass, head.weight, d_pre, d, false);
  }

  // logits = y W_U + b_U
  void unembed(View<const T, 2> d_logits, View<T, 2> d_stream) const {
    const View<T, 2> y = forward.predicting_rows();
    if (a.unembedding_bias >= 0) add_column_sums<T>(d_logits, pass.gradient_vector(a.unembedding_bias));
    if (a.unembedding >= 0) {
      matmul<T>({.a = y.swap(0, 1), .b = d_logits, .c = pass.gradient(a.unembedding), .accumulate = true});
    } else {
      matmul<T>({.a = d_logits.swap(0, 1), .b = y, .c = pass.gradient(a.embedding), .accumulate = true});
    }
    matmul<T>({.a = d_logits, .b = pass.model.unembedding().swap(0, 1), .c = d_stream});
    if (a.prediction.weight >= 0) predict(d_stream);
    // y = norm(x)
    if (a.final_norm.kind != NormKind::kNone) norm(a.final_norm, forward.rows(a.stream_end), d_stream, d_stream, false);
  }

  // turns d = d(loss)/d(stream after the step) into d(loss)/d(stream before it). The part that goes to a stream
  // further back (parallel blocks) waits in `pending`.
  void step(const ResidualStep<T>& s, View<T, 2> d, View<T, 2> pending) const {
    const bool post = s.next != s.sum;
    const bool pre = !post && s.norm.kind != NormKind::kNone;
    const View<T, 2> target = s.read == s.residual ? d : pending;
    // next = norm(sum)
    if (post) norm(s.norm, forward.rows(s.sum), d, d, false);
    // sum = residual + F(in): d goes on to the residual as it is
    if (!pre) {
      s.sublayer->backward(pass, forward.rows(s.read), d, target, s.read == s.residual);
      return;
    }
    const View<T, 2> d_normalized = forward.rows(a.d_normalized);
    s.sublayer->backward(pass, forward.rows(s.norm.normalized), d, d_normalized, false);
    // in = norm(read)
    norm(s.norm, forward.rows(s.read), d_normalized, target, s.read == s.residual);
  }

  // x = W_E[token] + position + type, or its norm
  void embed(View<T, 2> d) const {
    if (a.embedding_norm.kind != NormKind::kNone) norm(a.embedding_norm, forward.rows(a.embedded), d, d, false);
    embedding_backward<T>(forward.tokens(), d, pass.gradient(a.embedding));
    if (a.position_embedding >= 0) embedding_backward<T>(forward.positions(), d, pass.gradient(a.position_embedding));
    if (a.type_embedding >= 0) embedding_backward<T>(forward.types(), d, pass.gradient(a.type_embedding));
  }
};

void check_ids(const Buffer<int32_t>& ids, int64_t count, const char* what) {
  for (int64_t i = 0; i < ids.count(); ++i) {
    if (ids[i] >= 0 && ids[i] < count) continue;
    throw Error(ErrorKind::kBadData, std::string(what) + " " + std::to_string(i), "id " + std::to_string(ids[i]),
                "expected 0 to " + std::to_string(count - 1));
  }
}

template <class T>
void check_batch(const BasicModel<T>& model, const Batch& batch, const typename BasicRun<T>::State& run, int64_t past) {
  if (run.architecture.get() != &model.architecture() && !(run.config == model.config())) {
    throw LogicError("forward", "the run was planned for another model");
  }
  if (batch.size * batch.time > run.capacity) {
    throw LogicError("forward", "batch of " + std::to_string(batch.size) + " x " + std::to_string(batch.time) +
                                    "; the run was planned for " + std::to_string(run.capacity) + " rows");
  }
  if (past + batch.time > run.table_length) {
    throw LogicError("forward", "sequences of " + std::to_string(past + batch.time) +
                                    " tokens; the run was planned for " + std::to_string(run.table_length));
  }
  check_ids(batch.tokens, model.config().vocabulary, "token");
  check_ids(batch.types, std::max<int64_t>(1, model.config().token_types), "type of token");
}

template <class T>
void check_cache(const BasicModel<T>& model, const Batch& batch, const typename BasicRun<T>::State& run,
                 const ForwardOptions<T>& options) {
  const BasicCache<T>& cache = *options.cache;
  if (!cache.fits(model)) throw LogicError("forward", "the cache was made for another model");
  if (batch.size != 1 || options.prefix != nullptr || run.options.gradients) {
    throw LogicError("forward", "a cache goes with one sequence, from block 0, without gradients");
  }
  if (cache.length() + batch.time > cache.capacity()) {
    throw LogicError("forward", std::to_string(cache.length()) + " tokens in the cache and " +
                                    std::to_string(batch.time) + " more; it holds " + std::to_string(cache.capacity()));
  }
  if (run.keeps_recomputed)
    throw LogicError("forward", "what hook_pattern is recomputed from is not kept with a cache");
}

// the stream before block `first`, copied from a run that has it, once for each time that the batch repeats that run's
template <class T>
void copy_prefix(const Forward<T>& f, int64_t first, const BasicRun<T>& prefix) {
  const std::string name = "blocks." + std::to_string(first) + ".hook_resid_pre";
  const View<const T, 3> x = prefix.site(name);
  if (x.size(0) == 0 || f.run.size % x.size(0) != 0 || x.size(1) != f.run.time) {
    throw LogicError("forward", "the prefix ran on " + shape_text(x) + ", another batch");
  }
  const int slot = f.a.sites.find(name);
  for (int64_t b = 0; b < f.run.size; b += x.size(0)) {
    std::copy(x.data, x.data + x.count(), f.run.at(slot) + b * x.size(1) * x.size(2));
  }
  intervene<T>(f.pass.batch, f.run, slot);
}

}  // namespace

template <class T>
void forward(const BasicModel<T>& model, const Batch& batch, BasicRun<T>& run, const ForwardOptions<T>& options) {
  const int64_t past = options.cache == nullptr ? 0 : options.cache->length();
  check_batch(model, batch, run.state(), past);
  if (options.cache != nullptr) check_cache(model, batch, run.state(), options);
  if (options.first_block < 0 || options.first_block > model.config().blocks ||
      (options.first_block > 0) != (options.prefix != nullptr)) {
    throw LogicError("forward", "first_block " + std::to_string(options.first_block) + " needs a prefix run, 0 none");
  }
  run.state().size = batch.size;
  run.state().time = batch.time;
  for (int64_t i = 0; i < batch.positions.count(); ++i) {
    run.state().positions[i] = batch.positions[i] + static_cast<int32_t>(past);
  }
  const Pass<T> pass{model, batch, run.state(), nullptr, options.cache};
  const Forward<T> f{pass};
  if (options.prefix == nullptr) {
    f.embed();
  } else {
    copy_prefix(f, options.first_block, *options.prefix);
  }
  for (const ResidualStep<T>& step : f.a.steps) {
    if (step.block >= options.first_block) f.step(step);
  }
  f.unembed();
  run.state().has_run = true;
  if (options.cache != nullptr) options.cache->add(batch.time);
}

template <class T>
void logits_of_rows(const BasicModel<T>& model, const BasicRun<T>& run, const std::vector<int64_t>& rows,
                    View<T, 2> logits) {
  const typename BasicRun<T>::State& state = run.state();
  const Architecture<T>& a = model.architecture();
  if (!state.has_run) throw LogicError("logits_of_rows", "forward() has not run");
  if (!(state.config == model.config())) throw LogicError("logits_of_rows", "another model ran");
  // gather what the unembedding reads
  const int64_t width = model.config().width;
  const T* const x = state.at(predicting_slot(a));
  Buffer<T> chosen(static_cast<int64_t>(rows.size()) * width);
  T* out = chosen.data();
  for (int64_t row : rows) {
    if (row < 0 || row >= state.size * state.time) {
      throw LogicError("logits_of_rows",
                       "row " + std::to_string(row) + " of " + std::to_string(state.size * state.time));
    }
    out = std::copy(x + row * width, x + (row + 1) * width, out);
  }
  unembed_rows<T>(model, chosen.template view<2>({static_cast<int64_t>(rows.size()), width}), logits);
}

template <class T>
double token_losses(const Batch& batch, const BasicRun<T>& run, View<T, 2> loss) {
  const View<const T, 3> logits = run.logits();
  const int64_t rows = batch.size * batch.time;
  if (logits.size(0) != batch.size || logits.size(1) != batch.time || !loss.is_packed() || loss.count() != rows) {
    throw LogicError("token_losses", "logits " + shape_text(logits) + ", loss " + shape_text(loss) +
                                         " for a batch of " + std::to_string(batch.size) + " x " +
                                         std::to_string(batch.time));
  }
  const View<T, 1> flat(loss.data, {rows});
  cross_entropy<T>({.logits = {logits.data, {rows, logits.size(2)}},
                    .targets = batch.targets.template view<1>({rows}),
                    .loss = flat});
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += static_cast<double>(flat(i));
  return sum;
}

template <class T>
double backward(const BasicModel<T>& model, const Batch& batch, BasicRun<T>& run, T scale, View<T, 1> gradients) {
  typename BasicRun<T>::State& state = run.state();
  if (!state.options.gradients) throw LogicError("backward", "the run was planned without gradients");
  if (model.matrices() != DType::kF32) throw LogicError("backward", "the model's matrices are kept short");
  if (!state.has_run || state.size != batch.size || state.time != batch.time) {
    throw LogicError("backward", "forward() has not run on this batch");
  }
  if (gradients.count() != model.weights().count() || !gradients.is_packed()) {
    throw LogicError("backward", "gradients " + shape_text(gradients) + "; wanted (" +
                                     std::to_string(model.weights().count()) + "), packed");
  }
  state.has_run = false;  // the logits are overwritten
  const Pass<T> pass{model, batch, state, gradients.data};
  const Forward<T> f{pass};
  const Backward<T> b{f};
  const Architecture<T>& a = model.architecture();

  // loss and its gradient, in the place of the logits
  const View<T, 2> logits = state.rows(a.logits, model.config().vocabulary);
  const View<T, 1> loss = state.row_values(a.loss);
  cross_entropy<T>({.logits = logits,
                    .targets = batch.targets.template view<1>({pass.rows()}),
                    .loss = loss,
                    .scale = scale,
                    .dlogits = logits});

  const View<T, 2> d = f.rows(a.d_stream);
  const View<T, 2> pending = f.rows(a.d_pending);
  b.unembed(logits, d);
  for (auto step = a.steps.rbegin(); step != a.steps.rend(); ++step) {
    b.step(*step, d, pending);
    // the feed-forward of a parallel block read the block's input, which this step's attention reads too
    const bool joins = step != a.steps.rbegin() && std::prev(step)->read != std::prev(step)->residual;
    if (joins) add<T>(d, pending, d);
  }
  b.embed(d);
  double sum = 0;
  for (int64_t i = 0; i < pass.rows(); ++i) sum += static_cast<double>(loss(i));
  return sum;
}

namespace {

// Calls use(attention sublayer of the block, state), once it is sure that the run kept what its weights come from.
template <class T, class Use>
void with_pattern(const char* operation, const BasicModel<T>& model, const Batch& batch, const BasicRun<T>& run,
                  int64_t block, Use use) {
  // the state is only read: queries, keys and statistics of a finished forward
  auto& state = const_cast<typename BasicRun<T>::State&>(run.state());
  const std::string name = "blocks." + std::to_string(block) + ".attn.hook_pattern";
  const int slot = model.sites().find(name);
  for (int source : model.sites()[slot].sources) {
    if (!state.own[static_cast<std::size_t>(source)]) {
      throw LogicError(operation, name + " was not kept; name it in RunOptions::capture");
    }
  }
  if (state.size != batch.size || state.time != batch.time) throw LogicError(operation, "another batch ran");
  for (const ResidualStep<T>& step : model.architecture().steps) {
    if (step.block == block) return use(*step.sublayer, state);
  }
}

}  // namespace

template <class T>
void pattern_rows(const BasicModel<T>& model, const Batch& batch, const BasicRun<T>& run, int64_t block,
                  int64_t head_begin, int64_t row_begin, View<T, 4> weights) {
  with_pattern("pattern_rows", model, batch, run, block, [&](const Sublayer<T>& sublayer, auto& state) {
    attention_sublayer_rows<T>(sublayer, batch, state, head_begin, row_begin, weights);
  });
}

template <class T>
void pattern_sums(const BasicModel<T>& model, const Batch& batch, const BasicRun<T>& run, int64_t block,
                  const PatternSums<T>& sums) {
  with_pattern("pattern_sums", model, batch, run, block, [&](const Sublayer<T>& sublayer, auto& state) {
    attention_sublayer_sums<T>(sublayer, batch, state, sums);
  });
}

template void forward(const BasicModel<float>&, const Batch&, BasicRun<float>&, const ForwardOptions<float>&);
template void forward(const BasicModel<double>&, const Batch&, BasicRun<double>&, const ForwardOptions<double>&);
template void logits_of_rows(const BasicModel<float>&, const BasicRun<float>&, const std::vector<int64_t>&,
                             View<float, 2>);
template void logits_of_rows(const BasicModel<double>&, const BasicRun<double>&, const std::vector<int64_t>&,
                             View<double, 2>);
template double token_losses(const Batch&, const BasicRun<float>&, View<float, 2>);
template double token_losses(const Batch&, const BasicRun<double>&, View<double, 2>);
template double backward(const BasicModel<float>&, const Batch&, BasicRun<float>&, float, View<float, 1>);
template double backward(const BasicModel<double>&, const Batch&, BasicRun<double>&, double, View<double, 1>);
template void pattern_rows(const BasicModel<float>&, const Batch&, const BasicRun<float>&, int64_t, int64_t, int64_t,
                           View<float, 4>);
template void pattern_rows(const BasicModel<double>&, const Batch&, const BasicRun<double>&, int64_t, int64_t, int64_t,
                           View<double, 4>);
template void pattern_sums(const BasicModel<float>&, const Batch&, const BasicRun<float>&, int64_t,
                           const PatternSums<float>&);
template void pattern_sums(const BasicModel<double>&, const Batch&, const BasicRun<double>&, int64_t,
                           const PatternSums<double>&);

}  // namespace headlight
