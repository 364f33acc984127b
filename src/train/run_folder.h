#pragma once
// The folder of a run and who may write there.
//   training.json       options, model, data: written first; a folder that has it holds a run
//   config.json, model.safetensors, tokenizer.json    the folder is a model for every command
//   log.jsonl           one entry per line
//   checkpoints/step-N  what a resume starts from
//   run.lock            held while a trainer uses the folder

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headlight/train/options.h"

namespace headlight {

class RunFolder {
 public:
  // Starts a run: makes the folder, takes the lock, writes training.json and the tokenizer and configuration. Errors:
  // cannot create when the folder holds a run or a model already, with advice; runtime when another trainer uses it.
  static std::unique_ptr<RunFolder> create(const std::filesystem::path& path, const TrainerOptions& options);

  // Takes the lock of a folder that holds a run, and removes what interrupted writes left behind. Errors: missing
  // input when there is no run; runtime when another trainer uses it.
  static std::unique_ptr<RunFolder> open(const std::filesystem::path& path);

  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  // training.json. Errors: bad data naming the key, missing input and bad data of the training text. `messages`
  // gains a line when this processor's instruction set gives other bits than the one the run began with.
  TrainerOptions options(std::vector<std::string>& messages) const;

  // Makes the folder what it was after `step`, or before the first with -1: the log ends there, and files that
  // were not written yet when the run was killed are.
  void prepare_resume(const TrainerOptions& options, int64_t step) const;

 private:
  void write_descriptions(const TrainerOptions& options) const;
  explicit RunFolder(const std::filesystem::path& path);
  void take_lock();

  std::filesystem::path path_;
  int lock_ = -1;
};

// training.json as text and back.
std::string training_json(const TrainerOptions& options);
TrainerOptions options_from_training_json(const std::string& text, const std::string& where,
                                          std::vector<std::string>& messages);

// Makes a folder and its parents, and returns when its entry is on the disk.
void make_folder_durably(const std::filesystem::path& path);

}  // namespace headlight
