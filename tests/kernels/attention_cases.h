#pragma once
// Random attention problems: sizes, layouts in memory, patterns and data from a seed, and what a result is
// held to. Shared by the attention tests.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/base/thread_pool.h"
#include "headlight/kernels/attention.h"
#include "headlight/kernels/isa.h"
#include "headlight/tensor/buffer.h"
#include "kernels/reference/attention.h"

namespace headlight::testing_attention {

template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

// Whether two numbers have the same bits; any two NaN count as the same.
template <class T>
bool same_bits(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// A tensor that owns its memory, with gaps between its rows if wanted, and a guard before and after.
template <class T, int Rank>
class Tensor {
 public:
  using Sizes = std::array<int64_t, Rank>;
  static constexpr int64_t kGuard = 16;

  Tensor() = default;
  // `order`: the dimensions from the outermost in memory to the innermost; `inner`: stride of the innermost.
  explicit Tensor(const Sizes& sizes, const std::array<int, Rank>& order, int64_t inner = 1, int64_t gap = 0) {
    Sizes strides{};
    int64_t step = inner;
    for (int i = Rank - 1; i >= 0; --i) {
      strides[order[i]] = step;
      step = step * std::max<int64_t>(1, sizes[order[i]]) + gap;
    }
    memory_ = std::vector<T>(static_cast<std::size_t>(step + 2 * kGuard));
    view_ = View<T, Rank>(memory_.data() + kGuard, sizes, strides);
  }
  explicit Tensor(const Sizes& sizes) : Tensor(sizes, identity()) {}
  Tensor(const Tensor& other) { *this = other; }
  Tensor& operator=(const Tensor& other) {
    memory_ = other.memory_;
    view_ = View<T, Rank>(memory_.data() + kGuard, other.view_.sizes, other.view_.strides);
    if (memory_.empty()) view_ = {};
    return *this;
  }

  bool exists() const { return !memory_.empty(); }
  const View<T, Rank>& view() const { return view_; }
  const Sizes& sizes() const { return view_.sizes; }
  template <class... Index>
  T& operator()(Index... index) const {
    return view_(index...);
  }

  // Calls body(element, index) for every element.
  template <class Body>
  void each(Body body) const {
    Sizes index{};
    if (view_.empty()) return;
    for (;;) {
      int64_t offset = 0;
      for (int d = 0; d < Rank; ++d) offset += index[d] * view_.strides[d];
      body(view_.data[offset], index);
      int d = Rank - 1;
      while (d >= 0 && ++index[d] == view_.sizes[d]) index[d--] = 0;
      if (d < 0) return;
    }
  }
  T& at(const Sizes& index) const {
    int64_t offset = 0;
    for (int d = 0; d < Rank; ++d) offset += index[d] * view_.strides[d];
    return view_.data[offset];
  }

  // Marks all memory, elements, gaps and guards, as not yet written.
  void poison() {
    for (T& x : memory_) x = poison_value();
  }
  // Every element was written and nothing else was.
  void expect_all_written(const std::string& name) const {
    std::vector<bool> owned(memory_.size());
    each([&](T& x, const Sizes&) { owned[static_cast<std::size_t>(&x - memory_.data())] = true; });
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (!owned[i]) {
        EXPECT_TRUE(is_poison(memory_[i])) << name << ": wrote outside its elements at offset " << i;
      } else {
        EXPECT_FALSE(is_poison(memory_[i])) << name << ": left an element unwritten at offset " << i;
      }
    }
  }

  template <class U>
  Tensor<U, Rank> as() const {
    if (!exists()) return {};
    Tensor<U, Rank> out(view_.sizes);
    each([&](T& x, const Sizes& index) { out.at(index) = static_cast<U>(x); });
    return out;
  }

 private:
  static std::array<int, Rank> identity() {
    std::array<int, Rank> order{};
    for (int i = 0; i < Rank; ++i) order[i] = i;
    return order;
  }
  static T poison_value() {
    if constexpr (std::is_arithmetic_v<T>) {
      return T(-7.7777e33);
    } else {
      return {-7.7777e33f, -7.7777e33f};
    }
  }
  static bool is_poison(const T& x) {
    if constexpr (std::is_arithmetic_v<T>) {
      return x == poison_value();
    } else {
      return x.max == poison_value().max && x.sum == poison_value().sum;
    }
  }

  std::vector<T> memory_;
  View<T, Rank> view_;
};

struct Sizes {
  int64_t B = 1, Tq = 1, Tk = 1, H = 1, Hkv = 1, K = 1, M = 1;
};

// All that one call of forward, backward and rows reads and writes.
template <class T>
struct Case {
  Sizes n;
  std::string text;  // how it was made
  Tensor<T, 4> q, k, v, o, d_o, dq, dk, dv;
  Tensor<RowStatistic<T>, 3> statistics;
  // the pattern's views are those of the tensors below that exist
  T scale = 1;
  int64_t pos0 = 0;
  std::optional<int64_t> left, right;
  std::optional<T> soft_cap;
  Tensor<int64_t, 1> q_len, k_len, q_begin, k_begin;
  Tensor<uint8_t, 4> mask;
  Tensor<T, 4> bias, dbias;
  Tensor<T, 1> slopes, sinks, dslopes, dsinks;

  explicit Case(const Sizes& sizes) : n(sizes) {
    q = k_like(n.Tq, n.H, n.K);
    k = k_like(n.Tk, n.Hkv, n.K);
    v = k_like(n.Tk, n.Hkv, n.M);
    make_outputs();
  }

  static Tensor<T, 4> make(int64_t B, int64_t rows, int64_t heads, int64_t width) {
    return Tensor<T, 4>(std::array<int64_t, 4>{B, rows, heads, width});
  }
  Tensor<T, 4> k_like(int64_t rows, int64_t heads, int64_t width) const { return make(n.B, rows, heads, width); }

  // Outputs in the layout of the inputs they belong to, all poisoned.
  void make_outputs() {
    o = k_like(n.Tq, n.H, n.M);
    d_o = k_like(n.Tq, n.H, n.M);
    dq = q;
    dk = k;
    dv = v;
    statistics = Tensor<RowStatistic<T>, 3>(std::array<int64_t, 3>{n.B, n.H, n.Tq});
    poison_outputs();
  }
  void poison_outputs() {
    o.poison();
    statistics.poison();
    dq.poison();
    dk.poison();
    dv.poison();
    if (bias.exists()) dbias = bias, dbias.poison();
    if (slopes.exists()) dslopes = slopes, dslopes.poison();
    if (sinks.exists()) dsinks = sinks, dsinks.poison();
  }

  AttentionPattern<T> pattern() const {
    AttentionPattern<T> p;
    p.scale = scale;
    p.pos0 = pos0;
    p.left = left;
    p.right = right;
    p.q_len = q_len.view();
    p.k_len = k_len.view();
    p.q_begin = q_begin.view();
    p.k_begin = k_begin.view();
    p.mask = mask.view();
    p.bias = bias.view();
    p.slopes = slopes.view();
    p.sinks = sinks.view();
    p.soft_cap = soft_cap;
    return p;
  }
  AttentionForward<T> forward() const {
    AttentionForward<T> args;
    args.q = q.view();
    args.k = k.view();
    args.v = v.view();
    args.o = o.view();
    args.statistics = statistics.view();
    args.pattern = pattern();
    return args;
  }
  AttentionBackward<T> backward() const {
    AttentionBackward<T> args;
    args.q = q.view();
    args.k = k.view();
    args.v = v.view();
    args.o = o.view();
    args.statistics = statistics.view();
    args.d_o = d_o.view();
    args.dq = dq.view();
    args.dk = dk.view();
    args.dv = dv.view();
    args.dbias = dbias.view();
    args.dslopes = dslopes.view();
    args.dsinks = dsinks.view();
    args.pattern = pattern();
    return args;
  }
  // rows [begin, end) of all heads into `weights`
  AttentionRows<T> rows(const Tensor<T, 4>& weights, int64_t begin = 0, int64_t head = 0) const {
    AttentionRows<T> args;
    args.q = q.view();
    args.k = k.view();
    args.statistics = statistics.view();
    args.head_begin = head;
    args.row_begin = begin;
    args.weights = weights.view();
    args.pattern = pattern();
    return args;
  }
  Tensor<T, 4> weights() const {
    Tensor<T, 4> out({n.B, n.H, n.Tq, n.Tk});
    out.poison();
    return out;
  }

  // The same problem in another type, packed.
  template <class U>
  Case<U> as() const {
    Case<U> out(n);
    out.text = text;
    out.q = q.template as<U>();
    out.k = k.template as<U>();
    out.v = v.template as<U>();
    out.scale = static_cast<U>(scale);
    out.pos0 = pos0;
    out.left = left;
    out.right = right;
    if (soft_cap) out.soft_cap = static_cast<U>(*soft_cap);
    out.q_len = q_len;
    out.k_len = k_len;
    out.q_begin = q_begin;
    out.k_begin = k_begin;
    out.mask = mask;
    out.bias = bias.template as<U>();
    out.slopes = slopes.template as<U>();
    out.sinks = sinks.template as<U>();
    out.make_outputs();
    out.d_o = d_o.template as<U>();
    return out;
  }
};

// ---- random problems

enum class Data { kNormal, kHeavyTails, kOffset, kLarge };

template <class T, int Rank>
void randomize(const Tensor<T, Rank>& tensor, RandomStream& random, Data data = Data::kNormal, double size = 1) {
  tensor.each([&](T& x, const auto&) {
    double value = random.normal();
    if (data == Data::kHeavyTails) value = value * value * value;
    if (data == Data::kOffset) value += 5;
    if (data == Data::kLarge) value = 20 + 0.01 * value;
    x = static_cast<T>(size * value);
  });
}

inline bool chance(RandomStream& random, uint64_t percent) { return random.below(100) < percent; }
template <class U>
U pick(RandomStream& random, const std::vector<U>& from) {
  return from[random.below(from.size())];
}

// A tensor of (B, T, H, width) in one of the orders that models use, sometimes with gaps and other strides.
template <class T>
Tensor<T, 4> random_layout(RandomStream& random, const std::array<int64_t, 4>& sizes) {
  const std::vector<std::array<int, 4>> orders{{0, 1, 2, 3}, {0, 2, 1, 3}, {1, 0, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}};
  const auto order = chance(random, 60) ? orders[0] : pick(random, orders);
  return Tensor<T, 4>(sizes, order, chance(random, 15) ? 2 : 1, chance(random, 30) ? 3 : 0);
}

template <class T>
void add_random_spans(Case<T>& c, RandomStream& random) {
  const auto spans = [&](int64_t rows, Tensor<int64_t, 1>& begin, Tensor<int64_t, 1>& length) {
    begin = Tensor<int64_t, 1>(std::array<int64_t, 1>{c.n.B});
    length = begin;
    for (int64_t b = 0; b < c.n.B; ++b) {
      begin(b) = chance(random, 50) ? 0 : static_cast<int64_t>(random.below(static_cast<uint64_t>(rows + 1)));
      length(b) = chance(random, 10) ? 0 : rows - begin(b);
      if (length(b) > 0 && chance(random, 50)) length(b) = static_cast<int64_t>(random.below(length(b) + 1));
    }
    if (chance(random, 30)) begin.each([](int64_t& x, const auto&) { x = 0; });
  };
  if (chance(random, 35)) spans(c.n.Tq, c.q_begin, c.q_len);
  if (chance(random, 35)) spans(c.n.Tk, c.k_begin, c.k_len);
  // begins without lengths and lengths without begins
  if (c.q_begin.exists() && chance(random, 30)) c.q_len = {};
  if (c.k_len.exists() && chance(random, 30)) {
    for (int64_t b = 0; b < c.n.B; ++b) c.k_len(b) = std::min(c.k_len(b), c.n.Tk);
    c.k_begin = {};
  }
}

inline std::array<int64_t, 4> random_broadcast(RandomStream& random, const Sizes& n) {
  std::array<int64_t, 4> sizes{n.B, n.H, n.Tq, n.Tk};
  for (int64_t& size : sizes) {
    if (chance(random, 35)) size = 1;
  }
  return sizes;
}

template <class T>
void add_random_pattern(Case<T>& c, RandomStream& random) {
  c.scale =
      static_cast<T>(pick<double>(random, {1.0, 0.125, 0.3, 1 / std::sqrt(static_cast<double>(c.n.K + 1)), -0.5}));
  if (chance(random, 60)) c.right = pick<int64_t>(random, {0, 0, 0, 1, 5, 40, 200});
  if (chance(random, 30)) c.left = pick<int64_t>(random, {0, 1, 3, 15, 50, 127, 200});
  c.pos0 = pick<int64_t>(random, {0, 0, c.n.Tk - c.n.Tq, 1, 3, -2, 17, 130, -40});
  add_random_spans(c, random);
  if (chance(random, 25)) {
    c.mask = Tensor<uint8_t, 4>(random_broadcast(random, c.n));
    const uint64_t percent = pick<uint64_t>(random, {0, 20, 50, 90, 100});
    c.mask.each([&](uint8_t& x, const auto&) {
      x = chance(random, percent) ? static_cast<uint8_t>(random.below(255) + 1) : 0;
    });
  }
  if (chance(random, 25)) {
    c.bias = Tensor<T, 4>(random_broadcast(random, c.n));
    randomize(c.bias, random);
    if (chance(random, 50)) {
      c.bias.each([&](T& x, const auto&) {
        if (chance(random, 20)) x = -kInf<T>;
      });
    }
  }
  if (chance(random, 20)) c.soft_cap = static_cast<T>(pick<double>(random, {0.5, 2.0, 30.0}));
  if (chance(random, 20)) {
    c.slopes = Tensor<T, 1>(std::array<int64_t, 1>{c.n.H});
    c.slopes.each([&](T& x, const auto&) { x = static_cast<T>(0.5 * random.uniform()); });
  }
  if (chance(random, 20)) {
    c.sinks = Tensor<T, 1>(std::array<int64_t, 1>{c.n.H});
    randomize(c.sinks, random, Data::kNormal, 2);
  }
}

// A problem of any shape and pattern whose plain evaluation takes about `work` multiplications at most.
template <class T>
Case<T> random_case(uint64_t seed, int64_t work = 2000000) {
  RandomStream random(seed, 1, 0);
  const std::vector<int64_t> lengths{1,  2,   3,   7,   16,  17,  31,  32,  33,  63,   64,
                                     65, 100, 127, 128, 129, 150, 200, 257, 300, 1030, 2100};
  const std::vector<int64_t> widths{1, 2, 3, 4, 8, 15, 16, 17, 32, 33, 64, 80, 96};
  Sizes n;
  do {
    n.B = pick<int64_t>(random, {1, 1, 2, 3});
    n.Tq = pick(random, lengths);
    n.Tk = chance(random, 50) ? n.Tq : pick(random, lengths);
    n.Hkv = pick<int64_t>(random, {1, 1, 1, 2, 3});
    n.H = n.Hkv * pick<int64_t>(random, {1, 1, 1, 2, 3, 4});
    n.K = pick(random, widths);
    n.M = chance(random, 60) ? n.K : pick(random, widths);
    if (chance(random, 8)) *pick<int64_t*>(random, {&n.B, &n.Tq, &n.Tk, &n.K, &n.M, &n.H}) = 0;
    if (n.H == 0 && chance(random, 50)) n.Hkv = 0;
  } while (n.B * n.H * n.Tq * n.Tk * (n.K + n.M) > work);
  Case<T> c(n);
  c.q = random_layout<T>(random, c.q.sizes());
  c.k = random_layout<T>(random, c.k.sizes());
  c.v = random_layout<T>(random, c.v.sizes());
  const Data data = pick<Data>(random, {Data::kNormal, Data::kNormal, Data::kHeavyTails, Data::kOffset, Data::kLarge});
  randomize(c.q, random, data);
  randomize(c.k, random, data);
  randomize(c.v, random, data);
  add_random_pattern(c, random);
  c.make_outputs();
  c.o = random_layout<T>(random, c.o.sizes());
  c.d_o = random_layout<T>(random, c.d_o.sizes());
  randomize(c.d_o, random);
  c.poison_outputs();
  const auto show = [](const char* name, const std::optional<int64_t>& x) {
    return x ? std::string(" ") + name + " " + std::to_string(*x) : std::string();
  };
  c.text = "seed " + std::to_string(seed) + ": q " + shape_text(c.q.view()) + " k " + shape_text(c.k.view()) + " v " +
           shape_text(c.v.view()) + " pos0 " + std::to_string(c.pos0) + show("left", c.left) + show("right", c.right) +
           (c.q_begin.exists() ? " q_begin" : "") + (c.q_len.exists() ? " q_len" : "") +
           (c.k_begin.exists() ? " k_begin" : "") + (c.k_len.exists() ? " k_len" : "") +
           (c.mask.exists() ? " mask " + shape_text(c.mask.view()) : "") +
           (c.bias.exists() ? " bias " + shape_text(c.bias.view()) : "") + (c.soft_cap ? " soft_cap" : "") +
           (c.slopes.exists() ? " slopes" : "") + (c.sinks.exists() ? " sinks" : "");
  return c;
}

// ---- the truth, and how far from it a result may be

// The true results in float64 of a problem, and for each element the error that a result in T may have.
// u: unit roundoff. A score of magnitude A carries about sqrt(d_k) A of it when errors add up at random, exp
// makes them relative errors of a weight, and the sums over keys add a few more. The allowed error is this
// times the sum of the magnitudes that were added up. Weights below the smallest normal number may be 0.
// The constants are measured: over 2,000 random problems on each instruction set the largest errors of o, dq,
// dk and dv came to 0.8 of what is allowed here.
template <class T>
struct Truth {
  explicit Truth(const Case<T>& c) : exact(c.template as<double>()), o(exact.o) {
    reference::attention_forward(exact.forward());
    weights = exact.weights();
    reference::attention_rows(exact.rows(weights));
    group = exact.n.Hkv == 0 ? 1 : exact.n.H / exact.n.Hkv;
    factors = Tensor<double, 3>(std::array<int64_t, 3>{exact.n.B, exact.n.H, exact.n.Tq});
    factors.each([&](double& x, const std::array<int64_t, 3>& at) { x = factor(at[0], at[1], at[2]); });
    o.each([&](double& x, const std::array<int64_t, 4>& at) {
      x = 0;
      for (int64_t j = 0; j < exact.n.Tk; ++j) {
        x += weight_error(1, weights(at[0], at[2], at[1], j)) * size(exact.v, at[0], j, at[2], at[3]);
      }
    });
    spread = o;
    o.each([&](double& x, const std::array<int64_t, 4>& at) {
      x = x * factors(at[0], at[2], at[1]) + 4 * double(std::numeric_limits<T>::denorm_min());
    });
  }

  // Also the gradients.
  Truth& with_gradients() {
    reference::attention_backward(exact.backward());
    clear(dq = exact.dq);
    clear(dk = exact.dk);
    clear(dv = exact.dv);
    clear(dbias = exact.dbias);
    clear(dslopes = exact.dslopes);
    clear(dsinks = exact.dsinks);
    for (int64_t b = 0; b < exact.n.B; ++b) {
      for (int64_t h = 0; h < exact.n.H; ++h) {
        for (int64_t i = 0; i < exact.n.Tq; ++i) add_row(b, h, i);
      }
    }
    return *this;
  }

  // A single weight has the errors of two scores and of their difference, which nothing averages: 4 times the
  // error of a row, of which 0.8 was measured.
  Tensor<double, 4> weight_errors() const {
    Tensor<double, 4> out = weights;
    out.each(
        [&](double& x, const std::array<int64_t, 4>& at) { x = weight_error(4 * factors(at[0], at[1], at[2]), x); });
    return out;
  }

  Case<double> exact;
  Tensor<double, 4> weights;
  // allowed errors
  Tensor<double, 4> o, dq, dk, dv, dbias;
  Tensor<double, 1> dslopes, dsinks;

 private:
  double size(const Tensor<double, 4>& kv, int64_t b, int64_t j, int64_t h, int64_t c) const {
    return std::abs(kv(b, j, h / group, c));
  }
  template <int Rank>
  static void clear(const Tensor<double, Rank>& tensor) {
    tensor.each([](double& x, const auto&) { x = 0; });
  }

  // weights below the smallest normal number may be 0
  static double weight_error(double relative, double weight) {
    return weight == 0 ? 0 : relative * weight + 2 * double(std::numeric_limits<T>::min());
  }
  double factor(int64_t b, int64_t h, int64_t i) const {
    // against a result in double the truth errs as much as what is tested
    const double u = std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == sizeof(double) ? 2 : 1);
    const double tiles = std::ceil(double(exact.n.Tk) / 128);
    return u * (8 + 2 * std::sqrt(std::max(1.0, double(exact.n.K))) * magnitude(b, h, i) + std::sqrt(tiles));
  }
  // A_i, the largest magnitude that enters a visible score
  double magnitude(int64_t b, int64_t h, int64_t i) const {
    double largest = 0;
    for (int64_t j = 0; j < exact.n.Tk; ++j) {
      if (weights(b, h, i, j) == 0) continue;
      double sum = 0;
      for (int64_t c = 0; c < exact.n.K; ++c)
        sum += std::abs(exact.scale * exact.q(b, i, h, c)) * size(exact.k, b, j, h, c);
      if (exact.bias.exists()) sum += std::abs(exact.bias.at(broadcast(exact.bias, b, h, i, j)));
      if (exact.slopes.exists()) sum += exact.slopes(h) * distance(b, i, j);
      largest = std::max(largest, sum);
    }
    return largest;
  }
  static std::array<int64_t, 4> broadcast(const Tensor<double, 4>& x, int64_t b, int64_t h, int64_t i, int64_t j) {
    std::array<int64_t, 4> at{b, h, i, j};
    for (int d = 0; d < 4; ++d) at[d] = x.sizes()[d] == 1 ? 0 : at[d];
    return at;
  }
  double distance(int64_t b, int64_t i, int64_t j) const {
    const int64_t q_begin = exact.q_begin.exists() ? exact.q_begin(b) : 0;
    const int64_t k_begin = exact.k_begin.exists() ? exact.k_begin(b) : 0;
    return std::abs(double(exact.pos0 + i - q_begin - (j - k_begin)));
  }

  void add_row(int64_t b, int64_t h, int64_t i) {
    const double allowed = factors(b, h, i);
    // D comes from an o whose error is a multiple of P|V|, not of |o|
    double D = 0;
    for (int64_t c = 0; c < exact.n.M; ++c) D += std::abs(exact.d_o(b, i, h, c)) * spread(b, i, h, c);
    for (int64_t j = 0; j < exact.n.Tk; ++j) {
      const double weight = weights(b, h, i, j);
      if (weight == 0) continue;
      const double error = weight_error(allowed, weight);
      double dP = 0;
      for (int64_t c = 0; c < exact.n.M; ++c) {
        dP += std::abs(exact.d_o(b, i, h, c)) * size(exact.v, b, j, h, c);
        dv(b, j, h / group, c) += error * std::abs(exact.d_o(b, i, h, c));
      }
      const double dS = error * (dP + D), ds = dS * std::abs(exact.scale);
      for (int64_t c = 0; c < exact.n.K; ++c) {
        dq(b, i, h, c) += ds * size(exact.k, b, j, h, c);
        dk(b, j, h / group, c) += ds * std::abs(exact.q(b, i, h, c));
      }
      // a single dS, as a single weight
      if (dbias.exists()) dbias.at(broadcast(dbias, b, h, i, j)) += 4 * dS;
      if (dslopes.exists()) dslopes(h) += dS * distance(b, i, j);
    }
    if (dsinks.exists()) {
      const auto& row = exact.statistics(b, h, i);
      dsinks(h) += weight_error(allowed, std::exp(exact.sinks(h) - row.max) / row.sum) * D;
    }
  }

  Tensor<double, 4> spread;   // P |V|
  Tensor<double, 3> factors;  // relative error of a row
  int64_t group = 1;
};

// ---- parts of a problem

// Members [begin, end) of one dimension; dimensions of size 1 that broadcast stay as they are.
template <class T, int Rank>
Tensor<T, Rank> part(const Tensor<T, Rank>& from, int dim, int64_t begin, int64_t end, bool broadcasts = false) {
  if (!from.exists() || (broadcasts && from.sizes()[dim] == 1)) return from;
  auto sizes = from.sizes();
  sizes[dim] = end - begin;
  Tensor<T, Rank> out(sizes);
  out.each([&](T& x, std::array<int64_t, Rank> at) {
    at[dim] += begin;
    x = from.at(at);
  });
  return out;
}

// Entry b of a batch as a batch of its own.
template <class T>
Case<T> one_entry(const Case<T>& c, int64_t b) {
  Case<T> out = c;
  out.n.B = 1;
  out.text += ", entry " + std::to_string(b);
  for (auto tensor : {&Case<T>::q, &Case<T>::k, &Case<T>::v}) out.*tensor = part(c.*tensor, 0, b, b + 1);
  out.mask = part(c.mask, 0, b, b + 1, true);
  out.bias = part(c.bias, 0, b, b + 1, true);
  for (auto tensor : {&Case<T>::q_len, &Case<T>::k_len, &Case<T>::q_begin, &Case<T>::k_begin}) {
    out.*tensor = part(c.*tensor, 0, b, b + 1);
  }
  out.make_outputs();
  out.d_o = part(c.d_o, 0, b, b + 1);
  return out;
}

// Head h as a problem of its own.
template <class T>
Case<T> one_head(const Case<T>& c, int64_t h) {
  Case<T> out = c;
  const int64_t g = h / (c.n.H / c.n.Hkv);
  out.n.H = out.n.Hkv = 1;
  out.text += ", head " + std::to_string(h);
  out.q = part(c.q, 2, h, h + 1);
  out.k = part(c.k, 2, g, g + 1);
  out.v = part(c.v, 2, g, g + 1);
  out.mask = part(c.mask, 1, h, h + 1, true);
  out.bias = part(c.bias, 1, h, h + 1, true);
  out.slopes = part(c.slopes, 0, h, h + 1);
  out.sinks = part(c.sinks, 0, h, h + 1);
  out.make_outputs();
  out.d_o = part(c.d_o, 2, h, h + 1);
  return out;
}

// Query rows [begin, end) as a call of their own, as in decoding. For problems without q_begin and q_len.
template <class T>
Case<T> some_queries(const Case<T>& c, int64_t begin, int64_t end) {
  Case<T> out = c;
  out.n.Tq = end - begin;
  out.pos0 += begin;
  out.text += ", queries " + std::to_string(begin) + " to " + std::to_string(end);
  out.q = part(c.q, 1, begin, end);
  out.mask = part(c.mask, 2, begin, end, true);
  out.bias = part(c.bias, 2, begin, end, true);
  out.make_outputs();
  out.d_o = part(c.d_o, 1, begin, end);
  return out;
}

// The three-token example of the textbooks: Q = K, d_k = d_v = 2.
inline Case<float> worked_case() {
  Case<float> c({1, 3, 3, 1, 1, 2, 2});
  const float k[3][2] = {{1, 0}, {0, 1}, {1, 1}}, v[3][2] = {{1, 0}, {0, 2}, {3, 3}};
  for (int i = 0; i < 3; ++i) {
    for (int x = 0; x < 2; ++x) {
      c.q(0, i, 0, x) = c.k(0, i, 0, x) = k[i][x];
      c.v(0, i, 0, x) = v[i][x];
    }
  }
  return c;
}

// ---- comparisons

template <int Rank>
std::string index_text(const std::array<int64_t, Rank>& index) {
  std::string text = "(";
  for (int i = 0; i < Rank; ++i) text += (i ? "," : "") + std::to_string(index[i]);
  return text + ")";
}

// |got - want| <= bound; NaN where NaN is wanted. Reports the first miss.
template <class T, int Rank>
void expect_close(const std::string& name, const Tensor<T, Rank>& got, const Tensor<double, Rank>& want,
                  const Tensor<double, Rank>& bound) {
  int64_t misses = 0;
  got.each([&](T& x, const std::array<int64_t, Rank>& index) {
    const double wanted = want.at(index), allowed = bound.at(index);
    const double error = std::abs(double(x) - wanted);
    const bool good = std::isnan(wanted) ? std::isnan(x) : double(x) == wanted || error <= allowed;
    if (!good && misses++ == 0) {
      ADD_FAILURE() << name << index_text<Rank>(index) << ": got " << x << ", expected " << wanted << ", allowed error "
                    << allowed;
    }
  });
  if (misses > 1) ADD_FAILURE() << name << ": " << misses << " elements in all";
}

template <class T, int Rank>
void expect_same_bits(const std::string& name, const Tensor<T, Rank>& got, const Tensor<T, Rank>& want) {
  int64_t misses = 0;
  got.each([&](T& x, const std::array<int64_t, Rank>& index) {
    if (!same_bits(x, want.at(index)) && misses++ == 0) {
      ADD_FAILURE() << name << index_text<Rank>(index) << ": got " << x << ", expected the bits of " << want.at(index);
    }
  });
}

template <class T>
void run(const Case<T>& c) {
  attention_forward(c.forward());
  attention_backward(c.backward());
}

template <class T>
void expect_same_results(const Case<T>& got, const Case<T>& want) {
  expect_same_bits("o", got.o, want.o);
  got.statistics.each([&](RowStatistic<T>& x, const std::array<int64_t, 3>& at) {
    const RowStatistic<T>& wanted = want.statistics.at(at);
    EXPECT_TRUE(same_bits(x.max, wanted.max) && same_bits(x.sum, wanted.sum))
        << "statistics" << index_text<3>(at) << ": got {" << x.max << ", " << x.sum << "}, expected the bits of {"
        << wanted.max << ", " << wanted.sum << "}";
  });
  expect_same_bits("dq", got.dq, want.dq);
  expect_same_bits("dk", got.dk, want.dk);
  expect_same_bits("dv", got.dv, want.dv);
  expect_same_bits("dbias", got.dbias, want.dbias);
  expect_same_bits("dslopes", got.dslopes, want.dslopes);
  expect_same_bits("dsinks", got.dsinks, want.dsinks);
}

// Runs `body` with every instruction set of this build and processor in turn.
template <class Body>
void on_every_isa(Body body) {
  for (const std::string& isa : supported_isas()) {
    SCOPED_TRACE(isa);
    force_isa(isa);
    ASSERT_EQ(active_isa(), isa);
    body();
  }
  force_isa("");
}

}  // namespace headlight::testing_attention
