#pragma once
// Groups of options that several subcommands share, each declared in one place.

#include <memory>
#include <optional>
#include <string>

#include "headlight/model/config.h"
#include "headlight/tensor/dtype.h"
#include "headlight/text/data_source.h"
#include "headlight/train/options.h"
#include "options.h"

namespace headlight::cli {

// The heading of the model's options, for Options::given_in().
inline constexpr const char* kModelGroup = "model";

// Everything of ModelConfig but vocabulary and context, which the data decides. The names are those of config.json.
void add_model_options(Options& options, ModelConfig& config);
// "head_width" -> "--head-width", for messages about a field
std::string option_of_field(const std::string& field);

// Where sequences come from: a text file, or a synthetic task.
struct DataChoice {
  enum class Task { kNone, kRepeats, kCopy };
  std::string file;
  Task task = Task::kNone;
  std::optional<int64_t> context{};     // T of its sequences
  std::optional<int64_t> vocabulary{};  // of kRepeats

  bool is_made() const { return !file.empty() || task != Task::kNone; }
};
inline constexpr const char* kDataGroup = "data";
// --data, --task and their sizes.
void add_data_options(Options& options, DataChoice& data);
// Throws Error: usage when the options do not go together, and as text_file(), repeats() and log_lines().
std::shared_ptr<const DataSource> make_data(const DataChoice& data);

// Throws Error (usage) when the options do not go together.
void check_choice(const DataChoice& data);

// One of f32 (the default, which `type` holds), bf16 and f16.
void add_type_option(Options& options, const std::string& name, DType& type, const std::string& help);

// All of TrainerOptions but model and data.
void add_training_options(Options& options, TrainerOptions& training);

// --threads; `threads` 0 leaves the choice to HEADLIGHT_THREADS or the machine.
void add_compute_options(Options& options, int64_t& threads);
void use_threads(int64_t threads);

}  // namespace headlight::cli
