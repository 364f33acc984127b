#pragma once
// Byte strings by their prefixes.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace headlight {

class Trie {
 public:
  // Strings with their values >= 0; an empty string is left out, of equal ones the last counts.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> strings);

  static constexpr int32_t kRoot = 0;
  // The node that `byte` leads to, -1: none.
  int32_t next(int32_t node, unsigned char byte) const;
  // The value of the string that ends here, -1: none.
  int32_t value(int32_t node) const { return nodes_[static_cast<std::size_t>(node)].value; }

 private:
  // Children lie side by side in the order of their bytes.
  struct Node {
    int32_t first_child = 0;
    int32_t children = 0;
    int32_t value = -1;
    unsigned char byte = 0;
  };

  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;  // the root's children by byte, -1: none
};

}  // namespace headlight
