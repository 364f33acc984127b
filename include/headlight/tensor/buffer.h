#pragma once
// Buffer owns memory: aligned to 64 bytes at least, zero-filled, moved but never copied by accident.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "headlight/base/memory.h"
#include "headlight/tensor/view.h"

namespace headlight {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  // `count` zero elements. Throws LogicError when count is negative or its bytes overflow, and
  // std::bad_alloc when memory runs out.
  explicit Buffer(int64_t count) : count_(count) {
    const int64_t bytes = checked_bytes("Buffer", std::array<int64_t, 1>{count}, sizeof(T));
    if (bytes == 0) return;
    data_ = reinterpret_cast<T*>(allocate(static_cast<std::size_t>(bytes)));
    std::memset(static_cast<void*>(data_), 0, static_cast<std::size_t>(bytes));
  }
  ~Buffer() { deallocate(data_, static_cast<std::size_t>(count_) * sizeof(T)); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  Buffer clone() const {
    Buffer copy(count_);
    std::copy(begin(), end(), copy.begin());
    return copy;
  }

  int64_t count() const noexcept { return count_; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + count_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + count_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

  template <int Rank>
  View<T, Rank> view(const std::array<int64_t, Rank>& sizes, int64_t offset = 0) {
    return {data_ + offset, sizes};
  }
  template <int Rank>
  View<const T, Rank> view(const std::array<int64_t, Rank>& sizes, int64_t offset = 0) const {
    return {data_ + offset, sizes};
  }

 private:
  T* data_ = nullptr;
  int64_t count_ = 0;
};

}  // namespace headlight
