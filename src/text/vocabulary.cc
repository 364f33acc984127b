#include "text/vocabulary.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/json_reader.h"
#include "headlight/base/error.h"
#include "text/utf8.h"

namespace headlight {

Vocabulary::Vocabulary(std::vector<std::string> spellings, const std::string& where)
    : spellings_(std::move(spellings)) {
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw Error(ErrorKind::kBadData, where, found, expected);
  };
  if (spellings_.empty()) refuse("there is no token", "expected at least one");
  if (spellings_.size() > static_cast<std::size_t>(std::numeric_limits<int32_t>::max())) {
    refuse(fmt::format("{} tokens", spellings_.size()), "expected fewer than 2^31");
  }
  ids_.reserve(spellings_.size());
  for (int32_t id = 0; id < size(); ++id) {
    if (!is_utf8(spelling(id))) refuse(fmt::format("token {} is {}", id, in_quotes(spelling(id))), "expected UTF-8");
    const auto [first, fresh] = ids_.emplace(spelling(id), id);
    if (!fresh) {
      refuse(fmt::format("tokens {} and {} are both {}", first->second, id, in_quotes(spelling(id))),
             "expected each token once");
    }
  }
}

}  // namespace headlight
