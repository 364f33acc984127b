#include "headlight/tensor/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <type_traits>
#include <vector>

#include "headlight/tensor/buffer.h"

namespace headlight {
namespace {

// 0, 1, 2, ... so that a value tells where it lies
Buffer<int> counted(int64_t count) {
  Buffer<int> buffer(count);
  std::iota(buffer.begin(), buffer.end(), 0);
  return buffer;
}

TEST(View, IsPackedRowMajorFromItsSizes) {
  Buffer<int> buffer = counted(24);
  const View<int, 3> view = buffer.view<3>({2, 3, 4});
  EXPECT_EQ(view.strides, (std::array<int64_t, 3>{12, 4, 1}));
  EXPECT_EQ(view.count(), 24);
  EXPECT_TRUE(view.is_packed());
  EXPECT_EQ(view(1, 2, 3), 23);
  EXPECT_EQ(view(0, 1, 0), 4);
  view(1, 0, 0) = -1;
  EXPECT_EQ(buffer[12], -1);
}

TEST(View, GivesMembersSlicesAndTransposesOfTheSameElements) {
  Buffer<int> buffer = counted(24);
  const View<int, 3> view = buffer.view<3>({2, 3, 4});
  EXPECT_EQ(view[1](2, 3), view(1, 2, 3));
  EXPECT_EQ(view[1][2](3), view(1, 2, 3));

  const View<int, 3> middle = view.slice(1, 1, 3);
  EXPECT_EQ(middle.sizes, (std::array<int64_t, 3>{2, 2, 4}));
  EXPECT_EQ(middle(1, 0, 2), view(1, 1, 2));
  EXPECT_FALSE(middle.is_packed());
  EXPECT_TRUE(view.slice(1, 2, 2).empty());

  const View<int, 3> turned = view.swap(0, 2);
  EXPECT_EQ(turned.sizes, (std::array<int64_t, 3>{4, 3, 2}));
  EXPECT_EQ(turned(3, 2, 1), view(1, 2, 3));
  EXPECT_FALSE(turned.is_packed());
}

TEST(View, SplitsADimensionInTwo) {
  Buffer<int> buffer = counted(24);
  const View<int, 2> view = buffer.view<2>({2, 12});
  const View<int, 3> heads = view.split(1, 3);
  EXPECT_EQ(heads.sizes, (std::array<int64_t, 3>{2, 3, 4}));
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 12; ++i) EXPECT_EQ(heads(row, i / 4, i % 4), view(row, i)) << row << ", " << i;
  }
  EXPECT_EQ(view.split(0, 2).sizes, (std::array<int64_t, 3>{2, 1, 12}));
  EXPECT_TRUE(view.slice(1, 0, 0).split(1, 0).empty());
}

TEST(View, TakesStridesOfZeroAndBelow) {
  Buffer<int> buffer = counted(4);
  const View<int, 2> broadcast(buffer.data(), {3, 4}, {0, 1});
  EXPECT_EQ(broadcast(2, 1), 1);
  const View<int, 1> reversed(buffer.data() + 3, {4}, {-1});
  EXPECT_EQ(reversed(0), 3);
  EXPECT_EQ(reversed(3), 0);
  EXPECT_FALSE(broadcast.is_packed());
  EXPECT_FALSE(reversed.is_packed());
}

TEST(View, IgnoresTheStrideOfASizeOfOne) {
  Buffer<int> buffer = counted(4);
  EXPECT_TRUE((View<int, 2>(buffer.data(), {1, 4}, {99, 1}).is_packed()));
}

TEST(View, OfConstantElementsComesFromMutableOnesAndNeverBack) {
  EXPECT_TRUE((std::is_convertible_v<View<float, 2>, View<const float, 2>>));
  EXPECT_FALSE((std::is_convertible_v<View<const float, 2>, View<float, 2>>));
  EXPECT_FALSE((std::is_convertible_v<View<float, 2>, View<const double, 2>>));
  EXPECT_FALSE((std::is_convertible_v<View<float, 2>, View<float, 3>>));
}

TEST(ShapeText, ListsTheSizes) {
  Buffer<int> buffer(24);
  EXPECT_EQ(shape_text(buffer.view<3>({2, 3, 4})), "(2,3,4)");
  EXPECT_EQ(shape_text(buffer.view<1>({0})), "(0)");
}

TEST(CheckedBytes, RefusesNegativeSizesAndOverflow) {
  EXPECT_EQ(checked_bytes("test", std::array<int64_t, 2>{3, 5}, 4), 60);
  EXPECT_EQ(checked_bytes("test", std::array<int64_t, 2>{0, 5}, 4), 0);
  EXPECT_THROW(checked_bytes("test", std::array<int64_t, 1>{-1}, 4), LogicError);
  EXPECT_THROW(checked_bytes("test", std::array<int64_t, 2>{int64_t{1} << 31, int64_t{1} << 31}, 4), LogicError);
}

TEST(Buffer, IsZeroAndAlignedAndMovesButDoesNotCopy) {
  Buffer<double> buffer(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
  for (double value : buffer) EXPECT_EQ(value, 0.0);
  buffer[7] = 7;
  const Buffer<double> copy = buffer.clone();
  Buffer<double> moved = std::move(buffer);
  EXPECT_EQ(moved[7], 7);
  EXPECT_EQ(copy[7], 7);
  EXPECT_NE(copy.data(), moved.data());
  EXPECT_FALSE(std::is_copy_constructible_v<Buffer<double>>);
  EXPECT_EQ(Buffer<double>(0).data(), nullptr);
  EXPECT_THROW(Buffer<double>(-1), LogicError);
  EXPECT_THROW(Buffer<double>(int64_t{1} << 61), LogicError);
}

}  // namespace
}  // namespace headlight
