#pragma once
// The log of a run while it is written.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headlight/train/log.h"

namespace headlight {

// The whole lines of a file, without a last one that was cut off.
std::vector<std::string> log_lines_of(const std::filesystem::path& file);

// Appends to `folder`/log.jsonl, which is made when it is missing. Errors: cannot create, cannot write.
class LogFile {
 public:
  explicit LogFile(const std::filesystem::path& folder);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void append(const LogEntry& entry);
  // Returns when all entries are on the disk.
  void sync();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Drops the entries of later steps, which a resumed run writes again, and lines that were not finished.
void cut_log(const std::filesystem::path& folder, int64_t last_step);

}  // namespace headlight
