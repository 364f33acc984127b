#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>

#include "headlight/base/error.h"
#include "kernels/attention_plan.h"
#include "kernels/check.h"

namespace headlight {
namespace {

std::string text_of(const std::string& name, const std::string& shape) { return name + " " + shape; }

[[noreturn]] void refuse(const char* operation, const std::string& problem) { throw LogicError(operation, problem); }

// ---- memory: extents, and which of it is shared

// The bytes that a view covers: runs of `run` bytes at multiples of the strides.
struct Footprint {
  uint64_t first = 0, end = 0;  // addresses
  int64_t run = 0;              // bytes that follow each other without a gap
  int64_t stride_gcd = 0;       // of the dimensions outside the runs, in bytes; 0 when there is none
  bool overlaps_itself = false;
};

template <class T, int Rank>
Footprint footprint_of(const char* operation, const char* name, const View<T, Rank>& view) {
  constexpr int64_t kElement = sizeof(T);
  int64_t bytes = kElement;
  for (int64_t size : view.sizes) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      refuse(operation, text_of(name, shape_text(view)) + ": sizes overflow 63 bits");
    }
  }
  Footprint out;
  if (view.empty()) return out;
  struct Dimension {
    int64_t size, stride;
  };
  std::array<Dimension, Rank> dims;
  int64_t low = 0, high = kElement;
  for (int i = 0; i < Rank; ++i) {
    int64_t stride = 0, span = 0;
    const bool overflow =
        __builtin_mul_overflow(view.strides[i], kElement, &stride) ||
        __builtin_mul_overflow(stride, view.sizes[i] - 1, &span) ||
        (span < 0 ? __builtin_add_overflow(low, span, &low) : __builtin_add_overflow(high, span, &high));
    if (overflow || stride == INT64_MIN)
      refuse(operation, text_of(name, shape_text(view)) + " has strides that overflow");
    dims[i] = {view.sizes[i], std::abs(stride)};
  }
  std::sort(dims.begin(), dims.end(), [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  out.run = kElement;
  int64_t reach = kElement;  // bytes from the first to the end of the dimensions so far
  for (const Dimension& dim : dims) {
    if (dim.size == 1) continue;
    if (dim.stride < reach) out.overlaps_itself = true;
    if (dim.stride == out.run && out.stride_gcd == 0) {
      out.run *= dim.size;
    } else {
      out.stride_gcd = std::gcd(out.stride_gcd, dim.stride);
    }
    reach += (dim.size - 1) * dim.stride;
  }
  const auto address = reinterpret_cast<uint64_t>(view.data);
  out.first = address + static_cast<uint64_t>(low);
  out.end = address + static_cast<uint64_t>(high);
  return out;
}

// Views that interleave, as q, k and v in one buffer do, are apart when their runs keep to different places
// of a common period. What cannot be told apart that way counts as shared.
bool share_memory(const Footprint& a, const Footprint& b) {
  if (a.end == a.first || b.end == b.first || a.end <= b.first || b.end <= a.first) return false;
  const int64_t period = std::gcd(a.stride_gcd, b.stride_gcd);
  if (period == 0) return true;
  const int64_t shift = static_cast<int64_t>((b.first > a.first ? b.first - a.first : a.first - b.first) % period);
  const int64_t gap = b.first > a.first ? shift : (period - shift) % period;  // from a's runs on to b's
  return gap < a.run || gap + b.run > period;
}

// Collects the operands of a call and finds outputs that share memory with anything.
class Operands {
 public:
  explicit Operands(const char* operation) : operation_(operation) {}

  template <class T, int Rank>
  void add(const char* name, const View<T, Rank>& view, bool output) {
    require_data(name, view);
    Operand operand{name, footprint_of(operation_, name, view), output};
    if (output && operand.footprint.overlaps_itself) {
      refuse(operation_, text_of(name, shape_text(view)) + " has elements that share memory");
    }
    for (int i = 0; i < count_; ++i) {
      const Operand& other = operands_[i];
      if ((output || other.output) && share_memory(operand.footprint, other.footprint)) {
        refuse(operation_, std::string(name) + " shares memory with " + other.name + "; wanted outputs of their own");
      }
    }
    operands_[count_++] = operand;
  }
  template <class T, int Rank>
  void input(const char* name, const View<T, Rank>& view) {
    add(name, view, false);
  }
  template <class T, int Rank>
  void output(const char* name, const View<T, Rank>& view) {
    add(name, view, true);
  }

 private:
  struct Operand {
    const char* name;
    Footprint footprint;
    bool output;
  };
  template <class T, int Rank>
  void require_data(const char* name, const View<T, Rank>& view) const {
    for (int64_t size : view.sizes) {
      if (size < 0) refuse(operation_, text_of(name, shape_text(view)) + " has a negative size");
    }
    if (view.data == nullptr && !view.empty()) refuse(operation_, text_of(name, shape_text(view)) + " has no data");
  }

  const char* operation_;
  std::array<Operand, 32> operands_;
  int count_ = 0;
};

// ---- sizes

template <class T>
void require_broadcast(const char* operation, const char* name, const View<T, 4>& view,
                       const std::array<int64_t, 4>& full) {
  for (int d = 0; d < 4; ++d) {
    if (view.size(d) != full[d] && view.size(d) != 1) {
      refuse(operation, text_of(name, shape_text(view)) + "; wanted " + shape_text(View<const T, 4>(nullptr, full)) +
                            " or 1 in place of a size");
    }
  }
}

struct Sizes {
  int64_t B, Tq, Tk, H, Hkv, K;
};

template <class T>
Sizes check_queries_and_keys(const char* operation, const View<const T, 4>& q, const View<const T, 4>& k) {
  const Sizes n{q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3)};
  // the text is made only when it is needed: kernels do not allocate
  const auto refuse_both = [&](const std::string& problem) {
    refuse(operation, text_of("q", shape_text(q)) + ", " + text_of("k", shape_text(k)) + ": " + problem);
  };
  if (k.size(0) != n.B) refuse_both("batches differ");
  if (k.size(3) != q.size(3)) refuse_both("widths of heads differ");
  if (n.Hkv == 0 ? n.H != 0 : n.H % n.Hkv != 0) {
    refuse_both(std::to_string(n.H) + " query heads are not a multiple of " + std::to_string(n.Hkv));
  }
  return n;
}

void check_span(const char* operation, const std::string& side, const View<const int64_t, 1>& begins,
                const View<const int64_t, 1>& lengths, int64_t B, int64_t rows) {
  if (begins.data != nullptr) require_sizes(operation, (side + "_begin").c_str(), begins, {B});
  if (lengths.data != nullptr) require_sizes(operation, (side + "_len").c_str(), lengths, {B});
  for (int64_t b = 0; b < B; ++b) {
    const int64_t begin = begins.data == nullptr ? 0 : begins(b);
    const int64_t length = lengths.data == nullptr ? rows - begin : lengths(b);
    if (begin < 0 || begin > rows || length < 0 || length > rows - begin) {
      refuse(operation, side + " rows of entry " + std::to_string(b) + " begin at " + std::to_string(begin) +
                            " and are " + std::to_string(length) + "; wanted them inside the " + std::to_string(rows));
    }
  }
}

template <class T>
void check_pattern(const char* operation, const AttentionPattern<T>& pattern, const Sizes& n, Operands& operands) {
  const std::array<int64_t, 4> full{n.B, n.H, n.Tq, n.Tk};
  if (pattern.left && *pattern.left < 0) {
    refuse(operation, "left " + std::to_string(*pattern.left) + " is negative; leave it out for no limit");
  }
  if (pattern.right && *pattern.right < 0) {
    refuse(operation, "right " + std::to_string(*pattern.right) + " is negative; leave it out for no limit");
  }
  if (pattern.pos0 > std::numeric_limits<int64_t>::max() - n.Tq) {
    refuse(operation, "pos0 " + std::to_string(pattern.pos0) + " and " + std::to_string(n.Tq) +
                          " queries: positions overflow 63 bits");
  }
  if (pattern.soft_cap && !(*pattern.soft_cap > T(0))) {
    refuse(operation, "soft cap " + std::to_string(*pattern.soft_cap) + "; wanted a positive number");
  }
  check_span(operation, "q", pattern.q_begin, pattern.q_len, n.B, n.Tq);
  check_span(operation, "k", pattern.k_begin, pattern.k_len, n.B, n.Tk);
  operands.input("q_begin", pattern.q_begin);
  operands.input("q_len", pattern.q_len);
  operands.input("k_begin", pattern.k_begin);
  operands.input("k_len", pattern.k_len);
  if (pattern.mask.data != nullptr) {
    require_broadcast(operation, "mask", pattern.mask, full);
    operands.input("mask", pattern.mask);
  }
  if (pattern.bias.data != nullptr) {
    require_broadcast(operation, "bias", pattern.bias, full);
    operands.input("bias", pattern.bias);
  }
  if (pattern.slopes.data != nullptr) {
    require_sizes(operation, "slopes", pattern.slopes, {n.H});
    operands.input("slopes", pattern.slopes);
  }
  if (pattern.sinks.data != nullptr) {
    require_sizes(operation, "sinks", pattern.sinks, {n.H});
    operands.input("sinks", pattern.sinks);
  }
  if (pattern.additive.data != nullptr) {
    require_sizes(operation, "additive", pattern.additive, {n.H, n.K});
    operands.input("additive", pattern.additive);
  }
}

// An optional output: absent, or of the wanted shape.
template <class T, int Rank>
void check_optional(const char* operation, const char* name, const View<T, Rank>& view,
                    const std::type_identity_t<std::array<int64_t, Rank>>& wanted, Operands& operands) {
  if (view.data == nullptr) return;
  require_sizes(operation, name, view, wanted);
  operands.output(name, view);
}

template <class T, int Rank>
void require_operand(const char* operation, const char* gradient, bool wanted, const char* name,
                     const View<T, Rank>& operand) {
  if (wanted && operand.data == nullptr)
    refuse(operation, std::string(gradient) + " is wanted but there are no " + name);
}

// How a call names its queries, and whether it sets them.
struct Queries {
  const char* name = "q";
  const char* gradient = "dq";
  bool output = false;
};

template <class T>
void check_forward(const char* operation, const AttentionForward<T>& args, Queries queries, Operands& operands) {
  operands.add(queries.name, args.q, queries.output);
  operands.input("k", args.k);
  operands.input("v", args.v);
  const Sizes n = check_queries_and_keys(operation, args.q, args.k);
  require_sizes(operation, "v", args.v, {n.B, n.Tk, n.Hkv, args.v.size(3)});
  require_sizes(operation, "o", args.o, {n.B, n.Tq, n.H, args.v.size(3)});
  check_pattern(operation, args.pattern, n, operands);
  operands.output("o", args.o);
  check_optional(operation, "statistics", args.statistics, {n.B, n.H, n.Tq}, operands);
}

template <class T>
void check_backward(const char* operation, const AttentionBackward<T>& args, Queries queries, Operands& operands) {
  operands.add(queries.name, args.q, queries.output);
  operands.input("k", args.k);
  operands.input("v", args.v);
  const Sizes n = check_queries_and_keys(operation, args.q, args.k);
  const int64_t M = args.v.size(3);
  require_sizes(operation, "v", args.v, {n.B, n.Tk, n.Hkv, M});
  require_sizes(operation, "o", args.o, {n.B, n.Tq, n.H, M});
  require_sizes(operation, "d_o", args.d_o, {n.B, n.Tq, n.H, M});
  require_sizes(operation, "statistics", args.statistics, {n.B, n.H, n.Tq});
  check_pattern(operation, args.pattern, n, operands);
  operands.input("o", args.o);
  operands.input("d_o", args.d_o);
  operands.input("statistics", args.statistics);
  require_operand(operation, "dbias", args.dbias.data != nullptr, "bias", args.pattern.bias);
  require_operand(operation, "dsinks", args.dsinks.data != nullptr, "sinks", args.pattern.sinks);
  require_operand(operation, "dslopes", args.dslopes.data != nullptr, "slopes", args.pattern.slopes);
  require_operand(operation, "d_additive", args.d_additive.data != nullptr, "additive", args.pattern.additive);
  check_optional(operation, queries.gradient, args.dq, args.q.sizes, operands);
  check_optional(operation, "dk", args.dk, args.k.sizes, operands);
  check_optional(operation, "dv", args.dv, args.v.sizes, operands);
  check_optional(operation, "dbias", args.dbias, args.pattern.bias.sizes, operands);
  check_optional(operation, "dsinks", args.dsinks, {n.H}, operands);
  check_optional(operation, "dslopes", args.dslopes, {n.H}, operands);
  check_optional(operation, "d_additive", args.d_additive, {n.H, n.K}, operands);
}

// What rows and sums recompute weights from.
template <class Args>
Sizes check_sources(const char* operation, const Args& args, Operands& operands) {
  operands.input("q", args.q);
  operands.input("k", args.k);
  const Sizes n = check_queries_and_keys(operation, args.q, args.k);
  require_sizes(operation, "statistics", args.statistics, {n.B, n.H, n.Tq});
  check_pattern(operation, args.pattern, n, operands);
  operands.input("statistics", args.statistics);
  return n;
}

template <class T>
void check_projection(const char* operation, const View<const T, 4>& q, const View<const T, 3>& w,
                      const View<const T, 4>& projected, const View<const T, 4>& k, Operands& operands) {
  operands.input("q", q);
  operands.input("w", w);
  require_sizes(operation, "w", w, {q.size(2), q.size(3), k.size(3)});
  require_sizes(operation, "projected", projected, {q.size(0), q.size(1), q.size(2), k.size(3)});
}

}  // namespace

template <class T>
void check(const AttentionForward<T>& args) {
  const char* const operation = "attention_forward";
  Operands operands(operation);
  check_forward(operation, args, {}, operands);
}

template <class T>
void check(const AttentionBackward<T>& args) {
  const char* const operation = "attention_backward";
  Operands operands(operation);
  check_backward(operation, args, {}, operands);
}

template <class T>
void check(const BilinearForward<T>& args) {
  const char* const operation = "bilinear_attention_forward";
  Operands operands(operation);
  check_projection<T>(operation, args.q, args.w, args.projected, args.k, operands);
  require_unit_stride(operation, "projected", args.projected);
  check_forward(operation, attention_of(args), {"projected", "d_projected", true}, operands);
}

template <class T>
void check(const BilinearBackward<T>& args) {
  const char* const operation = "bilinear_attention_backward";
  Operands operands(operation);
  check_projection<T>(operation, args.q, args.w, args.projected, args.k, operands);
  check_backward(operation, attention_of(args), {"projected", "d_projected"}, operands);
  require_operand(operation, "dq", args.dq.data != nullptr, "d_projected", args.d_projected);
  require_operand(operation, "dw", args.dw.data != nullptr, "d_projected", args.d_projected);
  require_unit_stride(operation, "d_projected", args.d_projected);
  require_unit_stride(operation, "dq", args.dq);
  require_unit_stride(operation, "dw", args.dw);
  check_optional(operation, "dq", args.dq, args.q.sizes, operands);
  check_optional(operation, "dw", args.dw, args.w.sizes, operands);
}

template <class T>
void check(const AttentionRows<T>& args) {
  const char* const operation = "attention_rows";
  Operands operands(operation);
  const Sizes n = check_sources(operation, args, operands);
  const int64_t heads = args.weights.size(1), rows = args.weights.size(2);
  require_sizes(operation, "weights", args.weights, {n.B, heads, rows, n.Tk});
  if (args.head_begin < 0 || args.head_begin > n.H || heads > n.H - args.head_begin) {
    refuse(operation, "heads from " + std::to_string(args.head_begin) + ", " + std::to_string(heads) +
                          " of them; wanted them inside the " + std::to_string(n.H));
  }
  if (args.row_begin < 0 || args.row_begin > n.Tq || rows > n.Tq - args.row_begin) {
    refuse(operation, "rows from " + std::to_string(args.row_begin) + ", " + std::to_string(rows) +
                          " of them; wanted them inside the " + std::to_string(n.Tq));
  }
  operands.output("weights", args.weights);
}

template <class T>
void check(const AttentionSums<T>& args) {
  const char* const operation = "attention_sums";
  Operands operands(operation);
  const Sizes n = check_sources(operation, args, operands);
  check_optional(operation, "sum", args.sum, {n.B, n.H, n.Tq}, operands);
  check_optional(operation, "entropy", args.entropy, {n.B, n.H, n.Tq}, operands);
  check_optional(operation, "distance", args.distance, {n.B, n.H, n.Tq}, operands);
  if (args.chosen.size(2) == 0 && args.weights.size(3) == 0) return;
  require_sizes(operation, "chosen", args.chosen, {n.B, n.Tq, args.chosen.size(2)});
  require_sizes(operation, "weights", args.weights, {n.B, n.H, n.Tq, args.chosen.size(2)});
  operands.input("chosen", args.chosen);
  operands.output("weights", args.weights);
}

#define HEADLIGHT_INSTANTIATE(T)                    \
  template void check(const AttentionForward<T>&);  \
  template void check(const AttentionBackward<T>&); \
  template void check(const AttentionRows<T>&);     \
  template void check(const AttentionSums<T>&);
HEADLIGHT_INSTANTIATE(float)
HEADLIGHT_INSTANTIATE(double)
HEADLIGHT_INSTANTIATE(BFloat16)
HEADLIGHT_INSTANTIATE(Float16)
#undef HEADLIGHT_INSTANTIATE
template void check(const BilinearForward<float>&);
template void check(const BilinearForward<double>&);
template void check(const BilinearBackward<float>&);
template void check(const BilinearBackward<double>&);

}  // namespace headlight
