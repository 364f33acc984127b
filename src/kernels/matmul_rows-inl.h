// The matrix product of few rows, as in generating text: b is read once and nothing else counts, so that it is
// read in long runs along its rows. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_MATMUL_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_MATMUL_ROWS_INL_H_
#undef HEADLIGHT_KERNELS_MATMUL_ROWS_INL_H_
#else
#define HEADLIGHT_KERNELS_MATMUL_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/matmul_finish-inl.h"
#include "kernels/matmul_pack-inl.h"
#include "kernels/matmul_plan.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// More rows are done faster by tiles.
constexpr int64_t kFewRows = 8;

template <class T>
class FewRowsTask {
 public:
  // columns of a task, fewer when they are packed
  static constexpr int64_t kColumns = 256;
  static constexpr int64_t kPackedColumns = 64;
  static constexpr int64_t kMemory = 2 * kFewRows * kColumns + SumOrder::kLongest * kPackedColumns;

  FewRowsTask(const Matmul<T>& args, int64_t index, T* memory)
      : args_(args),
        rows_(args.c.size(0)),
        column_(index * columns_per_task(args)),
        columns_(std::min(columns_per_task(args), args.c.size(1) - column_)),
        b_(args.b.slice(1, column_, column_ + columns_)),
        sums_(memory),
        totals_(sums_ + kFewRows * kColumns),
        packed_(totals_ + kFewRows * kColumns) {}

  static int64_t tasks(const Matmul<T>& args) { return quotient_up(args.c.size(1), columns_per_task(args)); }

  void run() {
    const SumOrder order(args_.a.size(1));
    for (int64_t block = 0; block < order.blocks; ++block) {
      std::fill_n(sums_, rows_ * kColumns, T(0));
      add_products_of(order.begin(block), order.end(block));
      add_to_totals(block == 0);
    }
    finish<T>(args_, {totals_, kColumns, 0, rows_, column_, columns_});
  }

 private:
  static int64_t columns_per_task(const Matmul<T>& args) { return args.b.stride(1) == 1 ? kColumns : kPackedColumns; }

  // rows [i, end) of b
  void add_products_of(int64_t i, int64_t end) {
    const T* b = b_.data + i * b_.stride(0);
    int64_t b_row = b_.stride(0);
    if (b_.stride(1) != 1) {
      b_row = quotient_up(columns_, kLanes<T>) * kLanes<T>;
      pack_panel<T>(b_.slice(0, i, end), b_row, packed_);
      b = packed_;
    }
    constexpr int kSteps = 8;
    for (; i + kSteps <= end; i += kSteps, b += kSteps * b_row) add_products_of_steps<kSteps>(i, b, b_row);
    for (; i < end; ++i, b += b_row) add_products_of_steps<1>(i, b, b_row);
  }

  // sums(r, j) += a(r, i) b(i, j) + a(r, i + 1) b(i + 1, j) + ..., one after the other
  template <int kSteps>
  void add_products_of_steps(int64_t i, const T* b, int64_t b_row) {
    const TileTag<T> d;
    const int64_t next = kSteps * b_row;
    for (int64_t r = 0; r < rows_; ++r) {
      hn::Vec<TileTag<T>> a[kSteps];
      for (int s = 0; s < kSteps; ++s) a[s] = hn::Set(d, args_.a(r, i + s));
      T* sums = sums_ + r * kColumns;
      for_each_vector(d, columns_, [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
        auto sum = hn::Load(d, sums + j);
        for (int s = 0; s < kSteps; ++s) {
          // the other rows find b in the cache
          if (r == 0) hwy::Prefetch(b + s * b_row + j + next);
          sum = hn::MulAdd(a[s], part.load(d, b + s * b_row + j), sum);
        }
        hn::Store(sum, d, sums + j);
      });
    }
  }

  // totals = c or nothing + the first block's sums, + the next, ...
  void add_to_totals(bool first) {
    const TileTag<T> d;
    for (int64_t r = 0; r < rows_; ++r) {
      const T* c = args_.c[r].data + column_;
      T* totals = totals_ + r * kColumns;
      for_each_vector(d, columns_, [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
        auto sum = hn::Load(d, sums_ + r * kColumns + j);
        if (!first) sum = hn::Add(hn::Load(d, totals + j), sum);
        if (first && args_.accumulate) sum = hn::Add(part.load(d, c + j), sum);
        hn::Store(sum, d, totals + j);
      });
    }
  }

  const Matmul<T>& args_;
  int64_t rows_;
  int64_t column_;
  int64_t columns_;
  View<const T, 2> b_;
  T* sums_;
  T* totals_;
  T* packed_;
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
