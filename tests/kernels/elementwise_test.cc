#include "headlight/kernels/elementwise.h"

#include <gtest/gtest.h>

#include "headlight/kernels/isa.h"
#include "headlight/tensor/buffer.h"

namespace headlight {
namespace {

template <class T>
void expect_sum(int64_t rows, int64_t n, int64_t misaligned) {
  Buffer<T> x(rows * n + misaligned);
  Buffer<T> y(rows * n);
  Buffer<T> z(rows * n);
  for (int64_t i = 0; i < x.count(); ++i) x[i] = static_cast<T>(i) * T(0.25);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = static_cast<T>(1000 - i);
  const std::array<int64_t, 2> sizes{rows, n};
  add<T>(x.template view<2>(sizes, misaligned), y.template view<2>(sizes), z.template view<2>(sizes));
  for (int64_t i = 0; i < z.count(); ++i) EXPECT_EQ(z[i], x[i + misaligned] + y[i]) << "element " << i;
}

TEST(Add, SumsEveryElementAtEveryLengthAndAlignmentOnEveryInstructionSet) {
  for (const std::string& isa : supported_isas()) {
    force_isa(isa);
    EXPECT_EQ(active_isa(), isa);
    for (int64_t n = 0; n <= 33; ++n) {
      for (int64_t misaligned = 0; misaligned < 3; ++misaligned) {
        expect_sum<float>(3, n, misaligned);
        expect_sum<double>(70, n, misaligned);
      }
    }
  }
  force_isa("");
}

TEST(Add, RefusesSizesThatDiffer) {
  Buffer<float> x(6);
  EXPECT_THROW(add<float>(x.view<2>({2, 3}), x.view<2>({3, 2}), x.view<2>({2, 3})), LogicError);
}

TEST(ForceIsa, NamesTheChoicesWhenTheNameIsUnknown) {
  try {
    force_isa("mmx");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("portable"), std::string::npos) << error.what();
  }
  force_isa("");
}

}  // namespace
}  // namespace headlight
