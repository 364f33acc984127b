#include "console.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "headlight/base/error.h"
#include "utf8.h"

namespace headlight::cli {
namespace {

constexpr std::size_t kWriteAt = 1 << 16;  // bytes kept back before they are written

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

const char* code(Paint paint) {
  switch (paint) {
    case Paint::kPlain:
      return "";
    case Paint::kBold:
      return "\x1b[1m";
    case Paint::kDim:
      return "\x1b[2m";
    case Paint::kRed:
      return "\x1b[31m";
    case Paint::kGreen:
      return "\x1b[32m";
    case Paint::kYellow:
      return "\x1b[33m";
    case Paint::kBlue:
      return "\x1b[34m";
    case Paint::kMagenta:
      return "\x1b[35m";
    case Paint::kCyan:
      return "\x1b[36m";
  }
  return "";
}

// bytes written, or -1 with errno; a signal between is no failure
ssize_t write_some(int descriptor, std::string_view text) {
  for (;;) {
    const ssize_t n = write(descriptor, text.data(), text.size());
    if (n >= 0 || errno != EINTR) return n;
  }
}

void write_error_stream(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write_some(STDERR_FILENO, text);
    if (n < 0) return;  // nowhere is left to say so
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string Screen::paint(Paint colour, std::string_view text) const {
  if (!has_colour || colour == Paint::kPlain || text.empty()) return std::string(text);
  return code(colour) + std::string(text) + "\x1b[0m";
}

Screen look_at(int descriptor) {
  Screen screen;
  const char* kind = std::getenv("TERM");
  screen.is_terminal = isatty(descriptor) == 1;
  if (!screen.is_terminal) return screen;
  screen.has_colour = !is_set("NO_COLOR") && kind != nullptr && std::string_view(kind) != "dumb";
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) screen.width = size.ws_col;
  return screen;
}

Console::Console() : out_(look_at(STDOUT_FILENO)), err_(look_at(STDERR_FILENO)) {}

void Console::print(std::string_view text) {
  pending_ += text;
  if (pending_.size() >= kWriteAt) flush();
}

void Console::print_wrapped(std::string_view line) {
  if (!out_.is_terminal) return print(std::string(line) + "\n");
  for (const std::string& part : wrap(line, out_.width - 1)) print(part + "\n");
}

void Console::print_json(const nlohmann::ordered_json& object) {
  print(object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  print("\n");
}

void Console::flush() {
  clear_line();
  std::string_view left = pending_;
  while (!left.empty()) {
    const ssize_t n = write_some(STDOUT_FILENO, left);
    if (n < 0) {
      const int reason = errno;
      pending_.clear();
      if (reason == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
      }
      throw Error(ErrorKind::kCannotWrite, "standard output", strerror(reason));
    }
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  pending_.clear();
}

void Console::note(std::string_view line) {
  clear_line();
  write_error_stream(std::string(line) + "\n");
}

void Console::redraw(std::string_view line) {
  if (!err_.is_terminal) return;
  err_.width = look_at(STDERR_FILENO).width;
  write_error_stream("\r" + cut(line, err_.width - 1) + "\x1b[K");
  line_drawn_ = true;
}

void Console::clear_line() {
  if (!line_drawn_) return;
  write_error_stream("\r\x1b[K");
  line_drawn_ = false;
}

}  // namespace headlight::cli
