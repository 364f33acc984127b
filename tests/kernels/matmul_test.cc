#include "headlight/kernels/matmul.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kernels/matmul_plan.h"
#include "kernels/reference/matmul.h"
#include "kernels/rows.h"

namespace headlight {
namespace {

using namespace testing_rows;

// The ways in which a matrix may lie in memory.
enum class Form { kRows, kColumns, kSpread, kReversed };
constexpr Form kForms[] = {Form::kRows, Form::kColumns, Form::kSpread, Form::kReversed};

// An input matrix of a form, in memory that is NaN elsewhere and ends with it, so that the address sanitizer
// sees a read beyond.
template <class T>
class Operand {
 public:
  Operand(const Matrix<double>& values, Form form, int64_t misaligned = 0, int64_t gap = 0) {
    const int64_t m = values.rows();
    const int64_t n = values.columns();
    View<T, 2> v(nullptr, {m, n}, {n + gap, 1});
    if (form == Form::kColumns) v.strides = {1, m + gap};
    if (form == Form::kSpread) v.strides = {2 * (2 * n + gap), 2};
    const int64_t last = v.empty() ? -1 : (m - 1) * v.stride(0) + (n - 1) * v.stride(1);
    memory_.assign(static_cast<size_t>(misaligned + last + 1), T(std::nan("")));
    v.data = memory_.data() + misaligned;
    if (form == Form::kReversed) {
      if (!v.empty()) v.data += last;
      v.strides = {-v.stride(0), -1};
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) v(i, j) = static_cast<T>(values(i, j));
    }
    view_ = v;
  }
  View<const T, 2> view() const { return view_; }

 private:
  std::vector<T> memory_;
  View<const T, 2> view_;
};

// What a case asks of the epilogue.
struct Epilogue {
  bool bias = false;
  Activation activation = Activation::kNone;
  bool pre = false;
  enum Residual { kNone, kApart, kC } residual = kNone;
  bool accumulate = false;
};

std::vector<Epilogue> epilogues() {
  std::vector<Epilogue> all{{.accumulate = true}};
  for (bool bias : {false, true}) {
    for (Activation f : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh}) {
      for (bool pre : {false, true}) {
        for (auto residual : {Epilogue::kNone, Epilogue::kApart, Epilogue::kC}) {
          all.push_back({bias, f, pre, residual, false});
        }
      }
    }
  }
  return all;
}

struct Case {
  int64_t m;
  int64_t n;
  int64_t k;
  Form a = Form::kRows;
  Form b = Form::kRows;
  Epilogue epilogue{};
  Layout layout{};
};

std::string text(const Case& c) {
  const Epilogue& e = c.epilogue;
  return "m " + std::to_string(c.m) + ", n " + std::to_string(c.n) + ", k " + std::to_string(c.k) + ", a form " +
         std::to_string(static_cast<int>(c.a)) + ", b form " + std::to_string(static_cast<int>(c.b)) + ", bias " +
         std::to_string(e.bias) + ", activation " + std::to_string(static_cast<int>(e.activation)) + ", pre " +
         std::to_string(e.pre) + ", residual " + std::to_string(e.residual) + ", accumulate " +
         std::to_string(e.accumulate) + ", misaligned " + std::to_string(c.layout.misaligned) + ", gap " +
         std::to_string(c.layout.gap);
}

// A case's inputs, rounded to T so that float and the reference see the same numbers.
template <class T>
struct Inputs {
  Matrix<double> a, b, bias, residual;

  explicit Inputs(const Case& c) : a(c.m, c.k), b(c.k, c.n), bias(1, c.n), residual(c.m, c.n) {}
  Inputs(const Case& c, uint64_t seed) : Inputs(c) {
    RandomStream random(seed, 3, 0);
    for (Matrix<double>* x : {&a, &b, &bias, &residual}) {
      x->randomize(random);
      *x = x->template as<T>().template as<double>();
    }
  }
};

template <class T>
struct Outputs {
  Matrix<T> c;
  Matrix<T> pre;
};

template <class T>
Matmul<T> arguments(const Epilogue& e, const Operand<T>& a, const Operand<T>& b, const Matrix<T>& bias,
                    const Matrix<T>& residual, Outputs<T>& out) {
  Matmul<T> args{.a = a.view(), .b = b.view(), .c = out.c.view()};
  if (e.bias) args.bias = bias.row();
  if (e.residual == Epilogue::kApart) args.residual = residual.view();
  if (e.residual == Epilogue::kC) args.residual = out.c.view();
  if (e.pre) args.pre = out.pre.view();
  args.activation = e.activation;
  args.accumulate = e.accumulate;
  return args;
}

// Runs a case on poisoned outputs, or where c is read, on c = residual.
template <class T>
Outputs<T> run(const Case& c, const Inputs<T>& in) {
  const Operand<T> a(in.a, c.a, c.layout.misaligned, c.layout.gap);
  const Operand<T> b(in.b, c.b, c.layout.misaligned, c.layout.gap);
  const Matrix<T> bias = in.bias.template as<T>(c.layout);
  const Matrix<T> residual = in.residual.template as<T>(c.layout);
  const bool reads_c = c.epilogue.accumulate || c.epilogue.residual == Epilogue::kC;
  Outputs<T> out{reads_c ? in.residual.template as<T>(c.layout) : Matrix<T>(c.m, c.n, c.layout),
                 Matrix<T>(c.m, c.n, c.layout)};
  matmul<T>(arguments(c.epilogue, a, b, bias, residual, out));
  out.c.expect_surroundings_untouched();
  out.pre.expect_surroundings_untouched();
  return out;
}

Matrix<double> magnitudes(const Matrix<double>& x) {
  Matrix<double> out(x.rows(), x.columns());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.columns(); ++j) out(i, j) = std::abs(x(i, j));
  }
  return out;
}

// The same operation in double, and the same on magnitudes without activation: what rounding is relative to.
template <class T>
Outputs<double> expected(const Case& c, const Inputs<T>& in, bool of_magnitudes) {
  const auto pick = [&](const Matrix<double>& x) { return of_magnitudes ? magnitudes(x) : x.as<double>(); };
  const Operand<double> a(pick(in.a), Form::kRows);
  const Operand<double> b(pick(in.b), Form::kRows);
  const Matrix<double> bias = pick(in.bias);
  const Matrix<double> residual = pick(in.residual);
  Outputs<double> out{pick(in.residual), Matrix<double>(c.m, c.n)};
  Epilogue e = c.epilogue;
  if (of_magnitudes) e.activation = Activation::kNone;
  reference::matmul(arguments(e, a, b, bias, residual, out));
  return out;
}

// A sum of k products and two more terms, each step rounded to u = epsilon / 2, is off by at most
// (k + 2) u (|a| |b| + ...) to first order (Higham 2002, section 3.1); the slope of the activations is below
// 1.2, and they add some units of their own result, which the last terms hold.
template <class T>
double bound(const Case& c, double magnitude) {
  const double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  return (1.2 * static_cast<double>(c.k + 2) + 20) * u * magnitude + 1e-300;
}

template <class T>
void expect_within_bound(const char* name, const Case& c, const Matrix<T>& got, const Matrix<double>& wanted,
                         const Matrix<double>& magnitude) {
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      // beyond x = -6 in float GELU is cut to 0, at most 6e-9 too high
      const double cut = c.epilogue.activation == Activation::kGelu && sizeof(T) == 4 ? 6e-9 : 0;
      ASSERT_LE(std::abs(static_cast<double>(got(i, j)) - wanted(i, j)), bound<T>(c, magnitude(i, j)) + cut)
          << name << "(" << i << "," << j << "): got " << got(i, j) << ", expected " << wanted(i, j);
    }
  }
}

template <class T>
void expect_right(const Case& c, uint64_t seed) {
  SCOPED_TRACE(text(c) + ", seed " + std::to_string(seed) + (sizeof(T) == 4 ? ", float" : ", double"));
  const Inputs<T> in(c, seed);
  const Outputs<T> got = run<T>(c, in);
  const Outputs<double> wanted = expected(c, in, false);
  const Outputs<double> magnitude = expected(c, in, true);
  expect_within_bound("c", c, got.c, wanted.c, magnitude.c);
  if (c.epilogue.pre) expect_within_bound("pre", c, got.pre, wanted.pre, magnitude.pre);
}

TEST(Matmul, IsRightAtEverySmallSize) {
  on_every_isa([] {
    uint64_t seed = 0;
    for (int64_t m = 0; m <= 30; ++m) {
      for (int64_t n : {0, 1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 47, 48, 65}) {
        const int64_t k = static_cast<int64_t>(seed % 37);
        expect_right<float>({m, n, k}, ++seed);
        expect_right<double>({m, n, k}, ++seed);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// 32 times the same decisions: sizes around the ends of blocks, tiles, panels and tasks.
int64_t awkward_size(RandomStream& random, int64_t most) {
  static constexpr int64_t kSizes[] = {0,  1,  2,  3,   4,   5,   13,  14,  15,  28, 29,
                                       63, 64, 65, 127, 128, 129, 255, 256, 257, 300};
  const int64_t size =
      random.below(3) == 0 ? static_cast<int64_t>(random.below(100)) : kSizes[random.below(std::size(kSizes))];
  return std::min(size, most);
}

int64_t awkward_length(RandomStream& random) {
  static constexpr int64_t kLengths[] = {0, 1, 2, 3, 15, 16, 17, 383, 384, 385, 400, 767, 768, 769, 1153};
  return random.below(2) == 0 ? static_cast<int64_t>(random.below(100)) : kLengths[random.below(std::size(kLengths))];
}

Case any_case(RandomStream& random) {
  static const std::vector<Epilogue> kEpilogues = epilogues();
  Case c;
  c.k = awkward_length(random);
  // the reference takes some nanoseconds a product
  const int64_t most = c.k > 300 ? 70 : 300;
  c.m = awkward_size(random, most);
  c.n = awkward_size(random, most);
  c.a = kForms[random.below(std::size(kForms))];
  c.b = kForms[random.below(std::size(kForms))];
  c.epilogue = kEpilogues[random.below(kEpilogues.size())];
  c.layout = {static_cast<int64_t>(random.below(4)), static_cast<int64_t>(random.below(4))};
  return c;
}

TEST(Matmul, IsRightForRandomShapesFormsAndEpilogues) {
  on_every_isa([] {
    for (uint64_t seed = 0; seed < 150; ++seed) {
      RandomStream random(seed, 4, 0);
      expect_right<float>(any_case(random), seed);
      expect_right<double>(any_case(random), seed);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(Matmul, IsRightForEveryEpilogueAndFormOnSeveralBlocksOfK) {
  on_every_isa([] {
    uint64_t seed = 1'000;
    for (const Epilogue& e : epilogues()) {
      for (int64_t m : {1, 3, 37}) {
        expect_right<float>({m, 41, 790, kForms[seed % 4], kForms[seed / 4 % 4], e}, seed);
        ++seed;
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(Matmul, GivesTheEpilogueOfZeroWhenKIsZero) {
  on_every_isa([] {
    Matrix<float> none(3, 0);
    Matrix<float> none_b(0, 5);
    Matrix<float> bias(1, 5);
    Matrix<float> c(3, 5);
    bias.fill(-2);
    matmul<float>({.a = none.view(), .b = none_b.view(), .c = c.view(), .bias = bias.row()});
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(c(2, j), -2);
    matmul<float>({.a = none.view(), .b = none_b.view(), .c = c.view()});
    EXPECT_EQ(c(2, 4), 0);
    matmul<float>({.a = {nullptr, {3, 0}}, .b = {nullptr, {0, 5}}, .c = c.view(), .accumulate = true});
    EXPECT_EQ(c(0, 0), 0);
  });
}

TEST(Matmul, ReadsBroadcastOperands) {
  on_every_isa([] {
    const float two = 2;
    Matrix<float> c(20, 40);
    matmul<float>({.a = {&two, {20, 9}, {0, 0}}, .b = {&two, {9, 40}, {0, 0}}, .c = c.view()});
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t j = 0; j < 40; ++j) ASSERT_EQ(c(i, j), 36) << i << "," << j;
    }
  });
}

TEST(Matmul, CarriesInfinitiesAndNanAlsoThroughZeros) {
  on_every_isa([] {
    for (const int64_t m : {1, 2, 20}) {
      Matrix<float> a(m, 30);
      Matrix<float> b(30, 50);
      Matrix<float> c(m, 50);
      a.fill(0);
      b.fill(1);
      a(0, 3) = 1;
      b(4, 7) = INFINITY;  // 0 * inf
      b(3, 9) = -INFINITY;
      b(29, 49) = NAN;
      matmul<float>({.a = a.view(), .b = b.view(), .c = c.view()});
      EXPECT_TRUE(std::isnan(c(0, 7)));
      EXPECT_EQ(c(0, 9), -INFINITY);
      EXPECT_TRUE(std::isnan(c(m - 1, 49)));
      EXPECT_EQ(c(0, 8), 1);
    }
  });
}

// ---- the same bits

template <class T>
Outputs<T> run_rows(const Case& c, const Inputs<T>& in, int64_t first, int64_t rows) {
  Case part = c;
  part.m = rows;
  Inputs<T> part_in(part);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t l = 0; l < c.k; ++l) part_in.a(i, l) = in.a(first + i, l);
    for (int64_t j = 0; j < c.n; ++j) part_in.residual(i, j) = in.residual(first + i, j);
  }
  part_in.b = in.b.template as<double>();
  part_in.bias = in.bias.template as<double>();
  return run<T>(part, part_in);
}

template <class T>
void expect_rows_of(const Case& c, const Outputs<T>& part, int64_t first, const Outputs<T>& whole) {
  const int64_t rows = part.c.rows();
  expect_same_bits<T>("c", part.c.view(), whole.c.view().slice(0, first, first + rows));
  if (c.epilogue.pre) expect_same_bits<T>("pre", part.pre.view(), whole.pre.view().slice(0, first, first + rows));
}

// A row's bits do not depend on the rows beside it, on the form of the operands or on the number of threads.
template <class T>
void expect_same_bits_everywhere(Case c, uint64_t seed) {
  SCOPED_TRACE(text(c) + ", seed " + std::to_string(seed));
  const Inputs<T> in(c, seed);
  const Outputs<T> whole = run<T>(c, in);
  for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 29, 64}) {
    if (rows > c.m) break;
    const int64_t first = (rows * 37) % (c.m - rows + 1);
    SCOPED_TRACE(std::to_string(rows) + " rows from " + std::to_string(first));
    for (Form b : kForms) {
      Case part = c;
      part.b = b;
      part.a = kForms[(rows + static_cast<int64_t>(b)) % 4];
      expect_rows_of<T>(c, run_rows<T>(part, in, first, rows), first, whole);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Matmul, GivesARowTheSameBitsAloneAndInAnyBatchAndForm) {
  on_every_isa([] {
    const Epilogue full{.bias = true, .activation = Activation::kGelu, .pre = true, .residual = Epilogue::kC};
    for (int64_t k : {1, 5, 64, 384, 385, 1000}) {
      for (int64_t n : {1, 17, 32, 65, 160}) {
        expect_same_bits_everywhere<float>({70, n, k, Form::kRows, Form::kRows, {}}, 5);
        expect_same_bits_everywhere<double>({70, n, k, Form::kRows, Form::kRows, full}, 6);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    expect_same_bits_everywhere<float>({70, 37, 400, Form::kRows, Form::kRows, {.accumulate = true}}, 7);
  });
}

TEST(Matmul, GivesTheFirstRowsOfALargeBatchTheirBits) {
  const Case c{2048, 96, 130};
  const Inputs<float> in(c, 8);
  const Outputs<float> whole = run<float>(c, in);
  for (int64_t rows = 1; rows <= 64; ++rows) {
    const int64_t first = 2048 - 31 * rows;
    expect_rows_of<float>(c, run_rows<float>(c, in, first, rows), first, whole);
  }
}

TEST(Matmul, GivesAColumnTheSameBitsAloneAndAmongOthers) {
  on_every_isa([] {
    const Case c{50, 300, 420};
    const Inputs<float> in(c, 9);
    const Operand<float> a(in.a, Form::kRows);
    const Operand<float> b(in.b, Form::kRows);
    const Outputs<float> whole = run<float>(c, in);
    for (int64_t columns : {1, 2, 15, 16, 17, 31, 33, 100, 299}) {
      for (int64_t m : {1, 3, 50}) {
        const int64_t first = (columns * 41) % (300 - columns + 1);
        Matrix<float> part(m, columns);
        matmul<float>({.a = a.view().slice(0, 0, m), .b = b.view().slice(1, first, first + columns), .c = part.view()});
        expect_same_bits<float>("c", part.view(), whole.c.view().slice(0, 0, m).slice(1, first, first + columns));
      }
    }
  });
}

// the product with b stored short, against that with the same numbers stored long
template <class B>
void expect_bits_of_the_widened(int64_t m, int64_t k, int64_t n, bool transposed, RandomStream& random) {
  Buffer<float> a(m * k), bias(n), residual(m * n), wide(k * n), found(m * n), wanted(m * n);
  Buffer<B> narrow_b(k * n);
  for (Buffer<float>* x : {&a, &bias, &residual}) {
    for (float& value : *x) value = static_cast<float>(random.normal());
  }
  for (int64_t i = 0; i < wide.count(); ++i) {
    narrow_b[i] = narrow<B>(static_cast<float>(random.normal()));
    wide[i] = widen(narrow_b[i]);
  }
  const View<float, 2> x = a.view<2>({m, k});
  const View<B, 2> b = transposed ? narrow_b.template view<2>({n, k}).swap(0, 1) : narrow_b.template view<2>({k, n});
  const View<float, 2> b_wide = transposed ? wide.view<2>({n, k}).swap(0, 1) : wide.view<2>({k, n});
  const bool finishes = random.below(2) == 0;
  Matmul<float> long_product{.a = x, .b = b_wide, .c = wanted.view<2>({m, n})};
  Matmul<float, B> short_product{.a = x, .b = b, .c = found.view<2>({m, n})};
  if (finishes) {
    long_product.bias = short_product.bias = bias.view<1>({n});
    long_product.residual = short_product.residual = residual.view<2>({m, n});
  }
  matmul(long_product);
  matmul(short_product);
  for (int64_t i = 0; i < m * n; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(wanted[i]))
        << m << " x " << k << " x " << n << (transposed ? " transposed" : "") << " at " << i << ": " << found[i]
        << ", expected " << wanted[i];
  }
}

TEST(Matmul, ReadsShortNumbersAsTheirWidenedSelves) {
  RandomStream random(71, 1, 0);
  for (int trial = 0; trial < 60; ++trial) {
    const auto below = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.below(most)); };
    const int64_t m = trial % 2 == 0 ? below(8) : below(70), k = below(500), n = below(trial % 10 == 0 ? 5000 : 300);
    for (const bool transposed : {false, true}) {
      expect_bits_of_the_widened<BFloat16>(m, k, n, transposed, random);
      expect_bits_of_the_widened<Float16>(m, k, n, transposed, random);
    }
  }
}

// As wide as the maps of real models: the columns of few rows are shared out in several ways.
TEST(Matmul, IsRightForFewRowsOfManyColumns) {
  on_every_isa([] {
    with_every_number_of_threads([] {
      for (const int64_t m : {1, 2, 3, 5, 8}) {
        for (const Form b : {Form::kRows, Form::kColumns}) {
          expect_right<float>({.m = m, .n = 4500 + m, .k = 33, .b = b}, 73);
          expect_right<double>({.m = m, .n = 1500 + m, .k = 400, .b = b}, 74);
        }
      }
    });
  });
}

TEST(Matmul, GivesTheSameBitsForAnyNumberOfThreads) {
  on_every_isa([] {
    const Epilogue full{.bias = true, .activation = Activation::kGeluTanh, .pre = true, .residual = Epilogue::kApart};
    for (const Case& c : {Case{300, 150, 500, Form::kRows, Form::kColumns, full},
                          Case{64, 65, 1100, Form::kColumns, Form::kRows, {.accumulate = true}}, Case{1, 700, 450},
                          Case{2, 513, 450, Form::kRows, Form::kColumns}}) {
      SCOPED_TRACE(text(c));
      const Inputs<float> in(c, 10);
      std::optional<Outputs<float>> first;
      with_every_number_of_threads([&] {
        Outputs<float> now = run<float>(c, in);
        if (!first)
          first = std::move(now);
        else
          expect_rows_of<float>(c, now, 0, *first);
      });
    }
  });
}

// products of different sizes that share a, each with the bits that it has alone
template <class B>
void expect_bits_of_each_alone(int64_t m, std::size_t count, RandomStream& random) {
  const auto below = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.below(most)); };
  const auto numbers = [&](int64_t size) {
    Buffer<float> x(size);
    for (float& value : x) value = static_cast<float>(random.normal());
    return x;
  };
  const int64_t k = below(800);
  const Buffer<float> a = numbers(m * k);
  std::vector<Buffer<float>> memory;
  std::vector<Buffer<B>> weights;
  std::vector<Matmul<float, B>> alone, together;
  for (std::size_t i = 0; i < count; ++i) {
    const int64_t n = static_cast<int64_t>(random.below(700));
    weights.emplace_back(k * n);
    for (B& value : weights.back()) value = narrow<B>(static_cast<float>(random.normal()));
    const View<const B, 2> b = random.below(2) == 0 ? weights.back().template view<2>({k, n})
                                                    : weights.back().template view<2>({n, k}).swap(0, 1);
    alone.push_back({.a = a.view<2>({m, k}), .b = b, .c = memory.emplace_back(m * n).view<2>({m, n})});
    if (random.below(2) == 0) {
      const Buffer<float>& bias = memory.emplace_back(numbers(n));
      alone.back().bias = bias.view<1>({n});
    }
    together.push_back(alone.back());
    together.back().c = memory.emplace_back(m * n).view<2>({m, n});
    matmul(alone.back());
  }
  matmul_together(std::span<const Matmul<float, B>>(together));
  for (std::size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(std::to_string(i) + " of " + std::to_string(count) + ", " + std::to_string(m) + " x " +
                 std::to_string(k) + " x " + std::to_string(alone[i].c.size(1)));
    expect_same_bits<float>("c", together[i].c, alone[i].c);
  }
}

TEST(MatmulTogether, GivesEachProductTheBitsThatItHasAlone) {
  on_every_isa([] {
    with_every_number_of_threads([] {
      RandomStream random(72, 1, 0);
      for (int trial = 0; trial < 12; ++trial) {
        const int64_t m = 1 + static_cast<int64_t>(random.below(trial % 3 == 0 ? 40 : 8));
        expect_bits_of_each_alone<float>(m, random.below(5), random);
        expect_bits_of_each_alone<BFloat16>(m, random.below(5), random);
        expect_bits_of_each_alone<Float16>(m, random.below(5), random);
      }
    });
  });
}

TEST(SumOrder, CutsKIntoBlocksThatCoverItOnce) {
  for (int64_t k = 0; k < 5'000; ++k) {
    const SumOrder order(k);
    ASSERT_EQ(order.begin(0), 0);
    ASSERT_EQ(order.end(order.blocks - 1), k);
    ASSERT_LE(order.length, SumOrder::kLongest) << k;
    for (int64_t block = 1; block < order.blocks; ++block) {
      ASSERT_EQ(order.begin(block), order.end(block - 1)) << k;
      ASSERT_LT(order.begin(block), order.end(block)) << k;
    }
  }
}

TEST(MatmulPlan, CoversEveryTileAndPanelOnce) {
  RandomStream random(11, 1, 0);
  for (int round = 0; round < 500; ++round) {
    const MatmulPlan plan(1 + static_cast<int64_t>(random.below(3'000)), 1 + static_cast<int64_t>(random.below(3'000)),
                          static_cast<int64_t>(random.below(2'000)), 14, 32);
    std::vector<int> seen(static_cast<size_t>(plan.tiles * plan.panels));
    for (int64_t index = 0; index < plan.tasks(); ++index) {
      const MatmulTask task = plan.task(index);
      ASSERT_LE(task.end_tile - task.first_tile, plan.tiles_per_task);
      ASSERT_LE(task.end_panel - task.first_panel, plan.panels_per_task);
      for (int64_t t = task.first_tile; t < task.end_tile; ++t) {
        for (int64_t p = task.first_panel; p < task.end_panel; ++p) ++seen[static_cast<size_t>(t * plan.panels + p)];
      }
    }
    for (int count : seen) ASSERT_EQ(count, 1) << plan.rows << " x " << plan.columns;
    ASSERT_EQ(plan.first_row(0), 0);
    ASSERT_EQ(plan.first_row(plan.tiles), plan.rows);
    for (int64_t t = 0; t < plan.tiles; ++t) {
      ASSERT_GE(plan.first_row(t + 1) - plan.first_row(t), 1);
      ASSERT_LE(plan.first_row(t + 1) - plan.first_row(t), 14);
    }
  }
}

// ---- what is refused

class MatmulRefuses : public ::testing::Test {
 protected:
  MatmulRefuses() {
    args_ = {.a = memory_.view<2>({4, 6}), .b = memory_.view<2>({6, 5}, 100), .c = memory_.view<2>({4, 5}, 200)};
  }
  // throws, and writes nothing
  void expect_refusal(const std::string& part) {
    const Buffer<float> before = memory_.clone();
    try {
      matmul(args_);
      ADD_FAILURE() << "not refused: " << part;
    } catch (const LogicError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    for (int64_t i = 0; i < memory_.count(); ++i) ASSERT_EQ(memory_[i], before[i]) << i;
  }
  Buffer<float> memory_{1000};
  Matmul<float> args_;
};

TEST_F(MatmulRefuses, SizesThatDoNotFit) {
  args_.b.sizes = {7, 5};
  expect_refusal("b (7,5); wanted (6,5)");
  args_.b.sizes = {6, 5};
  args_.c.sizes = {5, 4};
  expect_refusal("c (5,4); wanted (4,5)");
  args_.c.sizes = {4, 5};
  args_.bias = memory_.view<1>({4}, 300);
  expect_refusal("bias (4); wanted (5)");
  args_.bias = {};
  args_.residual = memory_.view<2>({4, 4}, 300);
  expect_refusal("residual (4,4)");
  args_.residual = {};
  args_.pre = memory_.view<2>({3, 5}, 300);
  expect_refusal("pre (3,5)");
}

TEST_F(MatmulRefuses, OutputsWithoutUnitStrideOrWithOverlappingRows) {
  args_.c = memory_.view<2>({5, 4}, 200).swap(0, 1);
  expect_refusal("c (4,5)");
  args_.c = memory_.view<2>({4, 5}, 200);
  args_.c.strides[0] = 4;
  expect_refusal("overlap");
}

TEST_F(MatmulRefuses, OutputsThatOverlapInputsOrEachOther) {
  args_.c = memory_.view<2>({4, 5}, 20);
  expect_refusal("c overlaps a");
  args_.a = memory_.view<2>({6, 4}).swap(0, 1);
  expect_refusal("c overlaps a");
  args_.c = memory_.view<2>({4, 5}, 129);
  expect_refusal("c overlaps b");
  args_.c = memory_.view<2>({4, 5}, 200);
  args_.bias = memory_.view<1>({5}, 215);
  expect_refusal("c overlaps bias");
  args_.bias = {};
  args_.residual = memory_.view<2>({4, 5}, 201);
  expect_refusal("c overlaps residual");
  args_.residual = {};
  args_.pre = args_.c;
  expect_refusal("pre overlaps c");
  args_.pre = memory_.view<2>({4, 5}, 23);
  expect_refusal("pre overlaps a");
}

TEST_F(MatmulRefuses, AccumulateWithAnEpilogue) {
  args_.accumulate = true;
  args_.activation = Activation::kRelu;
  expect_refusal("accumulate");
  args_.activation = Activation::kNone;
  args_.bias = memory_.view<1>({5}, 300);
  expect_refusal("accumulate");
  args_.bias = {};
  args_.residual = memory_.view<2>({4, 5}, 300);
  expect_refusal("accumulate");
  args_.residual = {};
  args_.pre = memory_.view<2>({4, 5}, 300);
  expect_refusal("accumulate");
}

TEST_F(MatmulRefuses, NothingThatLiesBesideItsOutputInTheSameRows) {
  // a, b and c as columns of one matrix
  args_.a = memory_.view<2>({10, 20}).slice(1, 0, 6).slice(0, 0, 4);
  args_.b = memory_.view<2>({10, 20}).slice(1, 6, 11).slice(0, 0, 6);
  args_.c = memory_.view<2>({10, 20}).slice(1, 11, 16).slice(0, 0, 4);
  EXPECT_NO_THROW(matmul(args_));
}

TEST_F(MatmulRefuses, ProductsThatWriteWhatAnotherReadsOrWrites) {
  const auto expect_refusal_together = [&](const Matmul<float>& second, const std::string& part) {
    const Buffer<float> before = memory_.clone();
    for (const auto& both : {std::array{args_, second}, std::array{second, args_}}) {
      try {
        matmul_together(std::span<const Matmul<float>>(both));
        ADD_FAILURE() << "not refused: " << part;
      } catch (const LogicError& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      }
    }
    for (int64_t i = 0; i < memory_.count(); ++i) ASSERT_EQ(memory_[i], before[i]) << i;
  };
  Matmul<float> second = args_;
  second.c = memory_.view<2>({4, 5}, 210);
  expect_refusal_together(second, "c overlaps c of another");
  second.c = memory_.view<2>({4, 5}, 400);
  second.pre = memory_.view<2>({4, 5}, 215);
  expect_refusal_together(second, "of another");
  second.pre = {};
  second.residual = args_.c;
  expect_refusal_together(second, "c overlaps residual of another");
  second.residual = {};
  second.a = memory_.view<2>({4, 6}, 190);
  expect_refusal_together(second, "c overlaps a");
  second.a = args_.a;
  second.bias = memory_.view<1>({5}, 200);
  expect_refusal_together(second, "c overlaps bias");
  second.bias = {};
  second.b.sizes = {7, 5};
  expect_refusal_together(second, "b (7,5); wanted (6,5)");
}

// ---- column sums

template <class T>
void expect_column_sums(int64_t rows, int64_t n, Layout layout) {
  SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(n));
  RandomStream random(12, 1, static_cast<uint64_t>(rows * 1000 + n));
  Matrix<T> x(rows, n, layout);
  Matrix<T> sums(1, n, layout);
  x.randomize(random);
  sums.randomize(random);
  Matrix<double> wanted = sums.template as<double>();
  Matrix<double> magnitude = magnitudes(wanted);
  const Matrix<double> x_wide = x.template as<double>();
  reference::add_column_sums(x_wide.view(), wanted.row());
  reference::add_column_sums(magnitudes(x_wide).view(), magnitude.row());
  add_column_sums<T>(x.view(), sums.row());
  sums.expect_surroundings_untouched();
  // at most 64 additions in a block, then one per block
  const double steps = 64 + static_cast<double>(rows) / 64 + 2;
  for (int64_t j = 0; j < n; ++j) {
    ASSERT_LE(std::abs(static_cast<double>(sums(0, j)) - wanted(0, j)),
              steps * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 * magnitude(0, j))
        << "column " << j << ": got " << sums(0, j) << ", expected " << wanted(0, j);
  }
}

TEST(AddColumnSums, AddsEveryColumn) {
  on_every_isa([] {
    for (int64_t n : awkward_lengths()) {
      for (Layout layout : awkward_layouts()) {
        for (int64_t rows : {0, 1, 2, 63, 64, 65, 200}) expect_column_sums<float>(rows, n, layout);
        expect_column_sums<double>(130, n, layout);
      }
    }
  });
}

TEST(AddColumnSums, GivesAColumnTheSameBitsAloneAndForAnyNumberOfThreads) {
  on_every_isa([] {
    RandomStream random(13, 1, 0);
    Matrix<float> x(700, 200);
    x.randomize(random);
    Matrix<float> wanted(1, 200);
    wanted.fill(1);
    add_column_sums<float>(x.view(), wanted.row());
    with_every_number_of_threads([&] {
      for (int64_t first : {0, 1, 15, 64, 130}) {
        for (int64_t columns : {1, 3, 16, 70}) {
          Matrix<float> sums(1, columns);
          sums.fill(1);
          add_column_sums<float>(x.view().slice(1, first, first + columns), sums.row());
          expect_same_bits<float>("sums", sums.view(), wanted.view().slice(1, first, first + columns));
        }
      }
    });
  });
}

TEST(AddColumnSums, RefusesSizesThatDifferAndOverlaps) {
  Buffer<float> memory(100);
  EXPECT_THROW(add_column_sums<float>(memory.view<2>({3, 4}), memory.view<1>({3}, 50)), LogicError);
  EXPECT_THROW(add_column_sums<float>(memory.view<2>({3, 4}), memory.view<1>({4}, 10)), LogicError);
  EXPECT_THROW(add_column_sums<float>(memory.view<2>({3, 4}).swap(0, 1), memory.view<1>({3}, 50)), LogicError);
}

}  // namespace
}  // namespace headlight
