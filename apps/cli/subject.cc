#include "subject.h"

#include <fmt/format.h>

#include <algorithm>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/text/corpus.h"
#include "headlight/train/batches.h"
#include "numbers.h"

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
  options.choice(
      "--weights", {"f32", "bf16", "f16"}, "f32",
      [&model](std::size_t i) {
        constexpr DType kAll[] = {DType::kF32, DType::kBF16, DType::kF16};
        model.matrices = kAll[i];
      },
      "how weight matrices are kept: short ones are half to read, and rounded");
}

Subject load_subject(const ModelChoice& choice, Console& console) {
  const std::string& path = choice.path;
  Model model = load_model(path, choice.matrices);
  look_for_non_finite(model, choice, console);
  Subject subject{path, folder_of(path), std::move(model), nullptr, std::nullopt};
  subject.tokenizer = load_tokenizer_of(path);
  demand_like_vocabulary(subject);
  subject.tokenizer = padded_tokenizer(subject.tokenizer, subject.model.config().vocabulary);
  subject.training = training_of(subject.folder);
  return subject;
}

std::vector<int32_t> encode(const Subject& subject, const std::string& text) {
  return subject.tokenizer->encode(text, {.framed = true}).ids;
}

Batch text_windows(const Subject& subject, const std::string& file, int64_t count) {
  if (subject.tokenizer->kind() != "bytes") {
    throw Error(
        ErrorKind::kUsage, "",
        fmt::format("--data needs a model of bytes; the tokens of {} are {}", subject.name, subject.tokenizer->kind()));
  }
  TextOptions options;
  options.path = file;
  options.context = subject.model.config().context;
  options.validation_fraction = 1;
  options.validation_limit = count;
  return validation_batch(*text_file(options), count);
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
