#include "process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>

namespace headlight::cli {
namespace {

// In the child: becomes the program.
[[noreturn]] void become(const std::vector<std::string>& words, const Setting& setting) {
  setenv("HEADLIGHT_THREADS", "2", 1);
  for (const std::string& variable : setting.environment) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  if (setting.largest_file) {
    const rlimit limit{*setting.largest_file, *setting.largest_file};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);  // so that write() fails instead
  }
  if (!setting.folder.empty() && chdir(setting.folder.c_str()) != 0) _exit(126);
  std::vector<std::string> all{HEADLIGHT_BINARY};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(HEADLIGHT_BINARY, arguments.data());
  _exit(127);
}

int code_of(int process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reads all descriptors until each has ended.
void read_all(std::vector<std::pair<int, std::string*>> streams) {
  while (!streams.empty()) {
    std::vector<pollfd> waiting;
    for (const auto& [descriptor, text] : streams) waiting.push_back({descriptor, POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) throw std::runtime_error("poll");
    for (std::size_t i = waiting.size(); i-- > 0;) {
      if (waiting[i].revents == 0) continue;
      std::array<char, 65536> some{};
      const ssize_t n = read(waiting[i].fd, some.data(), some.size());
      if (n > 0) {
        streams[i].second->append(some.data(), static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
}

}  // namespace

Outcome run(const std::vector<std::string>& words, const Setting& setting) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  if (setting.close_reader) close(out[0]);
  const pid_t process = fork();
  if (process == 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(setting.stdout_file ? open(setting.stdout_file->c_str(), O_WRONLY) : out[1], 1);
    dup2(err[1], 2);
    become(words, setting);
  }
  close(out[1]);
  close(err[1]);
  if (setting.meanwhile) setting.meanwhile(process);
  Outcome outcome;
  if (setting.close_reader) {
    read_all({{err[0], &outcome.err}});
  } else {
    read_all({{out[0], &outcome.out}, {err[0], &outcome.err}});
    close(out[0]);
  }
  close(err[0]);
  outcome.code = code_of(process);
  return outcome;
}

Outcome run_on_terminal(const std::vector<std::string>& words, int columns, const Setting& setting) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = 40;
  int terminal = -1;
  const pid_t process = forkpty(&terminal, nullptr, nullptr, &size);
  if (process == 0) {
    setenv("TERM", "xterm-256color", 1);
    unsetenv("NO_COLOR");
    become(words, setting);
  }
  if (setting.meanwhile) setting.meanwhile(process);
  Outcome outcome;
  read_all({{terminal, &outcome.out}});
  close(terminal);
  outcome.code = code_of(process);
  return outcome;
}

Folder::Folder() {
  std::string pattern = testing::TempDir() + "headlight_cli_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::file(const std::string& name, const std::string& content) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

const Folder& trained() {
  static const Folder folder;
  static const bool made = [] {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "the cat and the dog " + std::to_string(i * 37 % 101) + "\n";
    folder.file("text.txt", text);
    const std::vector<std::string> small{"--steps",
                                         "6",
                                         "--batch",
                                         "4",
                                         "--width",
                                         "16",
                                         "--heads",
                                         "2",
                                         "--warmup",
                                         "2",
                                         "--log-interval",
                                         "2",
                                         "--observe-interval",
                                         "3"};
    std::vector<std::string> words{"train", "--data", folder / "text.txt", "--context", "24", "--out", folder / "text"};
    words.insert(words.end(), small.begin(), small.end());
    const Outcome first = run(words);
    EXPECT_EQ(first.code, 0) << first.err;
    words = {"train", "--task", "repeats", "--context", "33", "--attention-only", "--out", folder / "repeats"};
    words.insert(words.end(), small.begin(), small.end());
    const Outcome second = run(words);
    EXPECT_EQ(second.code, 0) << second.err;
    return true;
  }();
  EXPECT_TRUE(made);
  return folder;
}

}  // namespace headlight::cli
