#include "material.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "curves.h"
#include "headlight/base/error.h"
#include "headlight/explain/ablation.h"

namespace headlight::cli {
namespace {

constexpr int64_t kUsualSequences = 32;
constexpr int64_t kFewestSequences = 4;  // fewer say nothing of their spread
// Multiply-adds of one forward per head over all tokens: what a person waits for when every head is taken away alone.
constexpr double kAffordable = 8e12;

struct Amount {
  int64_t sequences = 0;
  int64_t length = 0;
};

// The first of the lengths, which fall, that leaves room for enough sequences; else the last, and the fewest.
// `copies` and `extra`: a sequence of length N has copies N + extra tokens.
Amount affordable(const ModelConfig& config, const std::vector<int64_t>& lengths, int64_t copies, int64_t extra,
                  const std::optional<int64_t>& sequences) {
  const double heads = static_cast<double>(std::max<int64_t>(1, config.blocks * config.heads));
  const double tokens = kAffordable / (heads * weights_per_token(config));
  for (int64_t length : lengths) {
    const auto room = static_cast<int64_t>(std::min(1e9, tokens / static_cast<double>(copies * length + extra)));
    if (room >= sequences.value_or(kFewestSequences))
      return {sequences.value_or(std::min(kUsualSequences, room)), length};
  }
  return {sequences.value_or(kFewestSequences), lengths.back()};
}

Material repeated_material(const Subject& subject, const MaterialChoice& choice) {
  constexpr int64_t kShort = 25;
  const ModelConfig& config = subject.model.config();
  RepeatOptions options =
      subject.training ? scoring_repeats(config, *subject.training->data) : scoring_repeats(config, *subject.tokenizer);
  if (choice.start != kStartOfModel) options.start = start_token(subject, choice.start);
  options.seed = choice.seed;
  if (choice.length) options.lengths = {*choice.length};
  const int64_t extra = options.start ? 1 : 0;
  // the length that repeat_random_tokens() takes when none is given, and a shorter one
  const int64_t usual = usual_repeat_length(config, options);
  std::vector<int64_t> lengths{usual, std::min(usual, kShort)};
  if (!options.lengths.empty()) lengths = {*std::max_element(options.lengths.begin(), options.lengths.end())};
  const Amount amount = affordable(config, lengths, 2, extra, choice.sequences);
  if (options.lengths.empty() && amount.length != usual) options.lengths = {amount.length};
  options.sequences = amount.sequences;
  Material material;
  material.repeated = repeat_random_tokens(config, options);
  material.condition = material.repeated->condition;
  material.metric = second_copy_loss(*material.repeated);
  material.start = options.start;
  return material;
}

Material windows_material(const Subject& subject, const MaterialChoice& choice) {
  constexpr int64_t kLongest = 256, kShort = 128, kShortest = 64;
  const ModelConfig& config = subject.model.config();
  const bool bytes = reads_bytes(subject) && choice.start == kStartOfModel;
  std::vector<int64_t> lengths{config.context};
  if (!bytes)
    lengths = {std::min(config.context, kLongest), std::min(config.context, kShort),
               std::min(config.context, kShortest)};
  if (choice.context) lengths = {*choice.context};
  const Amount amount = affordable(config, lengths, 1, 0, choice.sequences);
  const std::shared_ptr<const DataSource> source = text_source(
      subject, {.file = choice.data, .context = amount.length, .limit = amount.sequences, .start = choice.start});
  Material material;
  material.batch = validation_batch(*source, amount.sequences);
  const char* const unit = bytes ? "bytes" : "tokens";
  material.condition = fmt::format("{} windows of {} {} of {}, spread evenly", material.batch.size, material.batch.time,
                                   unit, choice.data);
  material.metric.name = fmt::format("loss on all {}", unit);
  material.start = start_token(subject, choice.start);
  return material;
}

Material text_material(const Subject& subject, const MaterialChoice& choice) {
  Material material;
  const std::vector<int32_t> ids = encode(subject, choice.text, choice.start);
  if (static_cast<int64_t>(ids.size()) > subject.model.config().context) {
    throw Error(ErrorKind::kUsage, "",
                fmt::format("--text has {} tokens; {} reads at most {}", ids.size(), subject.name,
                            subject.model.config().context));
  }
  if (ids.size() < 2) throw Error(ErrorKind::kUsage, "", "--text has no token that could be predicted");
  material.batch = make_batch({ids});
  material.condition = fmt::format("the {} tokens of --text", ids.size());
  material.metric.name = "loss on all tokens";
  material.start = start_token(subject, choice.start);
  return material;
}

void refuse_together(bool first, bool second, const char* problem) {
  if (first && second) throw Error(ErrorKind::kUsage, "", problem);
}

}  // namespace

double weights_per_token(const ModelConfig& config) {
  double weights = static_cast<double>(config.vocabulary) * static_cast<double>(config.width);
  const ParameterTable table = parameter_table(config);
  for (const Parameter& p : table.all()) {
    if (p.name.rfind("blocks.", 0) == 0) weights += static_cast<double>(p.count);
  }
  return weights;
}

std::vector<std::vector<int32_t>> Material::ids() const {
  const Batch& all = sequences();
  std::vector<std::vector<int32_t>> ids;
  for (int64_t b = 0; b < all.size; ++b) {
    const int32_t* const first = all.tokens.data() + all.row(b, 0);
    ids.emplace_back(first, first + all.lengths[b]);
  }
  return ids;
}

void add_material_options(Options& options, MaterialChoice& choice, bool with_text) {
  options.group("what it runs on");
  options.text("--data", "FILE", choice.data, "a text, in windows [random tokens and their repetition]");
  if (with_text) options.text("--text", "TEXT", choice.text, "one text instead");
  add_start_option(options, choice.start);
  options.optional_integer("--sequences", choice.sequences, {2, 1 << 16},
                           "how many sequences [32; of large models as many as take minutes, at least 4]");
  options.optional_integer("--length", choice.length, {2, 1 << 24},
                           "N of the repetition [start] R R [lengths never trained, or as the context allows, at most "
                           "50; of large models 25]");
  options.optional_integer("--context", choice.context, {2, 1 << 24},
                           "tokens of a window of --data [for bytes the model's context; else 256, of large models "
                           "down to 64]");
  options.seed("--seed", choice.seed, "of all that is drawn");
}

Material make_material(const Subject& subject, const MaterialChoice& choice) {
  const bool data = !choice.data.empty(), text = !choice.text.empty();
  refuse_together(data, text, "--data and --text do not go together");
  refuse_together(choice.length.has_value(), data, "--length does not go with --data");
  refuse_together(choice.length.has_value(), text, "--length does not go with --text");
  refuse_together(choice.sequences.has_value(), text, "--sequences does not go with --text");
  refuse_together(choice.context.has_value(), !data, "--context goes with --data only");
  if (data) return windows_material(subject, choice);
  return text ? text_material(subject, choice) : repeated_material(subject, choice);
}

}  // namespace headlight::cli
