#pragma once
// The one table of named intermediate values ("sites"), in the field's names
// (`blocks.5.attn.hook_z`). Capturing, intervening, the command line and the documentation are fed by it.

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace headlight {

// A size that is known only when a run is planned.
constexpr int64_t kBatchSize = -1;      // B
constexpr int64_t kTimeSize = -2;       // T
constexpr int64_t kPositionsSize = -3;  // positions that the run's tables reach

// Where a value lives during a run when nobody asks for it.
enum class SlotUse {
  kShared,      // one place for all blocks, overwritten by the next
  kOnRequest,   // not stored, often not even computed
  kWorkspace,   // gradients on their way back: one place for all blocks, only in runs with gradients
  kRecomputed,  // never stored; asking for it keeps the slots that it is recomputed from
};

struct Slot {
  std::string name;            // of the site, or of an internal value (then `is_site` is false)
  std::vector<int64_t> shape;  // (B, T, ...), up to 4 sizes
  SlotUse use = SlotUse::kShared;
  bool saved = false;  // a run with gradients keeps it for the backward
  bool is_site = true;
  bool changeable = true;      // interventions may act here
  std::string meaning{};       // one line for the documentation
  std::string share{};         // slots of the same `share` may lie in the same place; "" = the name after the block
  std::vector<int> sources{};  // kRecomputed: the slots that asking for it keeps
};

class SiteTable {
 public:
  int add(Slot slot);
  // A second name of a slot: blocks.1.hook_resid_pre is blocks.0.hook_resid_post.
  void add_name(const std::string& name, int slot);

  const std::vector<Slot>& slots() const noexcept { return slots_; }
  const Slot& operator[](int slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  // All names that can be asked for, in the order of the forward.
  const std::vector<std::string>& names() const noexcept { return names_; }
  // The slot of a site. Throws LogicError, with the closest names, when no site has this name.
  int find(const std::string& name) const;
  bool contains(const std::string& name) const noexcept;
  // Slots of all sites that match a pattern, in which `*` stands for any run of characters. Throws
  // LogicError when none matches: a site that never fires is an error.
  std::vector<int> match(const std::string& pattern) const;

 private:
  std::vector<Slot> slots_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> by_name_;
};

}  // namespace headlight
