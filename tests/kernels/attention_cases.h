#pragma once
// Random attention problems: sizes, layouts in memory, patterns and data from a seed, of every type that numbers
// are stored as. Shared by the attention tests.

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

namespace headlight::testing_attention {

template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

// A number as any type stores it, and what is stored.
template <class T>
double number(T x) {
  return static_cast<double>(widen(x));
}
template <class T>
T stored(double x) {
  return narrow<T>(static_cast<Accumulator<T>>(x));
}

// Whether two numbers have the same bits; any two NaN count as the same.
template <class T>
bool same_bits(T a, T b) {
  const double x = number(a), y = number(b);
  return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
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
    each([&](T& x, const Sizes& index) { out.at(index) = stored<U>(number(x)); });
    return out;
  }

 private:
  static std::array<int, Rank> identity() {
    std::array<int, Rank> order{};
    for (int i = 0; i < Rank; ++i) order[i] = i;
    return order;
  }
  static constexpr float kPoison = -7.7777e33f;
  static T poison_value() {
    if constexpr (requires(T x) { x.bits; }) {
      return {0xf7a3};
    } else if constexpr (std::is_arithmetic_v<T>) {
      return T(kPoison);
    } else {
      return {kPoison, kPoison};
    }
  }
  static bool is_poison(const T& x) {
    if constexpr (requires { x.bits; }) {
      return x.bits == poison_value().bits;
    } else if constexpr (std::is_arithmetic_v<T>) {
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
  using A = Accumulator<T>;
  Sizes n;
  std::string text;  // how it was made
  Tensor<T, 4> q, k, v, o, d_o, dq, dk, dv;
  Tensor<RowStatistic<A>, 3> statistics;
  // the pattern's views are those of the tensors below that exist
  A scale = 1;
  int64_t pos0 = 0;
  std::optional<int64_t> left, right;
  std::optional<A> soft_cap;
  Tensor<int64_t, 1> q_len, k_len, q_begin, k_begin;
  Tensor<uint8_t, 4> mask;
  Tensor<A, 4> bias, dbias;
  Tensor<A, 1> slopes, sinks, dslopes, dsinks;
  Tensor<A, 2> additive, d_additive;

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
    statistics = Tensor<RowStatistic<A>, 3>(std::array<int64_t, 3>{n.B, n.H, n.Tq});
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
    if (additive.exists()) d_additive = additive, d_additive.poison();
  }

  AttentionPattern<A> pattern() const {
    AttentionPattern<A> p;
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
    p.additive = additive.view();
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
    args.d_additive = d_additive.view();
    args.pattern = pattern();
    return args;
  }
  // rows [begin, end) of all heads into `weights`
  AttentionRows<T> rows(const Tensor<A, 4>& weights, int64_t begin = 0, int64_t head = 0) const {
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
  Tensor<A, 4> weights() const {
    Tensor<A, 4> out({n.B, n.H, n.Tq, n.Tk});
    out.poison();
    return out;
  }

  // The same problem in another type, packed.
  template <class U>
  Case<U> as() const {
    using B = Accumulator<U>;
    Case<U> out(n);
    out.text = text;
    out.q = q.template as<U>();
    out.k = k.template as<U>();
    out.v = v.template as<U>();
    out.scale = static_cast<B>(scale);
    out.pos0 = pos0;
    out.left = left;
    out.right = right;
    if (soft_cap) out.soft_cap = static_cast<B>(*soft_cap);
    out.q_len = q_len;
    out.k_len = k_len;
    out.q_begin = q_begin;
    out.k_begin = k_begin;
    out.mask = mask;
    out.bias = bias.template as<B>();
    out.slopes = slopes.template as<B>();
    out.sinks = sinks.template as<B>();
    out.additive = additive.template as<B>();
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
    x = stored<T>(size * value);
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
  using A = Accumulator<T>;
  c.scale =
      static_cast<A>(pick<double>(random, {1.0, 0.125, 0.3, 1 / std::sqrt(static_cast<double>(c.n.K + 1)), -0.5}));
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
    c.bias = Tensor<A, 4>(random_broadcast(random, c.n));
    randomize(c.bias, random);
    if (chance(random, 50)) {
      c.bias.each([&](A& x, const auto&) {
        if (chance(random, 20)) x = -kInf<A>;
      });
    }
  }
  if (chance(random, 20)) c.soft_cap = static_cast<A>(pick<double>(random, {0.5, 2.0, 30.0}));
  if (chance(random, 20)) {
    c.slopes = Tensor<A, 1>(std::array<int64_t, 1>{c.n.H});
    c.slopes.each([&](A& x, const auto&) { x = static_cast<A>(0.5 * random.uniform()); });
  }
  if (chance(random, 20)) {
    c.sinks = Tensor<A, 1>(std::array<int64_t, 1>{c.n.H});
    randomize(c.sinks, random, Data::kNormal, 2);
  }
  if (chance(random, 20)) {
    c.additive = Tensor<A, 2>(std::array<int64_t, 2>{c.n.H, c.n.K}, {0, 1}, 1, chance(random, 30) ? 3 : 0);
    randomize(c.additive, random);
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
           (c.slopes.exists() ? " slopes" : "") + (c.sinks.exists() ? " sinks" : "") +
           (c.additive.exists() ? " additive" : "");
  return c;
}

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
  out.additive = part(c.additive, 0, h, h + 1);
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

// |got - want| <= bound; NaN where NaN is wanted, infinite where T holds nothing that large. Reports the first miss.
template <class T, int Rank>
void expect_close(const std::string& name, const Tensor<T, Rank>& got, const Tensor<double, Rank>& want,
                  const Tensor<double, Rank>& bound) {
  int64_t misses = 0;
  got.each([&](T& x, const std::array<int64_t, Rank>& index) {
    const double wanted = want.at(index), allowed = bound.at(index);
    const double error = std::abs(number(x) - wanted);
    const bool good =
        std::isnan(wanted) ? std::isnan(number(x)) : error <= allowed || number(x) == number(stored<T>(wanted));
    if (!good && misses++ == 0) {
      ADD_FAILURE() << name << index_text<Rank>(index) << ": got " << number(x) << ", expected " << wanted
                    << ", allowed error " << allowed;
    }
  });
  if (misses > 1) ADD_FAILURE() << name << ": " << misses << " elements in all";
}

template <class T, int Rank>
void expect_same_bits(const std::string& name, const Tensor<T, Rank>& got, const Tensor<T, Rank>& want) {
  int64_t misses = 0;
  got.each([&](T& x, const std::array<int64_t, Rank>& index) {
    if (!same_bits(x, want.at(index)) && misses++ == 0) {
      ADD_FAILURE() << name << index_text<Rank>(index) << ": got " << number(x) << ", expected the bits of "
                    << number(want.at(index));
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
  got.statistics.each([&](RowStatistic<Accumulator<T>>& x, const std::array<int64_t, 3>& at) {
    const RowStatistic<Accumulator<T>>& wanted = want.statistics.at(at);
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
  expect_same_bits("d_additive", got.d_additive, want.d_additive);
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
