#include "headlight/base/file.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace headlight {
namespace {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, HoldsTheBytesAndKeepsThemWhenMoved) {
  const TempFolder folder;
  std::ofstream(folder / "a") << "some text";
  std::ofstream(folder / "b") << "more";
  std::ofstream(folder / "empty");
  MappedFile a(folder / "a");
  EXPECT_EQ(text_of(a), "some text");
  EXPECT_EQ(read_file(folder / "a"), "some text");
  MappedFile moved = std::move(a);
  EXPECT_EQ(text_of(moved), "some text");
  EXPECT_EQ(moved.path(), folder / "a");
  moved = MappedFile(folder / "b");
  EXPECT_EQ(text_of(moved), "more");
  EXPECT_EQ(MappedFile(folder / "empty").bytes().size(), 0u);
  EXPECT_EQ(read_file(folder / "empty"), "");
}

TEST(MappedFile, RefusesWhatIsNoRegularFileWithoutBlocking) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto both = [](ErrorKind kind, std::initializer_list<std::string> words, const std::filesystem::path& path) {
    expect_error(kind, words, [&] { MappedFile{path}; });
    expect_error(kind, words, [&] { read_file(path); });
  };
  both(ErrorKind::kMissingInput, {(folder / "absent").string(), "No such file"}, folder / "absent");
  both(ErrorKind::kBadData, {folder.path().string(), "is a folder", "regular file"}, folder.path());
  both(ErrorKind::kBadData, {"pipe", "is a named pipe"}, folder / "pipe");
  both(ErrorKind::kBadData, {"/dev/zero", "is a device"}, "/dev/zero");
}

TEST(WriteFileAtomically, ReplacesTheOldFileAndLeavesNoOther) {
  const TempFolder folder;
  write_file_atomically(folder / "a", "first");
  EXPECT_EQ(read_file(folder / "a"), "first");
  write_file_atomically(folder / "a", 6, [](FileSink& sink) {
    sink.write(std::string_view("sec"));
    sink.write(std::string_view("ond"));
  });
  EXPECT_EQ(read_file(folder / "a"), "second");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(WriteFileAtomically, KeepsTheOldFileWhenTheWriterThrows) {
  const TempFolder folder;
  write_file_atomically(folder / "a", "old");
  EXPECT_THROW(write_file_atomically(folder / "a", 3,
                                     [](FileSink& sink) {
                                       sink.write(std::string_view("new"));
                                       throw std::runtime_error("stop");
                                     }),
               std::runtime_error);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(WriteFileAtomically, SaysWhyItCannot) {
  const TempFolder folder;
  expect_error(ErrorKind::kCannotCreate, {"no/a", "cannot be created", "No such file"},
               [&] { write_file_atomically(folder / "no" / "a", "text"); });
  expect_error(ErrorKind::kCannotWrite, {folder.path().string(), "is a folder"},
               [&] { write_file_atomically(folder.path(), "text"); });
}

TEST(WriteFileAtomically, NeverReplacesAPipe) {
  const TempFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorKind::kCannotWrite, {"is a named pipe", "regular file"},
               [&] { write_file_atomically(pipe, "text"); });
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(WriteFileAtomically, NeverReplacesADevice) {
  const TempFolder folder;
  const auto device = folder / "null";
  // one of our own: a test that fails must not take the system's
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) GTEST_SKIP() << "no right to make a device";
  expect_error(ErrorKind::kCannotWrite, {"is a device", "regular file"},
               [&] { write_file_atomically(device, "text"); });
  EXPECT_TRUE(std::filesystem::is_character_file(device));
}

// What `child` returns, run in a process of its own.
int in_child(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 0 when writing `size` bytes over `path` fails with a message that holds `words` and leaves `old` alone.
int failed_write(const std::filesystem::path& path, std::size_t size, std::initializer_list<const char*> words) {
  try {
    write_file_atomically(path, std::string(size, 'x'));
    return 2;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCannotWrite) return 3;
    for (const char* word : words) {
      if (std::strstr(error.what(), word) == nullptr) return 4;
    }
  }
  if (read_file(path) != "old") return 5;
  return names_in(path.parent_path()).size() == 1 ? 0 : 6;
}

TEST(WriteFileAtomically, KeepsTheOldFileAtALimitOfSize) {
  const TempFolder folder;
  write_file_atomically(folder / "a", "old");
  EXPECT_EQ(in_child([&] {
              const rlimit limit{4096, 4096};
              std::signal(SIGXFSZ, SIG_IGN);
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              return failed_write(folder / "a", 10'000, {"cannot be written", "too large"});
            }),
            0);
}

TEST(WriteFileAtomically, NamesTheBytesThatAFullDiskLacks) {
  const TempFolder folder;
  constexpr int kNotAllowed = 77;
  const int result = in_child([&] {
    // a small disk of its own, where the system lets us have one
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kNotAllowed;
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kNotAllowed;
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) return kNotAllowed;
    write_file_atomically(folder / "a", "old");
    // 15 of the 16 pages of 4,096 bytes are left
    return failed_write(folder / "a", 100'000, {"cannot be written", "No space left", "38560 more bytes"});
  });
  if (result == kNotAllowed) GTEST_SKIP() << "no right to mount a small disk";
  EXPECT_EQ(result, 0);
}

TEST(MakeFolder, MakesParentsAndSaysWhyItCannot) {
  const TempFolder folder;
  make_folder(folder / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b"));
  EXPECT_NO_THROW(make_folder(folder / "a" / "b"));
  std::ofstream(folder / "file");
  expect_error(ErrorKind::kCannotCreate, {"file", "cannot be created"}, [&] { make_folder(folder / "file" / "c"); });
}

TEST(ContentHash, IsXxh3) {
  // the published value for no input
  EXPECT_EQ(content_hash({}), "2d06800538d394c2");
  const std::string text(1000, 'a');
  const std::string hash = content_hash(std::as_bytes(std::span(text)));
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_NE(hash, content_hash(std::as_bytes(std::span(text).subspan(1))));
}

}  // namespace
}  // namespace headlight
