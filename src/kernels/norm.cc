#include "headlight/kernels/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "kernels/check.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {

// mean = shift + rest: their sum is kept apart because it would lose the digits of rows far from 0
template <class T>
struct RowMoments {
  T shift;
  T rest;
  T scale;
};

template <class T>
HWY_INLINE RowMoments<T> layer_norm_moments(const T* x, int64_t n, T epsilon) {
  const hn::ScalableTag<T> d;
  const T share = T(1) / static_cast<T>(n > 0 ? n : 1);
  const auto sum = reduce(d, n, zero_sums<1>(d), [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY {
    s.v[0] = hn::Add(s.v[0], part.load(d, x + i));
  });
  const T shift = sum.total(d, 0) * share;
  const auto v_shift = hn::Set(d, shift);
  const auto centred = reduce(d, n, zero_sums<2>(d), [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY {
    // the lanes beyond the row hold the shift: they add nothing
    const auto c = hn::Sub(part.load_or(d, x + i, shift), v_shift);
    s.v[0] = hn::Add(s.v[0], c);
    s.v[1] = hn::MulAdd(c, c, s.v[1]);
  });
  const T rest = centred.total(d, 0) * share;
  const T variance = centred.total(d, 1) * share - rest * rest;
  // not std::max, which would turn the NaN of a bad row into a number
  return {shift, rest, std::sqrt((variance < T(0) ? T(0) : variance) + epsilon)};
}

template <class T>
HWY_INLINE RowMoments<T> rms_norm_moments(const T* x, int64_t n, T epsilon) {
  const hn::ScalableTag<T> d;
  const auto sum = reduce(d, n, zero_sums<1>(d), [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY {
    const auto v = part.load(d, x + i);
    s.v[0] = hn::MulAdd(v, v, s.v[0]);
  });
  return {T(0), T(0), std::sqrt(sum.total(d, 0) / static_cast<T>(n > 0 ? n : 1) + epsilon)};
}

template <class T>
void norm_forward_rows(const NormForward<T>& a, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const int64_t n = a.x.size(1);
  const T* weight = a.weight.data;
  const T* bias = a.bias.data;
  for (int64_t row = begin; row < end; ++row) {
    const T* x = a.x[row].data;
    T* y = a.y[row].data;
    const RowMoments<T> m =
        a.kind == NormKind::kLayerNorm ? layer_norm_moments(x, n, a.epsilon) : rms_norm_moments(x, n, a.epsilon);
    const auto shift = hn::Set(d, m.shift);
    const auto rest = hn::Set(d, m.rest);
    const auto inverse = hn::Set(d, T(1) / m.scale);
    for_each_vector(d, n, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      auto v = hn::Mul(hn::Sub(hn::Sub(part.load(d, x + i), shift), rest), inverse);
      if (bias != nullptr) {
        v = weight != nullptr ? hn::MulAdd(v, part.load(d, weight + i), part.load(d, bias + i))
                              : hn::Add(v, part.load(d, bias + i));
      } else if (weight != nullptr) {
        v = hn::Mul(v, part.load(d, weight + i));
      }
      part.store(d, v, y + i);
    });
    if (a.scale.data != nullptr) a.scale(row) = m.scale;
    if (a.mean.data != nullptr) a.mean(row) = m.shift + m.rest;
  }
}

// Gradients of rows [begin, end). dweight and dbias, when not null, are this block's sums, set.
// With c = x - mean - rest, where the rest is what the stored mean lost to rounding:
//   n = c / scale;   dx = (g - mean(g) - n mean(g n)) / scale
template <class T>
void norm_backward_rows(const NormBackward<T>& a, int64_t begin, int64_t end, T* dweight, T* dbias) {
  const hn::ScalableTag<T> d;
  const int64_t n = a.x.size(1);
  const bool centred = a.kind == NormKind::kLayerNorm;
  const T share = T(1) / static_cast<T>(n > 0 ? n : 1);
  const T* weight = a.weight.data;
  if (dweight != nullptr) std::memset(dweight, 0, static_cast<size_t>(n) * sizeof(T));
  if (dbias != nullptr) std::memset(dbias, 0, static_cast<size_t>(n) * sizeof(T));
  for (int64_t row = begin; row < end; ++row) {
    const T* x = a.x[row].data;
    const T* dy = a.dy[row].data;
    T* dx = a.dx[row].data;
    const T mean = centred ? a.mean(row) : T(0);
    const T inverse = T(1) / a.scale(row);
    const auto v_mean = hn::Set(d, mean);

    // sums of x - mean, g and g (x - mean)
    const auto sums = reduce(d, n, zero_sums<3>(d), [&](auto part, int64_t i, auto& s) HEADLIGHT_LOOP_BODY {
      const auto c = hn::Sub(part.load_or(d, x + i, mean), v_mean);
      auto g = part.load(d, dy + i);
      if (weight != nullptr) g = hn::Mul(g, part.load(d, weight + i));
      s.v[0] = hn::Add(s.v[0], c);
      s.v[1] = hn::Add(s.v[1], g);
      s.v[2] = hn::MulAdd(g, c, s.v[2]);
    });
    const T rest = centred ? sums.total(d, 0) * share : T(0);
    const T mean_g = centred ? sums.total(d, 1) * share : T(0);
    const T mean_gn = (sums.total(d, 2) * share - rest * mean_g) * inverse;

    const auto v_rest = hn::Set(d, rest);
    const auto v_inverse = hn::Set(d, inverse);
    const auto v_mean_g = hn::Set(d, mean_g);
    const auto v_mean_gn = hn::Set(d, mean_gn);
    for_each_vector(d, n, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
      const auto normal = hn::Mul(hn::Sub(hn::Sub(part.load(d, x + i), v_mean), v_rest), v_inverse);
      const auto v_dy = part.load(d, dy + i);
      const auto g = weight != nullptr ? hn::Mul(v_dy, part.load(d, weight + i)) : v_dy;
      if (dweight != nullptr) part.store(d, hn::MulAdd(v_dy, normal, part.load(d, dweight + i)), dweight + i);
      if (dbias != nullptr) part.store(d, hn::Add(v_dy, part.load(d, dbias + i)), dbias + i);
      const auto gradient = hn::Mul(hn::NegMulAdd(normal, v_mean_gn, hn::Sub(g, v_mean_g)), v_inverse);
      part.store(d, a.accumulate ? hn::Add(part.load(d, dx + i), gradient) : gradient, dx + i);
    });
  }
}

// sums(j) += the blocks' sums in order, for columns [begin, end). Block b's sums start at partial + b * stride.
template <class T>
void add_blocks(const T* partial, int64_t blocks, int64_t stride, T* sums, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, end - begin, [&](auto part, int64_t i) HEADLIGHT_LOOP_BODY {
    auto sum = hn::Zero(d);
    for (int64_t b = 0; b < blocks; ++b) sum = hn::Add(sum, part.load(d, partial + b * stride + begin + i));
    part.store(d, hn::Add(part.load(d, sums + begin + i), sum), sums + begin + i);
  });
}

void norm_forward_float(const NormForward<float>& a, int64_t begin, int64_t end) { norm_forward_rows(a, begin, end); }
void norm_forward_double(const NormForward<double>& a, int64_t begin, int64_t end) { norm_forward_rows(a, begin, end); }
void norm_backward_float(const NormBackward<float>& a, int64_t begin, int64_t end, float* dweight, float* dbias) {
  norm_backward_rows(a, begin, end, dweight, dbias);
}
void norm_backward_double(const NormBackward<double>& a, int64_t begin, int64_t end, double* dweight, double* dbias) {
  norm_backward_rows(a, begin, end, dweight, dbias);
}
void add_blocks_float(const float* partial, int64_t blocks, int64_t stride, float* sums, int64_t begin, int64_t end) {
  add_blocks(partial, blocks, stride, sums, begin, end);
}
void add_blocks_double(const double* partial, int64_t blocks, int64_t stride, double* sums, int64_t begin,
                       int64_t end) {
  add_blocks(partial, blocks, stride, sums, begin, end);
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(norm_forward_float);
HWY_EXPORT(norm_forward_double);
HWY_EXPORT(norm_backward_float);
HWY_EXPORT(norm_backward_double);
HWY_EXPORT(add_blocks_float);
HWY_EXPORT(add_blocks_double);

auto forward_kernel(float) { return HEADLIGHT_DISPATCH(norm_forward_float); }
auto forward_kernel(double) { return HEADLIGHT_DISPATCH(norm_forward_double); }
auto backward_kernel(float) { return HEADLIGHT_DISPATCH(norm_backward_float); }
auto backward_kernel(double) { return HEADLIGHT_DISPATCH(norm_backward_double); }
auto add_blocks_kernel(float) { return HEADLIGHT_DISPATCH(add_blocks_float); }
auto add_blocks_kernel(double) { return HEADLIGHT_DISPATCH(add_blocks_double); }

// Sums over rows: blocks of rows are summed in parallel into working memory, then the blocks in order, so
// many at a time that the memory stays small.
constexpr int64_t kRowsPerBlock = 32;
constexpr int64_t kBlocksAtOnce = 64;
constexpr int64_t kColumnsPerTask = 1024;

void require_kind(const char* operation, NormKind kind) {
  if (kind != NormKind::kLayerNorm && kind != NormKind::kRmsNorm) {
    throw LogicError(operation, "kind is none; wanted LayerNorm or RMSNorm");
  }
}

template <class T>
void require_optional_row(const char* operation, const char* name, const View<T, 1>& view, int64_t n) {
  if (view.data != nullptr) require_rows(operation, name, view, {n});
}

template <class T>
void check(const NormBackward<T>& a) {
  const char* const operation = "norm_backward";
  require_kind(operation, a.kind);
  require_unit_stride(operation, "x", a.x);
  require_rows(operation, "dy", a.dy, a.x.sizes);
  require_output(operation, "dx", a.dx, a.x.sizes);
  require_same_or_apart<T>(operation, "dx", a.dx, "dy", a.dy);
  require_same_or_apart<T>(operation, "dx", a.dx, "x", a.x);
  if (a.accumulate) {
    require_apart(operation, "accumulating dx", a.dx, "dy", a.dy);
    require_apart(operation, "accumulating dx", a.dx, "x", a.x);
  }
  require_sizes(operation, "scale", a.scale, {a.x.size(0)});
  if (a.kind == NormKind::kLayerNorm) require_sizes(operation, "mean", a.mean, {a.x.size(0)});
  if (a.kind == NormKind::kRmsNorm && a.dbias.data != nullptr) {
    throw LogicError(operation, "dbias given; RMSNorm has no bias");
  }
  require_optional_row(operation, "weight", a.weight, a.x.size(1));
  require_optional_row(operation, "dweight", a.dweight, a.x.size(1));
  require_optional_row(operation, "dbias", a.dbias, a.x.size(1));
}

template <class T>
void add_partial_sums(const T* partial, int64_t blocks, int64_t stride, const View<T, 1>& sums) {
  if (sums.data == nullptr) return;
  const auto kernel = add_blocks_kernel(T());
  const int64_t n = sums.size(0);
  default_pool().run((n + kColumnsPerTask - 1) / kColumnsPerTask, [&](int64_t task, int) {
    const int64_t begin = task * kColumnsPerTask;
    kernel(partial, blocks, stride, sums.data, begin, std::min(n, begin + kColumnsPerTask));
  });
}

}  // namespace

template <class T>
void norm_forward(const NormForward<T>& a) {
  const char* const operation = "norm_forward";
  require_kind(operation, a.kind);
  require_unit_stride(operation, "x", a.x);
  require_output(operation, "y", a.y, a.x.sizes);
  require_same_or_apart<T>(operation, "y", a.y, "x", a.x);
  require_optional_row(operation, "weight", a.weight, a.x.size(1));
  require_optional_row(operation, "bias", a.bias, a.x.size(1));
  if (a.kind == NormKind::kRmsNorm && a.bias.data != nullptr) {
    throw LogicError(operation, "bias given; RMSNorm has no bias");
  }
  if (a.scale.data != nullptr) require_sizes(operation, "scale", a.scale, {a.x.size(0)});
  if (a.mean.data != nullptr) require_sizes(operation, "mean", a.mean, {a.x.size(0)});
  const auto kernel = forward_kernel(T());
  for_row_blocks(a.x.size(0), a.x.size(1), [&](int64_t begin, int64_t end) { kernel(a, begin, end); });
}

template <class T>
void norm_backward(const NormBackward<T>& a) {
  check(a);
  const auto kernel = backward_kernel(T());
  const int64_t rows = a.x.size(0);
  const int64_t n = a.x.size(1);
  const bool sums = a.dweight.data != nullptr || a.dbias.data != nullptr;
  if (!sums) {
    for_row_blocks(rows, n, [&](int64_t begin, int64_t end) { kernel(a, begin, end, nullptr, nullptr); });
    return;
  }
  // 64-byte steps, so that blocks summed at the same time share no cache line
  const int64_t stride = (n + 15) / 16 * 16;
  const int64_t all_blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  const int64_t at_once = std::min(all_blocks, kBlocksAtOnce);
  T* const dweights = reinterpret_cast<T*>(scratch(static_cast<size_t>(2 * at_once * stride) * sizeof(T)));
  T* const dbiases = dweights + at_once * stride;
  for (int64_t first = 0; first < all_blocks; first += at_once) {
    const int64_t blocks = std::min(at_once, all_blocks - first);
    default_pool().run(blocks, [&](int64_t block, int) {
      const int64_t begin = (first + block) * kRowsPerBlock;
      kernel(a, begin, std::min(rows, begin + kRowsPerBlock),
             a.dweight.data == nullptr ? nullptr : dweights + block * stride,
             a.dbias.data == nullptr ? nullptr : dbiases + block * stride);
    });
    add_partial_sums(dweights, blocks, stride, a.dweight);
    add_partial_sums(dbiases, blocks, stride, a.dbias);
  }
}

template void norm_forward(const NormForward<float>&);
template void norm_forward(const NormForward<double>&);
template void norm_backward(const NormBackward<float>&);
template void norm_backward(const NormBackward<double>&);

}  // namespace headlight
#endif
