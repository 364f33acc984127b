#pragma once
// Memory for numbers.

#include <cstddef>
#include <cstdint>

namespace headlight {

// `bytes` of memory, aligned to 64 bytes; from 4 MiB on aligned to 2 MiB, and in pages of that size where the
// system gives them, so that reading it does not wait for page tables. Throws std::bad_alloc when memory runs out.
std::byte* allocate(std::size_t bytes);

// Gives back what allocate(bytes) gave; null is nothing.
void deallocate(void* memory, std::size_t bytes) noexcept;

// Bytes that this process could still allocate without others being pushed out: what the machine has free, or what the
// process's control group leaves when that is less. 0 when the system does not tell.
int64_t available_memory();

}  // namespace headlight
