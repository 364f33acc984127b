#include "train/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "headlight/base/error.h"
#include "headlight/base/file.h"

namespace headlight {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

LogFile::LogFile(const std::filesystem::path& folder) : path_(folder / "log.jsonl") {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw Error(ErrorKind::kCannotCreate, path_.string(), "cannot be opened: " + reason(errno));
}

LogFile::~LogFile() { ::close(fd_); }

void LogFile::append(const LogEntry& entry) {
  const std::string line = to_json_line(entry) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw Error(ErrorKind::kCannotWrite, path_.string(), "cannot be written: " + reason(errno),
                  std::to_string(line.size() - done) + " more bytes are needed");
    }
    done += static_cast<std::size_t>(n);
  }
}

void LogFile::sync() {
  if (::fsync(fd_) != 0) throw Error(ErrorKind::kCannotWrite, path_.string(), "cannot be written: " + reason(errno));
}

void cut_log(const std::filesystem::path& folder, int64_t last_step) {
  const std::filesystem::path file = folder / "log.jsonl";
  if (!std::filesystem::exists(file)) return;
  std::string kept;
  for (const std::string& line : log_lines_of(file)) {
    try {
      if (log_entry_from_json(line, file.string()).step > last_step) break;
    } catch (const Error&) {
      break;  // a crash of the machine can leave a line half on the disk; whole ones come before
    }
    kept += line + "\n";
  }
  write_file_atomically(file, kept);
}

}  // namespace headlight
