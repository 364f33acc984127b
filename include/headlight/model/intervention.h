#pragma once
// Interventions are data: "at this site, for this head, at this position: zero, replace, scale or add" is a
// value that can be listed, swept and repeated.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headlight {

enum class InterventionKind { kZero, kReplace, kScale, kAdd };

// Acts where the value is made, before anything reads it. At `hook_z` this is ablation of a head: its output
// before W_O.
struct Intervention {
  std::string site;  // "blocks.1.attn.hook_z"
  InterventionKind kind = InterventionKind::kZero;
  std::optional<int64_t> head{};      // the site's third size (B, T, here, ...); absent: all of them
  std::optional<int64_t> position{};  // counted from the sequence's first token; absent: all
  std::optional<int64_t> entry{};     // of the batch; absent: all
  double factor = 1;                  // kScale: x = factor x;  kAdd: x = x + factor value
  // kReplace, kAdd: (values_batch | 1, values_time | 1, width) numbers, broadcast; width is that of one head's
  // vector when `head` is given, else of the whole row (all heads in order).
  std::shared_ptr<const std::vector<float>> values{};
  int64_t values_batch = 1;
  int64_t values_time = 1;  // values by position, counted from the sequence's first token
};

// "blocks.1.attn.hook_z head 2: zero"
std::string to_string(const Intervention& intervention);

}  // namespace headlight
