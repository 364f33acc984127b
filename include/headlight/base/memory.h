#pragma once
// Memory for numbers.

#include <cstddef>

namespace headlight {

// `bytes` of memory, aligned to 64 bytes; from 4 MiB on aligned to 2 MiB, and in pages of that size where the
// system gives them, so that reading it does not wait for page tables. Throws std::bad_alloc when memory runs out.
std::byte* allocate(std::size_t bytes);

// Gives back what allocate(bytes) gave; null is nothing.
void deallocate(void* memory, std::size_t bytes) noexcept;

}  // namespace headlight
