#include "headlight/kernels/bilinear_attention.h"

#include <cmath>

#include "headlight/kernels/matmul.h"
#include "headlight/tensor/buffer.h"
#include "kernels/attention_plan.h"

namespace headlight {
namespace {

// All rows of one head of a tensor (B, T, H, width).
template <class T>
View<T, 2> rows_of(const View<T, 4>& tensor, int64_t b, int64_t h) {
  return tensor[b].swap(0, 1)[h];
}

template <class T>
void store_zeros(const View<T, 2>& rows) {
  for (int64_t i = 0; i < rows.size(0); ++i) {
    for (int64_t c = 0; c < rows.size(1); ++c) rows(i, c) = T(0);
  }
}

// c = a b for the rows in `valid`; the others are 0.
template <class T>
void project_rows(Range valid, const View<const T, 2>& a, const View<const T, 2>& b, const View<T, 2>& c) {
  store_zeros(c.slice(0, 0, valid.begin));
  store_zeros(c.slice(0, valid.end, c.size(0)));
  matmul<T>({.a = a.slice(0, valid.begin, valid.end), .b = b, .c = c.slice(0, valid.begin, valid.end)});
}

template <class T>
bool is_zero(const View<const T, 1>& row) {
  for (int64_t c = 0; c < row.size(0); ++c) {
    if (row(c) != T(0)) return false;
  }
  return true;
}
template <class T>
bool is_finite(const View<const T, 1>& row) {
  for (int64_t c = 0; c < row.size(0); ++c) {
    if (!std::isfinite(row(c))) return false;
  }
  return true;
}

// Queries with 0 in place of rows that have no gradient and may hold infinities and NaN: they see nothing. Memory is
// taken only when there are such rows.
template <class T>
View<const T, 2> without_idle_rows(const View<const T, 2>& q, const View<const T, 2>& dp, Buffer<T>& memory) {
  const auto idle = [&](int64_t i) { return is_zero<T>(dp[i]) && !is_finite<T>(q[i]); };
  int64_t first = 0;
  while (first < q.size(0) && !idle(first)) ++first;
  if (first == q.size(0)) return q;
  memory = Buffer<T>(q.count());
  const View<T, 2> copy = memory.template view<2>(q.sizes);
  for (int64_t i = 0; i < q.size(0); ++i) {
    for (int64_t c = 0; c < q.size(1) && !idle(i); ++c) copy(i, c) = q(i, c);
  }
  return copy;
}

// dW_h = sum over entries of q^T dp
template <class T>
void set_dw(const BilinearBackward<T>& args) {
  for (int64_t h = 0; h < args.q.size(2); ++h) {
    bool begun = false;
    for (int64_t b = 0; b < args.q.size(0); ++b) {
      const Range valid = spans_of(args.pattern, b, args.q.size(1), args.k.size(1)).q;
      if (valid.empty()) continue;
      const View<const T, 2> dp = rows_of<const T>(args.d_projected, b, h).slice(0, valid.begin, valid.end);
      Buffer<T> memory;
      const View<const T, 2> q = without_idle_rows(rows_of(args.q, b, h).slice(0, valid.begin, valid.end), dp, memory);
      matmul<T>({.a = q.swap(0, 1), .b = dp, .c = args.dw[h], .accumulate = begun});
      begun = true;
    }
    if (!begun) store_zeros(args.dw[h]);
  }
}

// dq = dp W^T
template <class T>
void set_dq(const BilinearBackward<T>& args) {
  for (int64_t b = 0; b < args.q.size(0); ++b) {
    const Range valid = spans_of(args.pattern, b, args.q.size(1), args.k.size(1)).q;
    for (int64_t h = 0; h < args.q.size(2); ++h) {
      const View<const T, 2> dp = rows_of<const T>(args.d_projected, b, h);
      const View<T, 2> dq = rows_of(args.dq, b, h);
      project_rows<T>(valid, dp, args.w[h].swap(0, 1), dq);
      // whatever W holds
      for (int64_t i = valid.begin; i < valid.end; ++i) {
        if (is_zero<T>(dp[i])) store_zeros(dq.slice(0, i, i + 1));
      }
    }
  }
}

}  // namespace

template <class T>
void bilinear_attention_forward(const BilinearForward<T>& args) {
  check(args);
  for (int64_t b = 0; b < args.q.size(0); ++b) {
    const Range valid = spans_of(args.pattern, b, args.q.size(1), args.k.size(1)).q;
    for (int64_t h = 0; h < args.q.size(2); ++h) {
      project_rows<T>(valid, rows_of(args.q, b, h), args.w[h], rows_of(args.projected, b, h));
    }
  }
  attention_forward(attention_of(args));
}

template <class T>
void bilinear_attention_backward(const BilinearBackward<T>& args) {
  check(args);
  attention_backward(attention_of(args));
  if (args.dw.data != nullptr) set_dw(args);
  if (args.dq.data != nullptr) set_dq(args);
}

template void bilinear_attention_forward<float>(const BilinearForward<float>&);
template void bilinear_attention_forward<double>(const BilinearForward<double>&);
template void bilinear_attention_backward<float>(const BilinearBackward<float>&);
template void bilinear_attention_backward<double>(const BilinearBackward<double>&);

}  // namespace headlight
