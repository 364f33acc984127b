#include "text/trie.h"

#include <algorithm>

namespace headlight {

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> strings) : nodes_(1), roots_(256, -1) {
  std::stable_sort(strings.begin(), strings.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // level by level, so that children are neighbours: the strings [begin, end) share the first `depth` bytes
  struct Range {
    int32_t node;
    std::size_t begin, end, depth;
  };
  std::vector<Range> queue{{kRoot, 0, strings.size(), 0}};
  for (std::size_t done = 0; done < queue.size(); ++done) {
    const Range range = queue[done];
    std::size_t begin = range.begin;
    // those that end here come first
    while (begin < range.end && strings[begin].first.size() == range.depth) {
      if (range.depth > 0) nodes_[static_cast<std::size_t>(range.node)].value = strings[begin].second;
      ++begin;
    }
    nodes_[static_cast<std::size_t>(range.node)].first_child = static_cast<int32_t>(nodes_.size());
    while (begin < range.end) {
      const char byte = strings[begin].first[range.depth];
      std::size_t end = begin;
      while (end < range.end && strings[end].first[range.depth] == byte) ++end;
      queue.push_back({static_cast<int32_t>(nodes_.size()), begin, end, range.depth + 1});
      nodes_.push_back({0, 0, -1, static_cast<unsigned char>(byte)});
      ++nodes_[static_cast<std::size_t>(range.node)].children;
      begin = end;
    }
  }
  for (int32_t child = 0; child < nodes_[0].children; ++child) {
    roots_[nodes_[static_cast<std::size_t>(1 + child)].byte] = 1 + child;
  }
}

int32_t Trie::next(int32_t node, unsigned char byte) const {
  if (node == kRoot) return roots_[byte];
  const Node& parent = nodes_[static_cast<std::size_t>(node)];
  const auto begin = nodes_.begin() + parent.first_child;
  const auto end = begin + parent.children;
  const auto found = std::lower_bound(begin, end, byte, [](const Node& a, unsigned char b) { return a.byte < b; });
  return found != end && found->byte == byte ? static_cast<int32_t>(found - nodes_.begin()) : -1;
}

}  // namespace headlight
