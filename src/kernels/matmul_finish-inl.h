// The epilogue of the matrix product on rows of finished sums. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_
#undef HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_
#else
#define HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>

#include "headlight/kernels/matmul.h"
#include "kernels/activation-inl.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of sums s to outputs, from (row, column) of c on.
template <class T>
struct FinishedSums {
  const T* s;
  int64_t s_row;
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
};

template <Activation f, class T, class B>
void finish_rows(const Matmul<T, B>& args, const FinishedSums<T>& sums) {
  const hn::ScalableTag<T> d;
  const T* bias = args.bias.data == nullptr ? nullptr : args.bias.data + sums.column;
  for (int64_t i = 0; i < sums.rows; ++i) {
    const T* s = sums.s + i * sums.s_row;
    const int64_t row = sums.row + i;
    const T* residual = args.residual.data == nullptr ? nullptr : args.residual[row].data + sums.column;
    T* pre = args.pre.data == nullptr ? nullptr : args.pre[row].data + sums.column;
    T* c = args.c[row].data + sums.column;
    for_each_vector(d, sums.columns, [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
      auto v = part.load(d, s + j);
      if (bias != nullptr) v = hn::Add(v, part.load(d, bias + j));
      if (pre != nullptr) part.store(d, v, pre + j);
      v = activate<f>(d, v);
      if (residual != nullptr) v = hn::Add(v, part.load(d, residual + j));
      part.store(d, v, c + j);
    });
  }
}

// Fetches what finish() will read and write. Rows are too short here for the processor to see where they go.
template <class T, class B>
void fetch_for_finish(const Matmul<T, B>& args, const FinishedSums<T>& sums) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = sums.row; i < sums.row + sums.rows; ++i) {
    for (int64_t j = sums.column; j < sums.column + sums.columns; j += kLine) {
      __builtin_prefetch(&args.c(i, j), 1);
      if (args.pre.data != nullptr) __builtin_prefetch(&args.pre(i, j), 1);
      if (args.residual.data != nullptr) hwy::Prefetch(&args.residual(i, j));
    }
  }
}

template <class T, class B>
void finish(const Matmul<T, B>& args, const FinishedSums<T>& sums) {
  switch (args.activation) {
    case Activation::kNone:
      return finish_rows<Activation::kNone>(args, sums);
    case Activation::kRelu:
      return finish_rows<Activation::kRelu>(args, sums);
    case Activation::kGelu:
      return finish_rows<Activation::kGelu>(args, sums);
    case Activation::kGeluTanh:
      return finish_rows<Activation::kGeluTanh>(args, sums);
  }
}

template <class T, class B>
bool has_epilogue(const Matmul<T, B>& args) {
  return args.bias.data != nullptr || args.residual.data != nullptr || args.pre.data != nullptr ||
         args.activation != Activation::kNone;
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
