#include "headlight/kernels/elementwise.h"

#include <gtest/gtest.h>

#include "headlight/kernels/isa.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

template <class T>
void expect_sum(int64_t rows, int64_t n, Layout layout) {
  RandomStream random(19, 1, static_cast<uint64_t>(n));
  Matrix<T> x(rows, n, layout);
  Matrix<T> y(rows, n);
  Matrix<T> z(rows, n, layout);
  x.randomize(random);
  y.randomize(random);
  add<T>(x.view(), y.view(), z.view());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; ++j) EXPECT_EQ(z(i, j), x(i, j) + y(i, j)) << "element " << i << "," << j;
  }
  z.expect_surroundings_untouched();
  add<T>(x.view(), y.view(), x.view());
  expect_same_bits("x", x, z);
}

TEST(Add, SumsEveryElementAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (int64_t n : awkward_lengths()) {
      for (const Layout& layout : awkward_layouts()) {
        expect_sum<float>(3, n, layout);
        expect_sum<double>(70, n, layout);
      }
    }
  });
}

TEST(Add, TakesARepeatedRow) {
  Matrix<float> row(1, 20);
  Matrix<float> z(3, 20);
  row.fill(1);
  z.fill(2);
  View<const float, 2> rows = row.view();
  rows.sizes[0] = 3;
  rows.strides[0] = 0;
  add<float>(z.view(), rows, z.view());
  EXPECT_EQ(z(2, 19), 3);
}

TEST(Add, RefusesSizesThatDifferAndOutputsThatOverlap) {
  Matrix<float> x(2, 3);
  Matrix<float> wide(2, 4);
  EXPECT_THROW(add<float>(x.view(), wide.view(), x.view()), LogicError);
  EXPECT_THROW(add<float>(wide.view(), x.view(), x.view()), LogicError);
  EXPECT_THROW(add<float>(x.view(), wide.view().slice(1, 1, 4), wide.view().slice(1, 0, 3)), LogicError);
}

TEST(ForceIsa, IsWhatThenRuns) {
  for (const std::string& isa : supported_isas()) {
    force_isa(isa);
    EXPECT_EQ(active_isa(), isa);
  }
  force_isa("");
}

TEST(ForceIsa, NamesTheChoicesWhenTheNameIsUnknown) {
  try {
    force_isa("mmx");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    for (const std::string& isa : supported_isas()) {
      EXPECT_NE(std::string(error.what()).find(isa), std::string::npos) << error.what();
    }
  }
  force_isa("");
}

}  // namespace
}  // namespace headlight
