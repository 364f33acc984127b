#include "subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "encoded_text.h"
#include "groups.h"
#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/text/corpus.h"
#include "headlight/train/batches.h"
#include "numbers.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return fs::is_directory(path) ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Models of other programs are often padded to a round number of rows; more than that is another tokenizer.
void demand_like_vocabulary(const Subject& subject) {
  const int64_t most = subject.model.config().vocabulary;
  const int64_t found = subject.tokenizer->vocabulary();
  const int64_t spare = most > 1024 ? std::max<int64_t>(1024, most / 16) : 0;
  if (found <= most && found >= most - spare) return;
  throw Error(ErrorKind::kBadData, (subject.folder / "tokenizer.json").string(), fmt::format("{} tokens", found),
              fmt::format("the model's vocabulary is {}", most));
}

// What a run's folder says about its training; nothing for a model without, or when its text has gone.
std::optional<TrainerOptions> training_of(const fs::path& folder) {
  if (!fs::exists(folder / "training.json")) return std::nullopt;
  try {
    return read_training_options(folder);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMissingInput) throw;
    return std::nullopt;
  }
}

void look_for_non_finite(const Model& model, const ModelChoice& choice, Console& console) {
  const NonFiniteWeights bad = non_finite_weights(model);
  if (bad.count == 0) return;
  const std::string found = fmt::format("{} of {} weights are NaN or infinite, the first of them in {}",
                                        grouped(bad.count), grouped(model.parameters().count()), bad.first);
  if (choice.is_strict) throw Error(ErrorKind::kBadData, choice.path, found, "--strict expects none");
  console.note(fmt::format("{}: {}", choice.path, found));
}

}  // namespace

void add_model_argument(Options& options, ModelChoice& model) {
  options.argument("MODEL", model.path, kModelMeaning);
  options.group("reading");
  options.flag("--strict", model.is_strict, "refuse a model with NaN or infinite weights [they are counted]");
}

void add_weights_option(Options& options, ModelChoice& model) {
  add_type_option(options, "--weights", model.matrices,
                  "how weight matrices are kept: short ones are half to read, and rounded");
}

Model load_checked_model(const ModelChoice& choice, Console& console) {
  Model model = load_model(choice.path, choice.matrices);
  look_for_non_finite(model, choice, console);
  return model;
}

Subject load_subject(const ModelChoice& choice, Console& console) {
  const std::string& path = choice.path;
  Subject subject{path, folder_of(path), load_checked_model(choice, console), nullptr, std::nullopt};
  subject.tokenizer = load_tokenizer_of(path);
  demand_like_vocabulary(subject);
  subject.tokenizer = padded_tokenizer(subject.tokenizer, subject.model.config().vocabulary);
  subject.training = training_of(subject.folder);
  return subject;
}

void add_start_option(Options& options, std::string& policy) {
  options.text("--start-token", "TOKEN", policy,
               "what is put first: model, as its tokenizer does; none; or a token, by its id or as it is written");
}

std::optional<int32_t> start_token(const Subject& subject, const std::string& policy) {
  const Tokenizer& tokenizer = *subject.tokenizer;
  if (policy == kStartOfModel) return tokenizer.start_token();
  if (policy == "none") return std::nullopt;
  int32_t id = -1;
  const std::from_chars_result read = std::from_chars(policy.data(), policy.data() + policy.size(), id);
  const bool is_number = read.ec == std::errc() && read.ptr == policy.data() + policy.size();
  if (!is_number) {
    const std::vector<int32_t> ids = tokenizer.encode(policy, {.special_tokens = true}).ids;
    if (ids.size() == 1) id = ids.front();
  }
  if (id >= 0 && id < tokenizer.vocabulary()) return id;
  throw Error(ErrorKind::kUsage, "",
              fmt::format("--start-token {} is neither model, none, an id below {}, nor written as one token of {}",
                          policy, tokenizer.vocabulary(), subject.name));
}

std::string start_text(const Subject& subject, const std::optional<int32_t>& start) {
  if (!start) return "no start token";
  return fmt::format("start token {} ({})", visible(subject.tokenizer->token_text(*start)), *start);
}

std::vector<int32_t> encode(const Subject& subject, const std::string& text, const std::string& policy) {
  if (policy == kStartOfModel) return subject.tokenizer->encode(text, {.framed = true}).ids;
  std::vector<int32_t> ids = subject.tokenizer->encode(text);
  if (const std::optional<int32_t> start = start_token(subject, policy)) ids.insert(ids.begin(), *start);
  return ids;
}

bool reads_bytes(const Subject& subject) { return subject.tokenizer->kind() == "bytes"; }

std::shared_ptr<const DataSource> text_source(const Subject& subject, const TextChoice& choice) {
  constexpr int64_t kUsualContext = 512;
  const int64_t context = subject.model.config().context;
  if (choice.context && *choice.context > context) {
    throw Error(
        ErrorKind::kUsage, "",
        fmt::format("--context {} exceeds the {} tokens that {} reads", *choice.context, context, subject.name));
  }
  if (reads_bytes(subject) && choice.start == kStartOfModel) {
    return text_file({.path = choice.file,
                      .context = choice.context.value_or(context),
                      .validation_fraction = 1,
                      .validation_limit = choice.limit});
  }
  const std::string text = read_file(choice.file);
  return encoded_text(subject.tokenizer, {.ids = subject.tokenizer->encode(text),
                                          .start = start_token(subject, choice.start),
                                          .context = choice.context.value_or(std::min(kUsualContext, context)),
                                          .limit = choice.limit});
}

Batch validation_batch(const DataSource& source, int64_t count) {
  Samples samples;
  Batch batch;
  const int64_t size = std::min(count, source.validation_count());
  source.validation(0, size, samples);
  fill_batch(samples, 0, size, batch);
  return batch;
}

}  // namespace headlight::cli
