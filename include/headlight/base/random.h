#pragma once
// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011). A stream is named by what it is for
// and has no state to save: the numbers of step 1,000 are the same after a resume as without one.

#include <cstdint>
#include <utility>

namespace headlight {

class RandomStream {
 public:
  // Numbers depend on (seed, stream, index) alone. `stream` separates purposes (weights, data, ...),
  // `index` separates members of one purpose (a step, a tensor, a sequence).
  RandomStream(uint64_t seed, uint32_t stream, uint64_t index) noexcept;

  uint32_t next_u32() noexcept;
  uint64_t next_u64() noexcept;
  // uniform in [0, 1), 53 random bits
  double uniform() noexcept;
  // standard normal (Box-Muller)
  double normal() noexcept;
  // uniform in [0, n), without bias; n >= 1
  uint64_t below(uint64_t n) noexcept;

  // Fisher-Yates: shuffles a random-access range in place.
  template <class Range>
  void shuffle(Range& range) noexcept {
    using std::swap;
    for (uint64_t i = range.size(); i > 1; --i) swap(range[i - 1], range[below(i)]);
  }

 private:
  void refill() noexcept;

  uint32_t key_[2];
  uint32_t counter_[4];
  uint32_t block_[4];
  int used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

}  // namespace headlight
