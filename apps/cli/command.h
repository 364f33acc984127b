#pragma once
// What each subcommand is: how the overview and --help describe it, its options, and what it does.

#include <memory>
#include <string>
#include <vector>

#include "console.h"
#include "options.h"

namespace headlight::cli {

struct Example {
  std::string command;  // "headlight count runs/a"
  std::string meaning;  // one line
};

struct Description {
  std::string name;     // "train", "lab scale"
  std::string group;    // heading in the overview
  std::string summary;  // one line
  std::string details;  // paragraphs of --help, separated by empty lines
  std::vector<Example> examples;
};

class Command {
 public:
  virtual ~Command() = default;
  virtual Description description() const = 0;
  virtual void declare(Options& options) = 0;
  // Returns the exit code, 0 or 1; anything else leaves as an Error.
  virtual int run(const Options& options, Console& console) = 0;
};

// All subcommands, in the order of the overview.
std::vector<std::unique_ptr<Command>> all_commands();

std::unique_ptr<Command> train_command();
std::unique_ptr<Command> eval_command();
std::unique_ptr<Command> generate_command();
std::unique_ptr<Command> convert_command();
std::unique_ptr<Command> heads_command();
std::unique_ptr<Command> ablate_command();
std::unique_ptr<Command> attend_command();
std::unique_ptr<Command> report_command();
std::unique_ptr<Command> count_command();
std::unique_ptr<Command> lab_worked_command();
std::unique_ptr<Command> lab_scale_command();
std::unique_ptr<Command> lab_induction_command();
std::unique_ptr<Command> lab_copy_command();

}  // namespace headlight::cli
