#pragma once
// Runs the program as a person would: with pipes, or on a terminal.

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headlight::cli {

struct Outcome {
  int code = -1;    // exit code; 128 + signal when one ended it
  std::string out;  // standard output
  std::string err;  // standard error; on a terminal everything is in `out`

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

struct Setting {
  std::vector<std::string> environment{};        // "NO_COLOR=1"
  std::optional<std::string> stdout_file{};      // instead of a pipe: "/dev/full"
  std::optional<uint64_t> largest_file{};        // bytes that a file may grow to (RLIMIT_FSIZE)
  std::function<void(int process)> meanwhile{};  // called once it runs
  bool close_reader = false;                     // nobody reads standard output
  std::filesystem::path folder{};                // working folder
};

// Standard input is empty. Threads: 2.
Outcome run(const std::vector<std::string>& words, const Setting& setting = {});
// On a terminal of `columns` columns that calls itself xterm-256color.
Outcome run_on_terminal(const std::vector<std::string>& words, int columns = 80, const Setting& setting = {});

// A folder of its own for a test, empty at first and removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }
  // Writes a file and returns its path.
  std::string file(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

// A tiny model of bytes trained for some steps on a made-up text; a tiny one on repeats. In FOLDER/text and
// FOLDER/repeats, with the text in FOLDER/text.txt. Each test process makes its own, once.
const Folder& trained();

}  // namespace headlight::cli
