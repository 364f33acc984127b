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
#include <type_traits>

#include "kernels/matmul_finish-inl.h"
#include "kernels/matmul_pack-inl.h"
#include "kernels/matmul_plan.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// More rows are done faster by tiles.
constexpr int64_t kFewRows = 8;

// Tasks add up one block of k in some columns each, in memory of their own; then the blocks' sums are added in order.
// How k and the columns are shared out changes no chain of additions, so that it may depend on the threads.
template <class T, class B>
class FewRows {
 public:
  FewRows(const Matmul<T, B>& args, int threads)
      : args_(args), order_(args.a.size(1)), rows_(args.c.size(0)), columns_(args.c.size(1)) {
    // a block of whole rows is one run of memory, the fastest there is to read
    if (lies_in_rows()) {
      const int64_t widest = std::max(kWidest, lines(kSums / rows_));
      part_ = std::min(widest, lines(quotient_up(columns_, quotient_up(threads, order_.blocks))));
    } else {
      part_ = std::min(kStripColumns, lines(quotient_up(columns_, 2 * threads)));
    }
    parts_ = quotient_up(columns_, part_);
    row_ = lines(columns_);
  }

  // in elements: the sums, and what each worker packs
  int64_t memory(int threads) const { return sums_size() + (lies_in_rows() ? 0 : threads * kPacked); }

  // columns of a transposed b are runs of memory themselves, all blocks of which are one task
  int64_t tasks() const { return parts_ * (lies_in_rows() ? order_.blocks : 1); }
  void run(int64_t task, int worker, T* memory) const {
    if (lies_in_rows()) {
      const int64_t column = task / order_.blocks * part_;
      return run_block(task % order_.blocks, column, columns_from(column, part_), worker, memory);
    }
    const int64_t begin = task * part_, end = begin + columns_from(begin, part_);
    const int64_t strip = lies_in_columns() ? kLanes<T> : kPackedColumns;
    for (int64_t column = begin; column < end; column += strip) {
      for (int64_t block = 0; block < order_.blocks; ++block) {
        run_block(block, column, std::min(strip, end - column), worker, memory);
      }
    }
    finish_columns(begin, end - begin, memory);
  }

  // After all tasks: what those that did a block alone have left. Too little to share out: a row of sums a block.
  void finish(T* memory) const {
    for (int64_t column = 0; lies_in_rows() && column < columns_; column += part_) {
      finish_columns(column, columns_from(column, part_), memory);
    }
  }

 private:
  void finish_columns(int64_t column, int64_t columns, T* memory) const {
    const TileTag<T> d;
    for (int64_t r = 0; r < rows_; ++r) {
      T* totals = memory + r * row_ + column;
      const T* c = args_.c[r].data + column;
      for_each_vector(d, columns, [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
        auto sum = hn::LoadU(d, totals + j);
        if (args_.accumulate) sum = hn::Add(part.load(d, c + j), sum);
        for (int64_t block = 1; block < order_.blocks; ++block) {
          sum = hn::Add(sum, hn::LoadU(d, totals + block * rows_ * row_ + j));
        }
        hn::StoreU(sum, d, totals + j);
      });
    }
    headlight::HWY_NAMESPACE::finish<T>(args_, {memory + column, row_, 0, rows_, column, columns});
  }

  static constexpr int64_t kWidest = 768;  // columns: 8 rows of b, 8 more on their way and the sums stay in the cache
  static constexpr int64_t kSums = 4096;   // fewer rows may be wider, as long as their sums stay there
  static constexpr int64_t kInOrder = 2;
  static constexpr int64_t kStripColumns = 1024;
  static constexpr int64_t kPackedColumns = 64;
  static constexpr int64_t kPacked = SumOrder::kLongest * kPackedColumns;
  // what is on its way from memory while a row is summed: its latency times a core's share of the bandwidth, and more
  static constexpr int64_t kBytesAhead = 4096;

  struct Work {
    int64_t begin, end;  // rows of b
    View<const B, 2> b;  // the columns
    T* sums;             // rows `row_` apart
    T* packed;
  };

  // elements of a line of memory, and at least of a vector
  template <class S>
  static constexpr int64_t kLine = HWY_MAX(64 / static_cast<int64_t>(sizeof(S)), kLanes<T>);
  // rounded up to whole vectors and lines
  static int64_t lines(int64_t columns) { return quotient_up(columns, kLine<B>) * kLine<B>; }
  int64_t sums_size() const { return order_.blocks * rows_ * row_; }
  int64_t columns_from(int64_t column, int64_t most) const { return std::min(most, columns_ - column); }
  bool lies_in_rows() const { return args_.b.stride(1) == 1; }
  bool lies_in_columns() const { return !lies_in_rows() && args_.b.stride(0) == 1; }

  void run_block(int64_t block, int64_t column, int64_t columns, int worker, T* memory) const {
    const Work work{order_.begin(block), order_.end(block), args_.b.slice(1, column, column + columns),
                    memory + block * rows_ * row_ + column, memory + sums_size() + worker * kPacked};
    for (int64_t r = 0; r < rows_; ++r) std::fill_n(work.sums + r * row_, in_vectors<T>(columns), T(0));
    add_products(work);
  }

  void add_products(const Work& work) const {
    int64_t i = work.begin;
    if (lies_in_rows()) {
      const View<const B, 2> b = work.b.slice(0, i, work.end);
      // in the order in which they lie: but for many rows of sums, which would be read and written for each row of b
      return rows_ <= kInOrder ? add_products_of_rows<1>(work, i, b.data, b.stride(0))
                               : add_products_of_rows<8>(work, i, b.data, b.stride(0));
    }
    // a strip of a transposed b is turned square by square in registers
    if (lies_in_columns() && work.b.size(1) == kLanes<T>) {
      if constexpr (kHasPairs) {
        for (; pairs_lie_together() && i + 2 * kLanes<T> <= work.end; i += 2 * kLanes<T>)
          add_products_of_pairs(work, i);
      }
      for (; i + kLanes<T> <= work.end; i += kLanes<T>) add_products_of_square(work, i);
      if (i == work.end) return;
    }
    const int64_t width = in_vectors<T>(work.b.size(1));
    pack_panel<T>(work.b.slice(0, i, work.end), width, work.packed);
    add_products_of_rows<8>(work, i, work.packed, width);
  }

  // What to fetch at row i of a strip of columns of k elements, `column` apart: as much of the next strip, in the order
  // in which it lies where that is one run.
  static Ahead ahead_of_strip(int64_t i, int64_t column, int64_t k) {
    const int64_t next = kLanes<T> * column;
    return column == k ? Ahead{next + (kLanes<T> - 1) * i, kLanes<T>} : Ahead{next, column};
  }

  // Rows [i, i + lanes) of a strip, which are never stored.
  void add_products_of_square(const Work& work, int64_t i) const {
    const TileTag<T> d;
    hn::Vec<TileTag<T>> b[kLanes<T>];
    transpose_square(d, work.b.data + i, work.b.stride(1), ahead_of_strip(i, work.b.stride(1), work.b.size(0)),
                     [&](int64_t row, auto v) HEADLIGHT_LOOP_BODY { b[row] = v; });
    for (int64_t r = 0; r < rows_; ++r) {
      auto sum = hn::LoadU(d, work.sums + r * row_);
      for (int64_t s = 0; s < kLanes<T>; ++s) sum = hn::MulAdd(hn::Set(d, args_.a(r, i + s)), b[s], sum);
      hn::StoreU(sum, d, work.sums + r * row_);
    }
  }

  // The same for twice as many rows of BFloat16: two of a column are turned as one of 32 bits.
  static constexpr bool kHasPairs = std::is_same_v<B, BFloat16> && kLanes<T> > 1;
  bool pairs_lie_together() const { return args_.b.stride(1) % 2 == 0; }
  void add_products_of_pairs(const Work& work, int64_t i) const {
    const TileTag<T> d;
    hn::Vec<TileTag<T>> b[kLanes<T>];
    transpose_square(d, reinterpret_cast<const T*>(work.b.data + i), work.b.stride(1) / 2,
                     ahead_of_strip(i / 2, work.b.stride(1) / 2, work.b.size(0) / 2),
                     [&](int64_t row, auto v) HEADLIGHT_LOOP_BODY { b[row] = v; });
    for (int64_t r = 0; r < rows_; ++r) {
      auto sum = hn::LoadU(d, work.sums + r * row_);
      for (int64_t s = 0; s < kLanes<T>; ++s) {
        sum = hn::MulAdd(hn::Set(d, args_.a(r, i + 2 * s)), first_of_pairs(d, b[s]), sum);
        sum = hn::MulAdd(hn::Set(d, args_.a(r, i + 2 * s + 1)), second_of_pairs(d, b[s]), sum);
      }
      hn::StoreU(sum, d, work.sums + r * row_);
    }
  }

  // Rows [i, end of the block), kSteps at once; `b` is row i, `b_row` apart from the next.
  template <int kSteps, class S>
  void add_products_of_rows(const Work& work, int64_t i, const S* b, int64_t b_row) const {
    const int64_t columns = work.b.size(1);
    const int64_t ahead = std::max<int64_t>(kSteps, quotient_up(kBytesAhead, columns * int64_t{sizeof(S)})) * b_row;
    for (; i + kSteps <= work.end; i += kSteps, b += kSteps * b_row) {
      add_products_of_steps<kSteps>(work, i, columns, b, b_row, ahead);
    }
    for (; i < work.end; ++i, b += b_row) add_products_of_steps<1>(work, i, columns, b, b_row, ahead);
  }

  // sums(r, j) += a(r, i) b(i, j) + a(r, i + 1) b(i + 1, j) + ..., one after the other
  template <int kSteps, class S>
  HWY_INLINE void add_products_of_steps(const Work& work, int64_t i, int64_t columns, const S* b, int64_t b_row,
                                        int64_t ahead) const {
    const TileTag<T> d;
    for (int64_t r = 0; r < rows_; ++r) {
      hn::Vec<TileTag<T>> a[kSteps];
      for (int s = 0; s < kSteps; ++s) a[s] = hn::Set(d, args_.a(r, i + s));
      T* sums = work.sums + r * row_;
      const auto add = [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
        auto sum = hn::LoadU(d, sums + j);
        for (int s = 0; s < kSteps; ++s) sum = hn::MulAdd(a[s], load_part(d, part, b + s * b_row + j), sum);
        hn::StoreU(sum, d, sums + j);
      };
      // by lines of b; after the first row of a they are in the cache
      int64_t j = 0;
      for (; j + kLine<S> <= columns; j += kLine<S>) {
        for (int s = 0; r == 0 && s < kSteps; ++s) hwy::Prefetch(b + s * b_row + j + ahead);
        for (int64_t v = 0; v < kLine<S>; v += kLanes<T>) add(Whole(), j + v);
      }
      if (j < columns) {
        for_each_vector(d, columns - j, [&](auto part, int64_t v) HEADLIGHT_LOOP_BODY { add(part, j + v); });
      }
    }
  }

  const Matmul<T, B>& args_;
  SumOrder order_;
  int64_t rows_;
  int64_t columns_;
  int64_t part_;  // columns of a task
  int64_t parts_;
  int64_t row_;  // from one row of sums to the next
};

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
