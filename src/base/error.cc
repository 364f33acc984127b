#include "headlight/base/error.h"

#include <utility>

namespace headlight {
namespace {

std::string message(const std::string& where, const std::string& found, const std::string& expected) {
  std::string text = where;
  if (!found.empty()) text += (text.empty() ? "" : ": ") + found;
  if (!expected.empty()) text += (text.empty() ? "" : "; ") + expected;
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, std::string where, std::string found, std::string expected)
    : std::runtime_error(message(where, found, expected)),
      kind_(kind),
      where_(std::move(where)),
      found_(std::move(found)),
      expected_(std::move(expected)) {}

}  // namespace headlight
