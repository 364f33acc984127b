#include "headlight/kernels/embedding.h"

#include <gtest/gtest.h>

#include "kernels/reference/embedding.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

Buffer<int32_t> random_indices(RandomStream& random, int64_t rows, int64_t table_rows) {
  Buffer<int32_t> index(rows);
  for (int32_t& i : index) i = static_cast<int32_t>(random.below(static_cast<uint64_t>(table_rows)));
  return index;
}

template <class T>
void expect_reference_forward(int64_t rows, int64_t n, Layout layout, bool accumulate) {
  RandomStream random(1, 1, static_cast<uint64_t>(n));
  const Buffer<int32_t> index = random_indices(random, rows, 5);
  const Matrix<T> table = std::move(Matrix<T>(5, n, layout).randomize(random));
  Matrix<T> y(rows, n, layout);
  if (accumulate) y.randomize(random);
  Matrix<double> wanted = y.template as<double>();
  reference::embedding_forward(index.view<1>({rows}), table.template as<double>().view(), wanted.view(), accumulate);
  embedding_forward<T>(index.view<1>({rows}), table.view(), y.view(), accumulate);
  // a copy is exact, a sum is one rounding
  expect_close("y", y, wanted, static_cast<double>(std::numeric_limits<T>::epsilon()));
  y.expect_surroundings_untouched();
}

template <class T>
void expect_reference_backward(int64_t rows, int64_t n, Layout layout) {
  RandomStream random(2, 1, static_cast<uint64_t>(n));
  const Buffer<int32_t> index = random_indices(random, rows, 5);
  const Matrix<T> dy = std::move(Matrix<T>(rows, n, layout).randomize(random));
  Matrix<T> dtable(5, n, layout);
  dtable.randomize(random);
  Matrix<double> wanted = dtable.template as<double>();
  reference::embedding_backward(index.view<1>({rows}), dy.template as<double>().view(), wanted.view());
  embedding_backward<T>(index.view<1>({rows}), dy.view(), dtable.view());
  expect_close("dtable", dtable, wanted, rounding<T>());
  dtable.expect_surroundings_untouched();
}

TEST(EmbeddingForward, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (int64_t n : awkward_lengths()) {
      for (const Layout& layout : awkward_layouts()) {
        for (int64_t rows : {0, 1, 3, 70}) {
          for (bool accumulate : {false, true}) {
            expect_reference_forward<float>(rows, n, layout, accumulate);
            expect_reference_forward<double>(rows, n, layout, accumulate);
          }
        }
      }
    }
  });
}

TEST(EmbeddingBackward, EqualsTheReferenceAtEveryLengthAndLayoutOnEveryInstructionSet) {
  on_every_isa([] {
    for (int64_t n : awkward_lengths()) {
      for (const Layout& layout : awkward_layouts()) {
        for (int64_t rows : {0, 1, 3, 70}) {
          expect_reference_backward<float>(rows, n, layout);
          expect_reference_backward<double>(rows, n, layout);
        }
      }
    }
  });
}

TEST(EmbeddingBackward, IsTheDerivativeOfTheForward) {
  RandomStream random(3, 1, 0);
  const Buffer<int32_t> index = random_indices(random, 6, 4);
  Matrix<double> table(4, 5);
  Matrix<double> dy(6, 5);
  Matrix<double> dtable(4, 5);
  table.randomize(random);
  dy.randomize(random);
  dtable.fill(0);
  embedding_backward<double>(index.view<1>({6}), dy.view(), dtable.view());
  const auto loss = [&] {
    Matrix<double> y(6, 5);
    embedding_forward<double>(index.view<1>({6}), table.view(), y.view());
    double sum = 0;
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 5; ++j) sum += y(i, j) * dy(i, j);
    }
    return sum;
  };
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      EXPECT_NEAR(dtable(i, j), central_difference(table(i, j), loss), 1e-8) << i << "," << j;
    }
  }
}

TEST(EmbeddingBackward, GivesTheSameBitsWithAnyNumberOfThreads) {
  constexpr int64_t kRows = 300;
  constexpr int64_t kWidth = 200;
  RandomStream random(4, 1, 0);
  const Buffer<int32_t> index = random_indices(random, kRows, 7);
  Matrix<float> dy(kRows, kWidth);
  dy.randomize(random);
  std::vector<Matrix<float>> results;
  with_every_number_of_threads([&] {
    Matrix<float> dtable(7, kWidth);
    dtable.fill(0);
    embedding_backward<float>(index.view<1>({kRows}), dy.view(), dtable.view());
    results.push_back(std::move(dtable));
    expect_same_bits("dtable", results.back(), results.front());
  });
}

TEST(Embedding, RefusesAnIndexOutsideTheTableBeforeWriting) {
  Buffer<int32_t> index(2);
  Matrix<float> table(3, 4);
  Matrix<float> y(2, 4);
  for (int32_t bad : {-1, 3}) {
    index[1] = bad;
    y.fill(7);
    EXPECT_THROW(embedding_forward<float>(index.view<1>({2}), table.view(), y.view()), LogicError);
    EXPECT_EQ(y(0, 0), 7);
    table.fill(5);
    EXPECT_THROW(embedding_backward<float>(index.view<1>({2}), y.view(), table.view()), LogicError);
    EXPECT_EQ(table(0, 0), 5);
  }
}

TEST(Embedding, RefusesSizesThatDiffer) {
  Buffer<int32_t> index(2);
  Matrix<float> table(3, 4);
  Matrix<float> narrow(2, 3);
  Matrix<float> tall(3, 4);
  EXPECT_THROW(embedding_forward<float>(index.view<1>({2}), table.view(), narrow.view()), LogicError);
  EXPECT_THROW(embedding_forward<float>(index.view<1>({2}), table.view(), tall.view()), LogicError);
  EXPECT_THROW(embedding_forward<float>(index.view<1>({2}), table.view(), tall.view().swap(0, 1)), LogicError);
  EXPECT_THROW(embedding_forward<float>(index.view<1>({2}), table.view(), table.view().slice(0, 0, 2)), LogicError);
  EXPECT_THROW(embedding_backward<float>(index.view<1>({2}), narrow.view(), table.view()), LogicError);
  EXPECT_THROW(embedding_backward<float>(index.view<1>({2}), table.view().slice(0, 1, 3), table.view()), LogicError);
}

}  // namespace
}  // namespace headlight
