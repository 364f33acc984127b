#pragma once
// Files: read-only memory maps, whole-file reads, and writes that are seen whole or not at all.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace headlight {

// A regular file mapped for reading. Throws Error: missing input when it is not there or unreadable, bad
// data when it is a directory, FIFO or device.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole content of a regular file. Errors as MappedFile.
std::string read_file(const std::filesystem::path& path);

// Where write_file_atomically's `write` callback puts the bytes, in order.
class FileSink {
 public:
  virtual void write(std::span<const std::byte> bytes) = 0;
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

 protected:
  ~FileSink() = default;
};

// Writes to a temporary file in the same folder, syncs it, renames it to `path`, and syncs the folder: a
// reader sees the old file or the new one, whole, also after a crash. On failure the temporary is removed,
// the old file stays, and Error (cannot write) names `path`, the reason, and for a full disk the bytes
// still needed (`total_bytes`). A `path` that is a folder, pipe or device is refused (cannot write).
void write_file_atomically(const std::filesystem::path& path, uint64_t total_bytes,
                           const std::function<void(FileSink&)>& write);
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Makes a folder and its parents. Error (cannot create) says why not.
void make_folder(const std::filesystem::path& path);

// xxHash (XXH3, 64 bits) as 16 hexadecimal digits, for telling a whole file from a damaged one.
std::string content_hash(std::span<const std::byte> bytes);

}  // namespace headlight
