#include "headlight/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "headlight/base/error.h"

namespace headlight {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a folder";
  if (S_ISFIFO(mode)) return "is a named pipe";
  if (S_ISSOCK(mode)) return "is a socket";
  return "is a device";
}

// Opens a regular file; a named pipe must not block the open.
std::size_t open_regular(const std::filesystem::path& path, Descriptor& file) {
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0) throw Error(ErrorKind::kMissingInput, path.string(), "cannot be opened: " + reason(errno));
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) throw Error(ErrorKind::kMissingInput, path.string(), reason(errno));
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::kBadData, path.string(), kind_of(info.st_mode), "expected a regular file");
  }
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  Descriptor file;
  size_ = open_regular(path, file);
  if (size_ == 0) return;
  void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (map == MAP_FAILED) throw Error(ErrorKind::kMissingInput, path.string(), "cannot be mapped: " + reason(errno));
  data_ = static_cast<const std::byte*>(map);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string read_file(const std::filesystem::path& path) {
  Descriptor file;
  std::string content(open_regular(path, file), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::read(file.fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(ErrorKind::kMissingInput, path.string(), "cannot be read: " + reason(errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  content.resize(done);
  return content;
}

namespace {

class TemporaryFile final : public FileSink {
 public:
  TemporaryFile(const std::filesystem::path& target, uint64_t total_bytes)
      : target_(target), path_(target.string() + ".tmp-" + std::to_string(::getpid())), total_(total_bytes) {
    refuse_what_is_no_file();
    file_.fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_.fd < 0) {
      throw Error(ErrorKind::kCannotCreate, target_.string(), "cannot be created: " + reason(errno));
    }
  }

  ~TemporaryFile() {
    if (!committed_) ::unlink(path_.c_str());
  }

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.fd, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(errno);
      written_ += static_cast<uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  void commit() {
    if (::fsync(file_.fd) != 0) fail(errno);
    const int fd = std::exchange(file_.fd, -1);
    if (::close(fd) != 0) fail(errno);
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
    committed_ = true;
    const std::filesystem::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
    Descriptor parent{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (parent.fd >= 0) ::fsync(parent.fd);
  }

 private:
  // a rename would replace a device or a pipe by the file
  void refuse_what_is_no_file() const {
    struct stat info {};
    if (::stat(target_.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return;
    throw Error(ErrorKind::kCannotWrite, target_.string(), kind_of(info.st_mode), "expected a regular file or none");
  }

  [[noreturn]] void fail(int code) const {
    std::string found = "cannot be written: " + reason(code);
    if (code == ENOSPC || code == EDQUOT) {
      const uint64_t missing = total_ > written_ ? total_ - written_ : 0;
      found += "; " + std::to_string(missing) + " more bytes are needed; what was there before is kept";
    }
    throw Error(ErrorKind::kCannotWrite, target_.string(), found);
  }

  std::filesystem::path target_;
  std::string path_;
  uint64_t total_;
  uint64_t written_ = 0;
  Descriptor file_;
  bool committed_ = false;
};

}  // namespace

void write_file_atomically(const std::filesystem::path& path, uint64_t total_bytes,
                           const std::function<void(FileSink&)>& write) {
  TemporaryFile file(path, total_bytes);
  write(file);
  file.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  write_file_atomically(path, content.size(), [&](FileSink& sink) { sink.write(content); });
}

void make_folder(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) throw Error(ErrorKind::kCannotCreate, path.string(), "folder cannot be created: " + code.message());
}

std::string content_hash(std::span<const std::byte> bytes) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return text.data();
}

}  // namespace headlight
