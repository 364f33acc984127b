#pragma once
// Where a subcommand's words go: results to standard output, logs and progress to standard error, colour only where a
// person sees it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headlight::cli {

enum class Paint { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

// Whether one stream is a terminal, how wide it is, and whether it takes colour.
struct Screen {
  bool is_terminal = false;
  bool has_colour = false;
  int width = 80;

  // `text` in a colour, or as it is where there is none.
  std::string paint(Paint colour, std::string_view text) const;
};

// Colour: a terminal that is not "dumb", unless NO_COLOR is set and not empty.
Screen look_at(int descriptor);

class Console {
 public:
  Console();

  const Screen& out() const noexcept { return out_; }
  const Screen& err() const noexcept { return err_; }
  bool wants_json() const noexcept { return wants_json_; }
  void set_json(bool wanted) noexcept { wants_json_ = wanted; }

  // The words that started this process, as a person would type them.
  const std::string& command_line() const noexcept { return command_line_; }
  void set_command_line(std::string words) { command_line_ = std::move(words); }

  // Appends to standard output. Throws Error (cannot write) when it takes no more; when its reader has gone, ends the
  // process as a broken pipe does.
  void print(std::string_view text);
  // A line, broken at blanks where standard output is a screen.
  void print_wrapped(std::string_view line);
  // One object and a newline.
  void print_json(const nlohmann::ordered_json& object);
  // Writes what is left of standard output.
  void flush();

  // One line on standard error.
  void note(std::string_view line);
  // The one line that is redrawn on standard error; nothing where that is no terminal.
  void redraw(std::string_view line);
  // Takes the redrawn line away.
  void clear_line();

 private:
  Screen out_;
  Screen err_;
  bool wants_json_ = false;
  bool line_drawn_ = false;
  std::string pending_;
  std::string command_line_;
};

}  // namespace headlight::cli
