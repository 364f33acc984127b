#include "model/architecture.h"

#include <cmath>

#include "model/attention_sublayer.h"
#include "model/feed_forward_sublayer.h"
#include "model/linear.h"
#include "model/rotary_frequencies.h"
#include "model/run_state.h"

namespace headlight {
namespace {

template <class T>
class Builder {
 public:
  Builder(const ModelConfig& config, Architecture<T>& architecture)
      : config_(config), a_(architecture), stream_shape_{kBatchSize, kTimeSize, config.width} {}

  void build() {
    embeddings();
    start_stream();
    for (int64_t block = 0; block < config_.blocks; ++block) add_block(block);
    a_.stream_end = stream_;
    ending();
    a_.loss = workspace("loss", {kBatchSize, kTimeSize});
    a_.d_stream = workspace("d_stream", stream_shape_);
    a_.d_pending = workspace("d_pending", stream_shape_);
    a_.d_normalized = workspace("d_normalized", stream_shape_);
  }

 private:
  void embeddings() {
    const double deviation = 0.8 / std::sqrt(static_cast<double>(config_.width));
    a_.embedding = a_.parameters.add({.name = "embed.W_E",
                                      .shape = {config_.vocabulary, config_.width},
                                      .initial_deviation = deviation,
                                      .decays = true});
    a_.embed_site = a_.sites.add(
        {.name = "hook_embed", .shape = stream_shape_, .use = SlotUse::kOnRequest, .meaning = "token embeddings"});
    if (config_.positions == Positions::kLearned) {
      a_.position_embedding = a_.parameters.add({.name = "pos_embed.W_pos",
                                                 .shape = {config_.context, config_.width},
                                                 .initial_deviation = deviation,
                                                 .decays = true});
    }
    const auto table = [&](const std::string& name, int64_t width) {
      return a_.sites.add({.name = name, .shape = {kPositionsSize, width}, .is_site = false});
    };
    if (config_.positions == Positions::kSinusoidal) a_.sinusoids = table("sinusoids", config_.width);
    if (config_.positions == Positions::kRotary) {
      a_.rotary_cosine = table("rotary_cosine", config_.rotary_width / 2);
      a_.rotary_sine = table("rotary_sine", config_.rotary_width / 2);
    }
    if (config_.positions == Positions::kLearned || config_.positions == Positions::kSinusoidal) {
      a_.position_site = a_.sites.add({.name = "hook_pos_embed",
                                       .shape = stream_shape_,
                                       .use = SlotUse::kOnRequest,
                                       .meaning = "position embeddings"});
    }
    if (config_.token_types > 0) {
      a_.type_embedding = a_.parameters.add({.name = "type_embed.W_type",
                                             .shape = {config_.token_types, config_.width},
                                             .initial_deviation = deviation,
                                             .decays = true});
      a_.type_site = a_.sites.add({.name = "hook_type_embed",
                                   .shape = stream_shape_,
                                   .use = SlotUse::kOnRequest,
                                   .meaning = "token type embeddings"});
    }
  }

  void start_stream() {
    const std::string name = config_.blocks > 0 ? "blocks.0.hook_resid_pre" : "hook_resid_final";
    if (!config_.embedding_norm) {
      stream_ = a_.embedded = a_.stream_start = a_.sites.add({.name = name,
                                                              .shape = stream_shape_,
                                                              .saved = true,
                                                              .meaning = "the stream before the first block",
                                                              .share = stream_share()});
      return;
    }
    a_.embedded = a_.sites.add({.name = "hook_embed_sum",
                                .shape = stream_shape_,
                                .saved = true,
                                .meaning = "the sum of the embeddings, before their norm",
                                .share = "sum"});
    a_.embedding_norm = add_norm("embed.ln", stream_share());
    stream_ = a_.stream_start = a_.embedding_norm.normalized;
    a_.sites.add_name(name, stream_);
  }

  void add_block(int64_t block) {
    const std::string prefix = "blocks." + std::to_string(block) + ".";
    const int block_input = stream_;
    if (block > 0) a_.sites.add_name(prefix + "hook_resid_pre", stream_);
    const bool has_feed_forward = config_.feed_forward != FeedForward::kNone;
    // a parallel block has no stream in the middle that anything reads
    const bool middle = has_feed_forward && !config_.parallel;
    add_step(block, prefix + "ln1", block_input, prefix + "hook_attn_out",
             middle ? prefix + "hook_resid_mid" : (has_feed_forward ? "" : prefix + "hook_resid_post"),
             [&] { return make_attention<T>(config_, block, prefix + "attn.", a_); });
    if (!has_feed_forward) return;
    add_step(block, prefix + "ln2", config_.parallel ? block_input : stream_, prefix + "hook_mlp_out",
             prefix + "hook_resid_post", [&] { return make_feed_forward<T>(config_, prefix + "mlp.", a_); });
  }

  template <class Make>
  void add_step(int64_t block, const std::string& norm_name, int read, const std::string& out_name,
                const std::string& sum_name, Make make) {
    const bool post = config_.norm_placement == NormPlacement::kPost && config_.norm != NormKind::kNone;
    ResidualStep<T> step;
    step.block = block;
    step.read = read;
    step.residual = stream_;
    if (!post) step.norm = add_norm(norm_name, "");
    step.sublayer = make();
    step.out = a_.sites.add({.name = out_name,
                             .shape = stream_shape_,
                             .use = SlotUse::kOnRequest,
                             .meaning = "what this sublayer writes to the stream"});
    step.sum = a_.sites.add({.name = sum_name.empty() ? norm_name + ".stream" : sum_name,
                             .shape = stream_shape_,
                             .saved = true,
                             .is_site = !sum_name.empty(),
                             .meaning = "the stream after this sublayer's write",
                             .share = post ? "sum" : stream_share()});
    if (post) step.norm = add_norm(norm_name, stream_share());
    stream_ = step.next = post ? step.norm.normalized : step.sum;
    a_.steps.push_back(std::move(step));
  }

  NormSlots add_norm(const std::string& name, const std::string& share) {
    NormSlots norm;
    norm.kind = config_.norm;
    if (norm.kind == NormKind::kNone) return norm;
    const int64_t d = config_.width;
    norm.weight = a_.parameters.add({.name = name + ".w", .shape = {d}, .initial_mean = 1});
    if (norm.kind == NormKind::kLayerNorm && config_.biases.norms)
      norm.bias = a_.parameters.add({.name = name + ".b", .shape = {d}});
    norm.scale = a_.sites.add({.name = name + ".hook_scale",
                               .shape = {kBatchSize, kTimeSize},
                               .saved = true,
                               .changeable = false,
                               .meaning = "what each row was divided by"});
    if (norm.kind == NormKind::kLayerNorm) {
      norm.mean = a_.sites.add({.name = name + ".mean",
                                .shape = {kBatchSize, kTimeSize},
                                .saved = true,
                                .is_site = false,
                                .meaning = "mean of each row"});
    }
    norm.normalized = a_.sites.add({.name = name + ".hook_normalized",
                                    .shape = stream_shape_,
                                    .saved = true,
                                    .meaning = "the normalised stream, with weight and bias",
                                    .share = share});
    return norm;
  }

  void prediction_head() {
    PredictionHead& head = a_.prediction;
    head.weight = add_matrix(a_.parameters, "prediction.W", config_.width, config_.width);
    head.bias = add_bias(a_.parameters, config_.biases.feed_forward, "prediction.b", config_.width);
    head.pre = a_.sites.add({.name = "prediction.hook_pre",
                             .shape = stream_shape_,
                             .saved = true,
                             .meaning = "the head before its activation"});
    head.post = a_.sites.add({.name = "prediction.hook_post",
                              .shape = stream_shape_,
                              .saved = true,
                              .meaning = "the head after its activation"});
    head.norm = add_norm("prediction.ln", "");
  }

  // from the last stream to the logits
  void ending() {
    if (config_.norm_placement == NormPlacement::kPre) a_.final_norm = add_norm("ln_final", "");
    if (!config_.unembedding) return;
    if (config_.prediction_head) prediction_head();
    a_.unembedding_bias = add_bias(a_.parameters, config_.biases.unembedding, "unembed.b_U", config_.vocabulary);
    if (!config_.tied) {
      a_.unembedding = a_.parameters.add({.name = "unembed.W_U",
                                          .shape = {config_.width, config_.vocabulary},
                                          .initial_deviation = 0.8 / std::sqrt(static_cast<double>(config_.width)),
                                          .decays = true});
    }
    a_.logits = a_.sites.add({.name = "logits",
                              .shape = {kBatchSize, kTimeSize, config_.vocabulary},
                              .saved = true,
                              .is_site = false,
                              .meaning = "logits"});
  }

  int workspace(const std::string& name, const std::vector<int64_t>& shape) {
    return a_.sites.add({.name = name, .shape = shape, .use = SlotUse::kWorkspace, .is_site = false});
  }

  // a step reads at most the last two streams and writes the next: three places serve in turn
  std::string stream_share() { return "stream" + std::to_string(streams_++ % 3); }

  const ModelConfig& config_;
  Architecture<T>& a_;
  std::vector<int64_t> stream_shape_;
  int stream_ = -1;
  int streams_ = 0;
};

}  // namespace

template <class T>
std::shared_ptr<const Architecture<T>> build_architecture(const ModelConfig& config) {
  auto architecture = std::make_shared<Architecture<T>>();
  Builder<T>(config, *architecture).build();
  return architecture;
}

template <class T>
void fill_position_tables(const ModelConfig& config, typename BasicRun<T>::State& run) {
  const Architecture<T>& a = *run.architecture;
  const std::vector<double> frequencies = a.rotary_cosine >= 0 ? rotary_frequencies(config) : std::vector<double>{};
  const int64_t pairs = static_cast<int64_t>(frequencies.size());
  const double magnitude = config.rotary_scaling.magnitude;
  for (int64_t p = 0; p < run.table_length; ++p) {
    const double position = static_cast<double>(p);
    // sin(p / 10000^(2c/D)) at 2c, cos at 2c + 1 (Vaswani et al. 2017, section 3.5)
    for (int64_t c = 0; a.sinusoids >= 0 && c < config.width; ++c) {
      const double exponent = static_cast<double>(c / 2 * 2) / static_cast<double>(config.width);
      const double angle = position * std::pow(10000.0, -exponent);
      run.table(a.sinusoids, config.width)(p, c) = static_cast<T>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
    for (int64_t c = 0; c < pairs; ++c) {
      const double angle = position * frequencies[static_cast<std::size_t>(c)];
      run.table(a.rotary_cosine, pairs)(p, c) = static_cast<T>(magnitude * std::cos(angle));
      run.table(a.rotary_sine, pairs)(p, c) = static_cast<T>(magnitude * std::sin(angle));
    }
  }
}

template void fill_position_tables<float>(const ModelConfig&, BasicRun<float>::State&);
template void fill_position_tables<double>(const ModelConfig&, BasicRun<double>::State&);
template std::shared_ptr<const Architecture<float>> build_architecture(const ModelConfig&);
template std::shared_ptr<const Architecture<double>> build_architecture(const ModelConfig&);

}  // namespace headlight
