#include "kernels/check.h"

#include <gtest/gtest.h>

#include <set>

#include "headlight/base/random.h"

namespace headlight {
namespace {

using Rows = View<const float, 2>;

std::set<const float*> elements(const Rows& v) {
  std::set<const float*> all;
  for (int64_t i = 0; i < v.size(0); ++i) {
    for (int64_t j = 0; j < v.size(1); ++j) all.insert(&v(i, j));
  }
  return all;
}

bool share_by_listing(const Rows& a, const Rows& b) {
  const std::set<const float*> of_a = elements(a);
  for (const float* p : elements(b)) {
    if (of_a.count(p) != 0) return true;
  }
  return false;
}

TEST(ShareElements, AgreesWithAListOfAllAddresses) {
  const float memory[400] = {};
  RandomStream random(1, 1, 0);
  int shared = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto any = [&] {
      const int64_t stride = static_cast<int64_t>(random.below(17)) - 8;
      return Rows(memory + 150 + random.below(60),
                  {static_cast<int64_t>(random.below(6)), static_cast<int64_t>(random.below(7))}, {stride, 1});
    };
    const Rows a = any();
    Rows b = any();
    if (random.below(2) == 0) b.strides[0] = a.strides[0];
    const bool wanted = share_by_listing(a, b);
    shared += wanted ? 1 : 0;
    ASSERT_EQ(share_elements<float>(a, b), wanted)
        << "round " << round << ": a at " << a.data - memory << " " << shape_text(a) << " stride " << a.stride(0)
        << ", b at " << b.data - memory << " " << shape_text(b) << " stride " << b.stride(0);
  }
  EXPECT_GT(shared, 2'000);
  EXPECT_LT(shared, 18'000);
}

}  // namespace
}  // namespace headlight
