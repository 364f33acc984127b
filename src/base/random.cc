#include "headlight/base/random.h"

#include <cmath>
#include <numbers>

namespace headlight {

RandomStream::RandomStream(uint64_t seed, uint32_t stream, uint64_t index) noexcept
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{0, stream, static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32)},
      block_{} {}

void RandomStream::refill() noexcept {
  uint32_t x[4] = {counter_[0], counter_[1], counter_[2], counter_[3]};
  uint32_t k0 = key_[0];
  uint32_t k1 = key_[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * x[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * x[2];
    const uint32_t y[4] = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
                           static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
    for (int i = 0; i < 4; ++i) x[i] = y[i];
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < 4; ++i) block_[i] = x[i];
  ++counter_[0];
  used_ = 0;
}

uint32_t RandomStream::next_u32() noexcept {
  if (used_ == 4) refill();
  return block_[used_++];
}

uint64_t RandomStream::next_u64() noexcept {
  const uint64_t low = next_u32();
  return low | (uint64_t{next_u32()} << 32);
}

double RandomStream::uniform() noexcept { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

double RandomStream::normal() noexcept {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

uint64_t RandomStream::below(uint64_t n) noexcept {
  // reject the incomplete last multiple of n
  const uint64_t limit = ~uint64_t{0} - (~uint64_t{0} % n + 1) % n;
  for (;;) {
    const uint64_t value = next_u64();
    if (value <= limit) return value % n;
  }
}

}  // namespace headlight
