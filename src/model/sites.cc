#include "headlight/model/sites.h"

#include <algorithm>

#include "headlight/base/error.h"
#include "model/wildcard.h"

namespace headlight {
namespace {

int64_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<int64_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int64_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

int SiteTable::add(Slot slot) {
  if (slot.share.empty()) {
    // blocks.5.attn.hook_z and blocks.6.attn.hook_z may lie in the same place
    std::size_t begin = 0;
    if (slot.name.rfind("blocks.", 0) == 0) begin = slot.name.find('.', 7) + 1;
    slot.share = slot.name.substr(begin);
  }
  slots_.push_back(std::move(slot));
  const int index = static_cast<int>(slots_.size()) - 1;
  if (slots_.back().is_site) add_name(slots_.back().name, index);
  return index;
}

void SiteTable::add_name(const std::string& name, int slot) {
  if (!by_name_.emplace(name, slot).second) throw LogicError("SiteTable::add_name", name + " is there already");
  names_.push_back(name);
}

bool SiteTable::contains(const std::string& name) const noexcept { return by_name_.count(name) != 0; }

int SiteTable::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  std::string closest;
  int64_t least = -1;
  for (const std::string& candidate : names_) {
    const int64_t distance = edit_distance(name, candidate);
    if (least < 0 || distance < least) {
      least = distance;
      closest = candidate;
    }
  }
  throw LogicError("site " + name, "this model has no such site; the closest is " + closest);
}

std::vector<int> SiteTable::match(const std::string& pattern) const {
  if (pattern.find('*') == std::string::npos) return {find(pattern)};
  std::vector<int> found;
  for (const std::string& name : names_) {
    if (matches_wildcard(pattern, name)) found.push_back(by_name_.at(name));
  }
  if (found.empty()) throw LogicError("site " + pattern, "no site of this model matches");
  return found;
}

}  // namespace headlight
