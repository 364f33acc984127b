#include "model/families/part_list.h"

#include <fmt/format.h>

namespace headlight {
namespace {

const char* name_in(Naming naming, const PartNames& names) {
  switch (naming) {
    case Naming::kHuggingFace:
      return names.hugging_face;
    case Naming::kGguf:
      return names.gguf;
    case Naming::kLlama2c:
      return names.llama2c;
  }
  return "";
}

// "attn.?_Q" with the letter of a weight, W, or a bias, b
std::string with_letter(std::string pattern, char letter) {
  pattern[pattern.find('?')] = letter;
  return pattern;
}

}  // namespace

std::string PartList::tensor(int64_t block, const PartNames& names, const char* kind) const {
  const char* const name = name_in(naming_, names);
  switch (naming_) {
    case Naming::kHuggingFace:
      return fmt::format(fmt::runtime(block_), block) + name + kind;
    case Naming::kGguf:
      return fmt::format("blk.{}.{}{}", block, name, kind);
    case Naming::kLlama2c:
      return fmt::format("{}.{}", name, block);
  }
  return "";
}

void PartList::whole(const PartNames& names, bool transposed) {
  parts_.push_back({names.parameter, name_in(naming_, names), transposed});
}

void PartList::norm(int64_t block, const PartNames& names, bool biased) {
  const std::string parameter = fmt::format("blocks.{}.{}", block, names.parameter);
  parts_.push_back({parameter + ".w", tensor(block, names, ".weight")});
  if (biased) parts_.push_back({parameter + ".b", tensor(block, names, ".bias")});
}

void PartList::map(int64_t block, const PartNames& names, bool biased, bool transposed, const OutputOrder& order) {
  const auto named = [&](char letter) {
    return fmt::format("blocks.{}.{}", block, with_letter(names.parameter, letter));
  };
  parts_.push_back({named('W'), tensor(block, names, ".weight"), transposed, order});
  if (biased) parts_.push_back({named('b'), tensor(block, names, ".bias"), false, order});
}

}  // namespace headlight
