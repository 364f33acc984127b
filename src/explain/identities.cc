#include "headlight/explain/identities.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "explain/parts.h"
#include "headlight/explain/attribution.h"
#include "model/attention_sublayer.h"

namespace headlight {
namespace {

constexpr double kUnit = 0x1p-24;  // unit roundoff of fp32

std::string block_name(int64_t block) { return "blocks." + std::to_string(block) + "."; }

bool is_post_norm(const ModelConfig& config) {
  return config.norm_placement == NormPlacement::kPost && config.norm != NormKind::kNone;
}

// A deviation relative to the sum of the absolute values of what was added up.
double relative(double deviation, double magnitude) { return deviation == 0 ? 0 : std::abs(deviation) / magnitude; }

Check finished(Check check, const Largest& error, double roundings) {
  check.error = error.value();
  check.bound = kUnit * roundings;
  check.passed = check.error <= check.bound;  // not so for NaN
  return check;
}

// Calls f(b, row) for each valid row of the batch.
template <class F>
void for_each_row(const Batch& batch, F f) {
  for (int64_t b = 0; b < batch.size; ++b) {
    for (int64_t i = 0; i < batch.lengths[b]; ++i) f(b, batch.row(b, i));
  }
}

// bound in roundings of the sum of a row: T additions in the statistic, up to 128 in a sum of weights, the exponential
// and the division in each weight
double row_sum_roundings(int64_t time) { return static_cast<double>(time + std::min<int64_t>(time, 128)) + 16; }

const char* const kRowSums = "|sum of a row's attention weights - 1|, over all heads and rows";

// largest deviation of parts and whole in each element; the parts' rows are (rows, D), strides per row
struct Part {
  const float* data;
  int64_t stride;
};
void compare_sums(const Batch& batch, int64_t width, const std::vector<Part>& parts, const float* whole,
                  Largest& error) {
  for_each_row(batch, [&](int64_t, int64_t row) {
    for (int64_t d = 0; d < width; ++d) {
      double sum = 0;
      double magnitude = 0;
      for (const Part& part : parts) {
        const double term = static_cast<double>(part.data[row * part.stride + d]);
        sum += term;
        magnitude += std::abs(term);
      }
      error.take(relative(static_cast<double>(whole[row * width + d]) - sum, magnitude));
    }
  });
}

// The sum of |z| |W_O| and |b_O| in each element, (B T, D): what the writes' rounding is relative to.
std::vector<double> write_magnitudes(const Model& model, const Batch& batch, View<const float, 4> z, int64_t block) {
  const View<const float, 2> w = model.matrix(block_name(block) + "attn.W_O");
  const std::string bias = block_name(block) + "attn.b_O";
  std::vector<double> magnitudes(static_cast<std::size_t>(batch.size * batch.time * w.size(1)));
  for_each_row(batch, [&](int64_t, int64_t row) {
    double* const out = magnitudes.data() + row * w.size(1);
    for (int64_t c = 0; c < w.size(0); ++c) {
      const double value = std::abs(static_cast<double>(z.data[row * w.size(0) + c]));
      for (int64_t d = 0; d < w.size(1); ++d) out[d] += value * std::abs(static_cast<double>(w(c, d)));
    }
    if (!model.parameters().contains(bias)) return;
    for (int64_t d = 0; d < w.size(1); ++d) out[d] += std::abs(static_cast<double>(model.vector(bias)(d)));
  });
  return magnitudes;
}

// For each sublayer of a post-norm model: the stream that it reads, what it writes, and their sum.
struct PostStep {
  std::string stream, write, sum;
};
std::vector<PostStep> post_steps(const ModelConfig& config) {
  const bool has_feed_forward = config.feed_forward != FeedForward::kNone;
  std::vector<PostStep> steps;
  for (int64_t block = 0; block < config.blocks; ++block) {
    const std::string name = block_name(block);
    steps.push_back({name + "hook_resid_pre", name + "hook_attn_out",
                     name + (has_feed_forward ? "hook_resid_mid" : "hook_resid_post")});
    if (has_feed_forward)
      steps.push_back({name + "ln1.hook_normalized", name + "hook_mlp_out", name + "hook_resid_post"});
  }
  return steps;
}

// the stream that the unembedding, or the final norm before it, reads
std::string last_stream(const ModelConfig& config) {
  if (config.blocks == 0) return "hook_resid_final";
  const std::string name = block_name(config.blocks - 1);
  if (!is_post_norm(config)) return name + "hook_resid_post";
  return name + (config.feed_forward == FeedForward::kNone ? "ln1" : "ln2") + ".hook_normalized";
}

// the target and the most likely token of valid rows, at most 256 rows spread evenly
std::vector<LogitPlace> chosen_logits(const Batch& batch, const Run& run) {
  constexpr int64_t kMostRows = 256;
  const View<const float, 3> logits = run.logits();
  int64_t rows = 0;
  for_each_row(batch, [&](int64_t, int64_t) { ++rows; });
  const int64_t every = std::max<int64_t>(1, (rows + kMostRows - 1) / kMostRows);
  std::vector<LogitPlace> places;
  int64_t index = 0;
  for_each_row(batch, [&](int64_t b, int64_t row) {
    if (index++ % every != 0) return;
    const int64_t t = row - b * batch.time;
    const float* const x = &logits(b, t, 0);
    const int32_t likely = static_cast<int32_t>(std::max_element(x, x + logits.size(2)) - x);
    places.push_back({b, t - batch.begins[b], likely});
    if (batch.targets[row] >= 0) places.push_back({b, t - batch.begins[b], batch.targets[row]});
  });
  return places;
}

// the site whose rows the unembedding multiplies
std::string predicting_site(const ModelConfig& config) {
  if (config.prediction_head) return "prediction.ln.hook_normalized";
  return is_post_norm(config) || config.norm == NormKind::kNone ? last_stream(config) : "ln_final.hook_normalized";
}

Check check_unembedding(const Model& model, const Batch& batch, const Run& run) {
  const View<const float, 3> stream = run.site(predicting_site(model.config()));
  const View<const float, 2> unembedding = model.unembedding();
  const float* const bias = optional_vector(model, "unembed.b_U");
  const View<const float, 3> logits = run.logits();
  Largest error;
  for (const LogitPlace& place : chosen_logits(batch, run)) {
    const int64_t t = batch.begins[place.entry] + place.position;
    double sum = bias == nullptr ? 0 : static_cast<double>(bias[place.token]);
    double magnitude = std::abs(sum);
    for (int64_t d = 0; d < stream.size(2); ++d) {
      const double term =
          static_cast<double>(stream(place.entry, t, d)) * static_cast<double>(unembedding(d, place.token));
      sum += term;
      magnitude += std::abs(term);
    }
    error.take(relative(static_cast<double>(logits(place.entry, t, place.token)) - sum, magnitude));
  }
  return finished(
      {.name = "what the unembedding reads times W_U is the logits",
       .definition = "deviation of a logit from the sum of its terms, relative to the sum of their absolute "
                     "values; the writes of this model have no direct shares"},
      error, static_cast<double>(stream.size(2)) + 4);
}

void add_capture(const Model& model, const std::string& pattern, std::vector<std::string>& captures) {
  if (model.config().blocks > 0) captures.push_back("blocks.*." + pattern);
}

}  // namespace

std::vector<std::string> captures_for_checks(const Model& model) {
  const ModelConfig& config = model.config();
  std::vector<std::string> captures;
  if (!is_post_norm(config)) captures = captures_for_attribution(model);
  captures.push_back(last_stream(config));
  if (!has_direct_logits(config)) captures.push_back(predicting_site(config));
  if (config.embedding_norm) captures.emplace_back("embed.ln.hook_normalized");
  for (const char* pattern : {"hook_resid_pre", "hook_resid_post", "hook_attn_out", "attn.hook_q", "attn.hook_k",
                              "attn.hook_v", "attn.hook_z", "attn.hook_result", "attn.hook_pattern"}) {
    add_capture(model, pattern, captures);
  }
  add_capture(model, queries_site(config, "attn."), captures);
  add_capture(model, keys_site(config, "attn."), captures);
  if (is_post_norm(config) && config.feed_forward != FeedForward::kNone) {
    add_capture(model, "hook_resid_mid", captures);
    add_capture(model, "hook_mlp_out", captures);
    add_capture(model, "ln1.hook_normalized", captures);
  }
  return captures;
}

Check check_row_sums(const Model& model, const Batch& batch, const Run& run) {
  const ModelConfig& config = model.config();
  Largest error;
  Buffer<double> buffer(batch.size * config.heads * batch.time);
  const View<double, 3> sums = buffer.view<3>({batch.size, config.heads, batch.time});
  for (int64_t block = 0; block < config.blocks; ++block) {
    pattern_sums<float>(model, batch, run, block, {.sum = sums});
    for_each_row(batch, [&](int64_t b, int64_t row) {
      for (int64_t h = 0; h < config.heads; ++h) error.take(std::abs(sums(b, h, row - b * batch.time) - 1));
    });
  }
  return finished({.name = "rows sum to 1", .definition = kRowSums}, error, row_sum_roundings(batch.time));
}

Check check_row_sums(const HeadScores& scores) {
  Largest error;
  error.take(scores.row_sum_error);
  return finished(
      {.name = "rows sum to 1", .definition = std::string(kRowSums) + " (" + std::to_string(scores.rows) + " rows)"},
      error, row_sum_roundings(scores.time));
}

Check check_head_writes(const Model& model, const Batch& batch, const Run& run) {
  const ModelConfig& config = model.config();
  const int64_t inner = config.heads * config.value_width;
  Largest error;
  for (int64_t block = 0; block < config.blocks; ++block) {
    const View<const float, 4> result = run.site(block_name(block) + "attn.hook_result");
    const View<const float, 3> out = run.site(block_name(block) + "hook_attn_out");
    const std::string bias = block_name(block) + "attn.b_O";
    const bool has_bias = model.parameters().contains(bias);
    const std::vector<double> magnitudes =
        write_magnitudes(model, batch, run.site(block_name(block) + "attn.hook_z"), block);
    for_each_row(batch, [&](int64_t b, int64_t row) {
      const int64_t t = row - b * batch.time;
      for (int64_t d = 0; d < config.width; ++d) {
        double sum = has_bias ? static_cast<double>(model.vector(bias)(d)) : 0.0;
        for (int64_t h = 0; h < config.heads; ++h) sum += static_cast<double>(result(b, t, h, d));
        error.take(relative(static_cast<double>(out(b, t, d)) - sum,
                            magnitudes[static_cast<std::size_t>(row * config.width + d)]));
      }
    });
  }
  return finished(
      {.name = "head writes sum to attn_out",
       .definition = "deviation of hook_attn_out from b_O and the sum of hook_result over heads, relative to the "
                     "sum of |z| |W_O| and |b_O|, over all blocks, rows and coordinates"},
      error, static_cast<double>(inner + config.value_width) + 4);
}

Check check_residual(const Model& model, const Batch& batch, const Run& run) {
  const ModelConfig& config = model.config();
  const auto rows_of = [&](const std::string& site) {
    return Part{View<const float, 3>(run.site(site)).data, config.width};
  };
  Largest error;
  if (is_post_norm(config)) {
    for (const PostStep& step : post_steps(config)) {
      compare_sums(batch, config.width, {rows_of(step.stream), rows_of(step.write)}, rows_of(step.sum).data, error);
    }
    return finished(
        {.name = "stream and write sum to what is normalised",
         .definition = "for each sublayer of this post-norm model: deviation of the sum from stream and write, "
                       "relative to the sum of their absolute values"},
        error, 1);
  }
  std::vector<Part> parts;
  if (config.embedding_norm) {
    parts.push_back(rows_of("embed.ln.hook_normalized"));
  } else {
    for (const char* site : {"hook_embed", "hook_pos_embed", "hook_type_embed"}) {
      if (model.sites().contains(site)) parts.push_back(rows_of(site));
    }
  }
  for (int64_t block = 0; block < config.blocks; ++block) {
    parts.push_back(rows_of(block_name(block) + "hook_attn_out"));
    if (config.feed_forward != FeedForward::kNone) parts.push_back(rows_of(block_name(block) + "hook_mlp_out"));
  }
  compare_sums(batch, config.width, parts, rows_of(last_stream(config)).data, error);
  return finished(
      {.name = "components sum to the stream",
       .definition = "deviation of the last stream from the sum of embedding, positions and every sublayer's "
                     "write, relative to the sum of their absolute values"},
      error, static_cast<double>(parts.size()));
}

Check check_logits(const Model& model, const Batch& batch, const Run& run) {
  if (!has_direct_logits(model.config())) return check_unembedding(model, batch, run);
  const Attribution a = direct_attribution(model, batch, run, chosen_logits(batch, run));
  const std::size_t components = a.components.size();
  Largest error;
  for (std::size_t i = 0; i < a.places.size(); ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < components; ++c) sum += a.shares[i * components + c];
    error.take(relative(a.logits[i] - sum, a.magnitudes[i]));
  }
  return finished(
      {.name = "components sum to logits",
       .definition = "deviation of a logit from the sum of the components' shares (final norm with its scale "
                     "frozen) and the bias, relative to the sum of the absolute values of all terms, for the "
                     "target and the most likely token of " +
                     std::to_string(a.places.size()) + " places"},
      error, static_cast<double>(model.config().width) + static_cast<double>(components) + 16);
}

Check check_batch(const Model& model, const Batch& batch, const Run& run) {
  const View<const float, 3> together = run.logits();
  Largest difference;
  bool same = true;
  for (int64_t b = 0; b < batch.size; ++b) {
    const int64_t length = batch.lengths[b];
    if (length == 0) continue;
    const int32_t* const tokens = batch.tokens.data() + batch.row(b, 0);
    const Batch single = make_batch({std::vector<int32_t>(tokens, tokens + length)});
    Run alone = plan(model, single, {.capture = run.options().capture});
    forward(model, single, alone);
    const float* const found = &together(b, batch.begins[b], 0);
    const View<const float, 3> wanted = alone.logits();
    if (std::memcmp(found, wanted.data, static_cast<std::size_t>(wanted.count()) * sizeof(float)) == 0) continue;
    same = false;
    for (int64_t i = 0; i < wanted.count(); ++i) {
      difference.take(std::abs(static_cast<double>(found[i]) - static_cast<double>(wanted.data[i])));
    }
  }
  return {.name = "batch = one by one",
          .definition = "logits of each sequence in the batch and alone",
          .error = difference.value(),
          .same_bits = true,
          .passed = same};
}

std::vector<Check> check_identities(const Model& model, const Batch& batch) {
  constexpr int64_t kMostTokens = 256;
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t b = 0; b < batch.size && sequences.size() < 2; ++b) {
    int64_t length = std::min(kMostTokens, batch.lengths[b]);
    if (!sequences.empty()) length -= length / 3;
    if (length == 0) continue;
    const int32_t* const tokens = batch.tokens.data() + batch.row(b, 0);
    sequences.emplace_back(tokens, tokens + length);
  }
  if (sequences.empty()) throw LogicError("check_identities", "every sequence is empty");
  const Batch few = make_batch(sequences);
  Run run = plan(model, few, {.capture = captures_for_checks(model)});
  forward(model, few, run);
  return {check_row_sums(model, few, run), check_head_writes(model, few, run), check_residual(model, few, run),
          check_logits(model, few, run),   check_attention(model, few, run),   check_batch(model, few, run)};
}

}  // namespace headlight
