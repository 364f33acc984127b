#pragma once
// The one family of errors that the library throws. It never prints, exits or aborts: the command
// line and the bindings turn an error's kind into an exit code or an exception of their language.

#include <stdexcept>
#include <string>

namespace headlight {

enum class ErrorKind {
  kRuntime,       // failed while running                          (exit code 1)
  kUsage,         // an option or argument that a person gave      (exit code 2)
  kBadData,       // a file or text whose content is wrong         (exit code 65)
  kMissingInput,  // a file that is not there or cannot be read    (exit code 66)
  kCannotCreate,  // a file or folder that cannot be made          (exit code 73)
  kCannotWrite,   // writing failed, a full disk included          (exit code 74)
  kInterrupted,   // stopped on request, with everything saved     (exit code 130)
};

// What went wrong, in the parts that a person needs: where, what was found, what was expected.
// Empty parts are left out of the message, which reads `where: found; expected`.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string where, std::string found, std::string expected = "");

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& found() const noexcept { return found_; }
  const std::string& expected() const noexcept { return expected_; }

 private:
  ErrorKind kind_;
  std::string where_;
  std::string found_;
  std::string expected_;
};

// A broken precondition of a function: sizes that do not fit, overlapping outputs, a site that never
// fires. A mistake of the calling code, found before anything is written.
class LogicError : public std::logic_error {
 public:
  LogicError(const std::string& operation, const std::string& problem) : std::logic_error(operation + ": " + problem) {}
};

}  // namespace headlight
