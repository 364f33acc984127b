#pragma once
// MODEL on the command line: a folder of a run or of the Hugging Face library, its .safetensors file, a .gguf file,
// llama2.c's .bin file with tokenizer.bin beside it, or (where only sizes matter) a config.json.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "console.h"
#include "headlight/model/batch.h"
#include "headlight/model/model.h"
#include "headlight/text/data_source.h"
#include "headlight/text/tokenizer.h"
#include "headlight/train/options.h"
#include "options.h"

namespace headlight::cli {

// of the argument MODEL, in --help
inline constexpr const char* kModelMeaning =
    "a run's or a Hugging Face folder, a .safetensors or .gguf file, or a llama2.c .bin";

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
Model load_checked_model(const ModelChoice& choice, Console& console);
// The same with what lies beside it.
Subject load_subject(const ModelChoice& choice, Console& console);

// What is put before every text: "model", what the model's tokenizer puts there; "none"; or one token, by its id or as
// it is written ("<|endoftext|>").
inline const std::string kStartOfModel = "model";
void add_start_option(Options& options, std::string& policy);

// The token that a policy puts first, absent when it puts none. Throws Error (usage) when it names no token.
std::optional<int32_t> start_token(const Subject& subject, const std::string& policy = kStartOfModel);
// "start token <s> (1)", "no start token"
std::string start_text(const Subject& subject, const std::optional<int32_t>& start);

// Tokens of a text that a person gave, after what the policy puts before it. Throws Error (usage) when no tokens spell
// it.
std::vector<int32_t> encode(const Subject& subject, const std::string& text, const std::string& policy = kStartOfModel);

// Whether tokens are bytes, one for each.
bool reads_bytes(const Subject& subject);

struct TextChoice {
  std::string file{};
  std::optional<int64_t> context{};   // T of a window [512, or as the model's context and the text allow]
  int64_t limit = 0;                  // windows, spread evenly; 0: all
  std::string start = kStartOfModel;  // policy
};
// A whole text in windows of the model's tokens. Errors: usage; those of reading the file, and of text_file() where
// tokens are bytes.
std::shared_ptr<const DataSource> text_source(const Subject& subject, const TextChoice& choice);
// The first `count` validation sequences of a source.
Batch validation_batch(const DataSource& source, int64_t count);

}  // namespace headlight::cli
