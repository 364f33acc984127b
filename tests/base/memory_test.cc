#include "headlight/base/memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace headlight {
namespace {

TEST(AvailableMemory, IsMoreThanThisTestNeedsAndLessThanAnyMachineHas) {
  EXPECT_GT(available_memory(), int64_t{1} << 20);
  EXPECT_LT(available_memory(), int64_t{1} << 50);
}

TEST(Allocate, GivesAlignedMemoryThatCanBeWritten) {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{4096}, (std::size_t{1} << 22) + 5}) {
    std::byte* const memory = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
    std::memset(memory, 7, bytes);
    deallocate(memory, bytes);
  }
}

}  // namespace
}  // namespace headlight
