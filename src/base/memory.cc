#include "headlight/base/memory.h"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace headlight {
namespace {

constexpr std::size_t kLargePage = std::size_t{1} << 21;

bool is_large(std::size_t bytes) { return bytes >= 2 * kLargePage; }

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

}  // namespace headlight
