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

template <class T, class B>
class FewRowsTask {
 public:
  // columns of a task at most, fewer when they are packed
  static constexpr int64_t kColumns = 4096 / static_cast<int64_t>(sizeof(B));
  static constexpr int64_t kPackedColumns = 64;
  // elements of a transposed b's column that are fetched before they are needed
  static constexpr int64_t kAhead = 128 / static_cast<int64_t>(sizeof(B));
  // what is on its way from memory while a row is summed: its latency times a core's share of the bandwidth, and more
  static constexpr int64_t kBytesAhead = 8192;
  static constexpr int64_t kMemory = 2 * kFewRows * kColumns + SumOrder::kLongest * kPackedColumns;

  FewRowsTask(const Matmul<T, B>& args, int64_t index, T* memory)
      : args_(args),
        rows_(args.c.size(0)),
        column_(index * columns_per_task(args)),
        columns_(std::min(columns_per_task(args), args.c.size(1) - column_)),
        b_(args.b.slice(1, column_, column_ + columns_)),
        sums_(memory),
        totals_(sums_ + kFewRows * kColumns),
        packed_(totals_ + kFewRows * kColumns),
        rows_ahead_(std::max<int64_t>(8, quotient_up(kBytesAhead, columns_ * static_cast<int64_t>(sizeof(B))))) {}

  static int64_t tasks(const Matmul<T, B>& args) { return quotient_up(args.c.size(1), columns_per_task(args)); }

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
  // a transposed b is turned square by square in registers
  static bool by_squares(const Matmul<T, B>& args) {
    return args.b.stride(1) != 1 && args.b.stride(0) == 1 && args.b.size(1) % kLanes<T> == 0;
  }
  // in whole lines, so that narrow products, too, are work for several threads
  static int64_t columns_per_task(const Matmul<T, B>& args) {
    constexpr int64_t kTasks = 4, kLine = HWY_MAX(64 / static_cast<int64_t>(sizeof(B)), kLanes<T>);
    const int64_t most = args.b.stride(1) == 1 || by_squares(args) ? kColumns : kPackedColumns;
    return std::min(most, quotient_up(quotient_up(args.c.size(1), kTasks), kLine) * kLine);
  }

  // rows [i, end) of b
  void add_products_of(int64_t i, int64_t end) {
    if (b_.stride(1) == 1) return add_products_of_rows(i, end, b_.data + i * b_.stride(0), b_.stride(0));
    if (by_squares(args_)) {
      for (; i + kLanes<T> <= end; i += kLanes<T>) add_products_of_squares(i);
      if (i == end) return;
    }
    const int64_t row = quotient_up(columns_, kLanes<T>) * kLanes<T>;
    pack_panel<T>(b_.slice(0, i, end), row, packed_);
    add_products_of_rows(i, end, packed_, row);
  }

  // Rows [i, i + lanes) of a transposed b, which are never stored.
  void add_products_of_squares(int64_t i) {
    const TileTag<T> d;
    for (int64_t j = 0; j < columns_; j += kLanes<T>) {
      hn::Vec<TileTag<T>> b[kLanes<T>];
      transpose_square(d, b_.data + i + j * b_.stride(1), b_.stride(1), kAhead,
                       [&](int64_t row, auto v) HEADLIGHT_LOOP_BODY { b[row] = v; });
      for (int64_t r = 0; r < rows_; ++r) {
        T* sums = sums_ + r * kColumns + j;
        auto sum = hn::Load(d, sums);
        for (int64_t s = 0; s < kLanes<T>; ++s) sum = hn::MulAdd(hn::Set(d, args_.a(r, i + s)), b[s], sum);
        hn::Store(sum, d, sums);
      }
    }
  }

  // `b` is row i, `b_row` apart from the next
  template <class S>
  void add_products_of_rows(int64_t i, int64_t end, const S* b, int64_t b_row) {
    constexpr int kSteps = 8;
    for (; i + kSteps <= end; i += kSteps, b += kSteps * b_row) add_products_of_steps<kSteps>(i, b, b_row);
    for (; i < end; ++i, b += b_row) add_products_of_steps<1>(i, b, b_row);
  }

  // sums(r, j) += a(r, i) b(i, j) + a(r, i + 1) b(i + 1, j) + ..., one after the other
  template <int kSteps, class S>
  void add_products_of_steps(int64_t i, const S* b, int64_t b_row) {
    const TileTag<T> d;
    const int64_t next = rows_ahead_ * b_row;
    for (int64_t r = 0; r < rows_; ++r) {
      hn::Vec<TileTag<T>> a[kSteps];
      for (int s = 0; s < kSteps; ++s) a[s] = hn::Set(d, args_.a(r, i + s));
      T* sums = sums_ + r * kColumns;
      for_each_vector(d, columns_, [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
        auto sum = hn::Load(d, sums + j);
        for (int s = 0; s < kSteps; ++s) {
          // the other rows find b in the cache
          if (r == 0 && (kLanes<T> * sizeof(S) >= 64 || j * sizeof(S) % 64 == 0))
            hwy::Prefetch(b + s * b_row + j + next);
          sum = hn::MulAdd(a[s], load_part(d, part, b + s * b_row + j), sum);
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

  const Matmul<T, B>& args_;
  int64_t rows_;
  int64_t column_;
  int64_t columns_;
  View<const B, 2> b_;
  T* sums_;
  T* totals_;
  T* packed_;
  int64_t rows_ahead_;  // from the row in hand to the one that is fetched
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
