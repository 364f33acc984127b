#include "headlight/tensor/dtype.h"

#include <gtest/gtest.h>

namespace headlight {
namespace {

TEST(DTypeInfo, StandsInTheOrderOfItsEnumeration) {
  for (const DTypeInfo& info : kDTypes) EXPECT_EQ(dtype_info(info.dtype).name, info.name);
}

}  // namespace
}  // namespace headlight
