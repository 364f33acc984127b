#include "headlight/base/memory.h"

#include <algorithm>
#include <fstream>
#include <new>
#include <optional>
#include <string>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace headlight {
namespace {

constexpr std::size_t kLargePage = std::size_t{1} << 21;

bool is_large(std::size_t bytes) { return bytes >= 2 * kLargePage; }

// The first number of a file, after `key` when one is given; absent when there is none.
std::optional<int64_t> number_in(const char* path, const std::string& key = "") {
  std::ifstream file(path);
  for (std::string word; !key.empty() && file >> word && word != key;) {
  }
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::align_val_t alignment_of(std::size_t bytes) { return std::align_val_t{is_large(bytes) ? kLargePage : 64}; }

}  // namespace

std::byte* allocate(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment_of(bytes));
#ifdef __linux__
  // only advice: without it the pages are small
  if (is_large(bytes)) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(memory);
}

void deallocate(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment_of(bytes)); }

int64_t available_memory() {
  constexpr int64_t kKibibyte = 1024;
  int64_t bytes = number_in("/proc/meminfo", "MemAvailable:").value_or(0) * kKibibyte;
  // "max" where the group has no limit
  const std::optional<int64_t> limit = number_in("/sys/fs/cgroup/memory.max");
  const std::optional<int64_t> used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) bytes = std::min(bytes, std::max<int64_t>(0, *limit - *used));
  return bytes;
}

}  // namespace headlight
