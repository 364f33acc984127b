#pragma once
// The tokens of a model as its file spells them, by id and by spelling.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headlight {

class Vocabulary {
 public:
  // Throws Error (bad data) at `where` when a spelling is not UTF-8 or occurs twice, or when there are more than
  // 2^31 - 1 tokens or none.
  Vocabulary(std::vector<std::string> spellings, const std::string& where);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t size() const { return static_cast<int32_t>(spellings_.size()); }
  const std::string& spelling(int32_t id) const { return spellings_[static_cast<std::size_t>(id)]; }
  // -1: there is none
  int32_t find(std::string_view spelling) const {
    const auto found = ids_.find(spelling);
    return found == ids_.end() ? -1 : found->second;
  }

 private:
  std::vector<std::string> spellings_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

}  // namespace headlight
