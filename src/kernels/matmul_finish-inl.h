// The epilogue of the matrix product on rows of finished sums. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_
#undef HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_
#else
#define HEADLIGHT_KERNELS_MATMUL_FINISH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "headlight/kernels/matmul.h"
#include "kernels/activation-inl.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The epilogue of one row: s are the sums.
template <Activation f, class T>
void finish_row(const Matmul<T>& args, const T* s, int64_t row, int64_t column, int64_t columns) {
  const hn::ScalableTag<T> d;
  const T* bias = args.bias.data == nullptr ? nullptr : args.bias.data + column * args.bias.stride(0);
  const T* residual = args.residual.data == nullptr ? nullptr : args.residual[row].data + column;
  T* pre = args.pre.data == nullptr ? nullptr : args.pre[row].data + column;
  T* c = args.c[row].data + column;
  for_each_vector(d, columns, [&](auto part, int64_t j) HEADLIGHT_LOOP_BODY {
    auto v = part.load(d, s + j);
    if (bias != nullptr) v = hn::Add(v, part.load(d, bias + j));
    if (pre != nullptr) part.store(d, v, pre + j);
    v = activate<f>(d, v);
    if (residual != nullptr) v = hn::Add(v, part.load(d, residual + j));
    part.store(d, v, c + j);
  });
}

template <class T>
void finish_rows(const Matmul<T>& args, const T* s, int64_t s_row, int64_t row, int64_t rows, int64_t column,
                 int64_t columns) {
  auto* finish = finish_row<Activation::kNone, T>;
  if (args.activation == Activation::kRelu) finish = finish_row<Activation::kRelu, T>;
  if (args.activation == Activation::kGelu) finish = finish_row<Activation::kGelu, T>;
  if (args.activation == Activation::kGeluTanh) finish = finish_row<Activation::kGeluTanh, T>;
  for (int64_t i = 0; i < rows; ++i) finish(args, s + i * s_row, row + i, column, columns);
}

template <class T>
bool has_epilogue(const Matmul<T>& args) {
  return args.bias.data != nullptr || args.residual.data != nullptr || args.pre.data != nullptr ||
         args.activation != Activation::kNone;
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
