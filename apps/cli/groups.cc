#include "groups.h"

#include <limits>

#include "headlight/base/error.h"
#include "headlight/base/thread_pool.h"
#include "headlight/text/corpus.h"
#include "headlight/text/tasks.h"

namespace headlight::cli {
namespace {

constexpr IntegerRange kSize{1, int64_t{1} << 24};
constexpr IntegerRange kSizeOrDefault{0, int64_t{1} << 24};

}  // namespace

void add_model_options(Options& options, ModelConfig& c) {
  options.group(kModelGroup);
  options.integer("--blocks", c.blocks, {0, 10000}, "blocks of attention and feed-forward, L");
  options.integer("--heads", c.heads, {1, 65536}, "query heads of each block, H");
  options.integer("--width", c.width, kSize, "width of the residual stream, D");
  options.integer("--key-value-heads", c.key_value_heads, {0, 65536}, "key/value heads, a divisor of --heads",
                  "--heads");
  options.integer("--head-width", c.head_width, kSizeOrDefault, "width of a query and key head", "--width / --heads");
  options.integer("--value-width", c.value_width, kSizeOrDefault, "width of a value head", "--head-width");
  options.choice(
      "--feed-forward", c.feed_forward,
      {FeedForward::kNone, FeedForward::kRelu, FeedForward::kGelu, FeedForward::kGeluTanh, FeedForward::kSiluGated},
      "the feed-forward layer");
  options.action(
      "--attention-only", [&c] { c.feed_forward = FeedForward::kNone; }, "the same as --feed-forward none");
  options.integer("--feed-forward-width", c.feed_forward_width, kSizeOrDefault, "its width, F",
                  "4 --width; silu_gated: 8/3 --width");
  options.choice("--norm", c.norm, {NormKind::kNone, NormKind::kLayerNorm, NormKind::kRmsNorm}, "the normalisation");
  options.choice("--norm-placement", c.norm_placement, {NormPlacement::kPre, NormPlacement::kPost},
                 "pre: x + F(norm(x)); post: norm(x + F(x))");
  options.number("--norm-epsilon", c.norm_epsilon, {0, 1}, "added to the variance");
  options.flag("--parallel", c.parallel, "attention and feed-forward read the same stream");
  options.choice("--positions", c.positions,
                 {Positions::kNone, Positions::kLearned, Positions::kSinusoidal, Positions::kRotary, Positions::kAlibi},
                 "how the order of tokens enters");
  options.number("--rotary-base", c.rotary_base, {1, 1e12}, "base of the rotary angles");
  options.integer("--rotary-width", c.rotary_width, kSizeOrDefault, "coordinates of a head that are turned", "all");
  options.flag("--query-key-norm", c.query_key_norm, "RMSNorm of each head's queries and keys");
  options.integer("--window", c.window, kSizeOrDefault, "keys that a query sees, its own among them", "all");
  options.flag("--tied", c.tied, "the unembedding is the embedding transposed");
  options.action(
      "--no-biases", [&c] { c.biases = kNoBiases; }, "no biases in linear maps and norms");
  options.flag("--bidirectional", c.causal, "every token sees all tokens", false);
}

std::string option_of_field(const std::string& field) {
  std::string name = "--" + field;
  for (char& c : name) c = c == '_' ? '-' : c;
  return name;
}

void add_data_options(Options& options, DataChoice& data) {
  options.group(kDataGroup);
  options.text("--data", "FILE", data.file,
               "a text; train reads it as bytes, other commands with the model's tokenizer");
  options.choice(
      "--task", {"repeats", "copy"}, "",
      [&data](std::size_t i) { data.task = i == 0 ? DataChoice::Task::kRepeats : DataChoice::Task::kCopy; },
      "repeats: [start] R R ... of random tokens; copy: log lines whose identifiers return with their part names");
  options.optional_integer("--context", data.context, {2, int64_t{1} << 30},
                           "tokens of a sequence, T [text and copy 128, repeats 96]");
  options.optional_integer("--vocabulary", data.vocabulary, {2, 1 << 24}, "random tokens of repeats [64]");
}

void check_choice(const DataChoice& data) {
  const auto refuse = [](const char* what) { throw Error(ErrorKind::kUsage, "", what); };
  if (!data.is_made()) refuse("--data FILE or --task repeats|copy is missing: there is nothing to read");
  if (!data.file.empty() && data.task != DataChoice::Task::kNone) refuse("--data and --task do not go together");
  if (data.vocabulary && data.task != DataChoice::Task::kRepeats) refuse("--vocabulary goes with --task repeats only");
}

std::shared_ptr<const DataSource> make_data(const DataChoice& data) {
  check_choice(data);
  switch (data.task) {
    case DataChoice::Task::kRepeats: {
      RepeatsOptions repeated;
      repeated.context = data.context.value_or(repeated.context);
      repeated.vocabulary = data.vocabulary.value_or(repeated.vocabulary);
      return repeats(repeated);
    }
    case DataChoice::Task::kCopy: {
      LogLinesOptions lines;
      lines.context = data.context.value_or(lines.context);
      return log_lines(lines);
    }
    case DataChoice::Task::kNone:
      break;
  }
  TextOptions text;
  text.path = data.file;
  text.context = data.context.value_or(text.context);
  return text_file(text);
}

void add_type_option(Options& options, const std::string& name, DType& type, const std::string& help) {
  options.choice(
      name, {"f32", "bf16", "f16"}, "f32",
      [&type](std::size_t i) {
        constexpr DType kAll[] = {DType::kF32, DType::kBF16, DType::kF16};
        type = kAll[i];
      },
      help);
}

void add_training_options(Options& options, TrainerOptions& t) {
  constexpr IntegerRange kCount{1, int64_t{1} << 40};
  constexpr IntegerRange kInterval{0, int64_t{1} << 40};
  constexpr NumberRange kPositive{0, 1e6};
  constexpr NumberRange kShare{0, 1};
  options.group("training");
  options.integer("--steps", t.steps, kCount, "optimiser steps");
  options.integer("--batch", t.batch, {1, 1 << 20}, "sequences of a step");
  options.integer("--microbatches", t.microbatches, {1, 1 << 20}, "parts that a batch is run in, to save memory");
  options.integer("--seed", t.seed, {0, std::numeric_limits<int64_t>::max()}, "of the first weights and of the data");
  options.number("--rate", t.rate, kPositive, "the highest learning rate");
  options.number("--final-rate", t.final_rate, kPositive, "learning rate at the end of the cosine");
  options.integer("--warmup", t.warmup, kInterval, "steps of the linear rise");
  options.number("--beta1", t.beta1, kShare, "AdamW's decay of the first moment");
  options.number("--beta2", t.beta2, kShare, "and of the second");
  options.number("--epsilon", t.epsilon, kPositive, "added to the second moment's root");
  options.number("--decay", t.decay, kPositive, "weight decay of matrices");
  options.number("--clip", t.clip, kPositive, "largest norm of the gradient; 0: not clipped");
  options.group("intervals, in steps; 0: never");
  options.integer("--log-interval", t.log_interval, kInterval, "between lines of log.jsonl");
  options.integer("--validation-interval", t.validation_interval, kInterval, "between validations");
  options.integer("--observe-interval", t.observe_interval, kInterval, "between measurements of the head scores");
  options.integer("--checkpoint-interval", t.checkpoint_interval, kInterval, "between checkpoints");
}

void add_compute_options(Options& options, int64_t& threads) {
  options.integer("--threads", threads, {1, 1024}, "threads; results have the same bits for any number",
                  "HEADLIGHT_THREADS or all processors");
}

void use_threads(int64_t threads) {
  if (threads > 0) set_threads(static_cast<int>(threads));
}

}  // namespace headlight::cli
