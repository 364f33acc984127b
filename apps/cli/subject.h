#pragma once
// MODEL on the command line: a run's folder, its .safetensors file, a .gguf file, llama2.c's .bin file with
// tokenizer.bin beside it, or (where only sizes matter) a config.json.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "console.h"
#include "headlight/model/batch.h"
#include "headlight/model/model.h"
#include "headlight/text/tokenizer.h"
#include "headlight/train/options.h"
#include "options.h"

namespace headlight::cli {

// of the argument MODEL, in --help
inline constexpr const char* kModelMeaning = "a run's folder, a .safetensors or .gguf file, or a llama2.c .bin";

// MODEL and how it is read.
struct ModelChoice {
  std::string path;
  bool is_strict = false;        // NaN and infinite weights are refused
  DType matrices = DType::kF32;  // how weight matrices are kept
};
void add_model_argument(Options& options, ModelChoice& model);
// --weights, for what only runs the model.
void add_weights_option(Options& options, ModelChoice& model);

struct Subject {
  std::string name;              // as the person wrote it
  std::filesystem::path folder;  // holds config.json, tokenizer.json and, of a run, its log
  Model model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<TrainerOptions> training{};  // of a run whose training data is at hand
};

// Says on the console how many weights are NaN or infinite, if any. Errors: missing input, bad data.
Subject load_subject(const ModelChoice& choice, Console& console);

// Tokens of a text that a person gave, the model's start token first where it has one. Throws Error (usage) when no
// tokens spell it.
std::vector<int32_t> encode(const Subject& subject, const std::string& text);

// Up to `count` windows as long as the model's context, spread evenly over a text. Throws Error (usage) unless the
// model's tokens are bytes, else as text_file().
Batch text_windows(const Subject& subject, const std::string& file, int64_t count);
// The first `count` validation sequences of a source.
Batch validation_batch(const DataSource& source, int64_t count);

}  // namespace headlight::cli
