#include "train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "train/log_file.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraining = "training.json";

// The first sign that a folder is in use for something that a new run would overwrite, or "".
std::string content_of(const fs::path& path) {
  for (const char* name :
       {kTraining, "checkpoints", "log.jsonl", "model.safetensors", "config.json", "tokenizer.json"}) {
    if (fs::exists(path / name)) return name;
  }
  return "";
}

void demand_run(const fs::path& path) {
  if (fs::exists(path / kTraining)) return;
  throw Error(ErrorKind::kMissingInput, path.string(),
              fs::exists(path) ? "holds no run: there is no training.json" : "there is no such folder",
              "expected the folder of a run, as --out made it");
}

// Files that write_file_atomically had not renamed yet when the process was killed.
void remove_temporaries(const fs::path& path) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.find(".tmp-") != std::string::npos) found.push_back(entry.path());
  }
  for (const fs::path& file : found) fs::remove(file);
}

}  // namespace

void make_folder_durably(const fs::path& path) {
  make_folder(path);
  const fs::path parent = fs::absolute(path).parent_path();
  const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

RunFolder::RunFolder(const fs::path& path) : path_(path) {}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

void RunFolder::take_lock() {
  const fs::path file = path_ / "run.lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    throw Error(ErrorKind::kCannotCreate, file.string(),
                "cannot be created: " + std::generic_category().message(errno));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    throw Error(ErrorKind::kRuntime, path_.string(), "is in use by another trainer",
                "wait until it has ended, or stop it, or choose another folder with --out");
  }
}

std::unique_ptr<RunFolder> RunFolder::create(const fs::path& path, const TrainerOptions& options) {
  make_folder_durably(path);
  std::unique_ptr<RunFolder> folder(new RunFolder(path));
  folder->take_lock();
  if (const std::string content = content_of(path); !content.empty()) {
    const bool is_run = fs::exists(path / kTraining);
    throw Error(
        ErrorKind::kCannotCreate, path.string(), is_run ? "holds a run already" : "is not empty: it holds " + content,
        is_run ? "continue it with --resume, or choose another folder with --out" : "choose another folder with --out");
  }
  write_file_atomically(path / kTraining, training_json(options));
  folder->write_descriptions(options);
  return folder;
}

std::unique_ptr<RunFolder> RunFolder::open(const fs::path& path) {
  demand_run(path);
  std::unique_ptr<RunFolder> folder(new RunFolder(path));
  folder->take_lock();
  remove_temporaries(path);
  return folder;
}

TrainerOptions RunFolder::options(std::vector<std::string>& messages) const {
  const fs::path file = path_ / kTraining;
  return options_from_training_json(read_file(file), file.string(), messages);
}

void RunFolder::prepare_resume(const TrainerOptions& options, int64_t step) const {
  write_descriptions(options);
  cut_log(path_, step > 0 ? step : -1);  // the first entry is written again with the first step
}

void RunFolder::write_descriptions(const TrainerOptions& options) const {
  save_tokenizer(*options.data->tokenizer(), path_);
  write_file_atomically(path_ / "config.json", to_json(options.model));
}

TrainerOptions read_training_options(const fs::path& folder) {
  demand_run(folder);
  const fs::path file = folder / kTraining;
  std::vector<std::string> messages;
  return options_from_training_json(read_file(file), file.string(), messages);
}

}  // namespace headlight
