// Attention against the plain computation in the type that its operands are stored as.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "headlight/kernels/attention.h"
#include "kernels/attention_cases.h"
#include "kernels/reference/attention.h"

namespace headlight {
namespace {

using namespace testing_attention;

// What a framework without a fused kernel computes: products, softmax and their gradients one after the other, each
// summed in order in the accumulator and rounded to T where it would be stored. One head, one entry.
template <class T>
class Plain {
 public:
  using A = Accumulator<T>;

  explicit Plain(Case<T>& c) : c_(c), n_(c.n) {
    for (int64_t i = 0; i < n_.Tq; ++i) {
      forward(i);
      backward(i);
    }
    store(c_.dk, dk_);
    store(c_.dv, dv_);
  }

 private:
  static A rounded(A x) { return widen(narrow<T>(x)); }

  void forward(int64_t i) {
    A max = -kInf<A>, sum = 0;
    for (int64_t j = 0; j < n_.Tk; ++j) {
      A dot = 0;
      for (int64_t x = 0; x < n_.K; ++x) dot += widen(c_.q(0, i, 0, x)) * widen(c_.k(0, j, 0, x));
      P_[at(j)] = rounded(c_.scale * dot);
      max = std::max(max, P_[at(j)]);
    }
    for (A& p : P_) sum += p = std::exp(p - max);
    for (A& p : P_) p = rounded(p / sum);
    for (int64_t x = 0; x < n_.M; ++x) {
      A o = 0;
      for (int64_t j = 0; j < n_.Tk; ++j) o += P_[at(j)] * widen(c_.v(0, j, 0, x));
      c_.o(0, i, 0, x) = narrow<T>(o);
    }
  }

  void backward(int64_t i) {
    A D = 0;
    for (int64_t j = 0; j < n_.Tk; ++j) {
      A dP = 0;
      for (int64_t x = 0; x < n_.M; ++x) dP += widen(c_.d_o(0, i, 0, x)) * widen(c_.v(0, j, 0, x));
      dS_[at(j)] = rounded(dP);
      D += dS_[at(j)] * P_[at(j)];
    }
    for (int64_t j = 0; j < n_.Tk; ++j) {
      dS_[at(j)] = rounded(P_[at(j)] * (dS_[at(j)] - D));
      for (int64_t x = 0; x < n_.M; ++x) dv_[at(j * n_.M + x)] += P_[at(j)] * widen(c_.d_o(0, i, 0, x));
      for (int64_t x = 0; x < n_.K; ++x) dk_[at(j * n_.K + x)] += c_.scale * dS_[at(j)] * widen(c_.q(0, i, 0, x));
    }
    for (int64_t x = 0; x < n_.K; ++x) {
      A dq = 0;
      for (int64_t j = 0; j < n_.Tk; ++j) dq += dS_[at(j)] * widen(c_.k(0, j, 0, x));
      c_.dq(0, i, 0, x) = narrow<T>(c_.scale * dq);
    }
  }

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
  static void store(const Tensor<T, 4>& to, const std::vector<A>& from) {
    to.each([&](T& x, const auto& index) { x = narrow<T>(from[at(index[1] * to.sizes()[3] + index[3])]); });
  }

  Case<T>& c_;
  const Sizes n_;
  std::vector<A> P_ = std::vector<A>(at(n_.Tk)), dS_ = P_;
  std::vector<A> dk_ = std::vector<A>(at(n_.Tk * n_.K)), dv_ = std::vector<A>(at(n_.Tk * n_.M));
};

// root of the mean of squares
template <class T>
double error_of(const Tensor<T, 4>& got, const Tensor<double, 4>& want) {
  double sum = 0;
  got.each([&](T& x, const auto& at) { sum += std::pow(number(x) - want.at(at), 2); });
  return std::sqrt(sum / static_cast<double>(std::max<int64_t>(1, got.view().count())));
}

template <class T>
void expect_no_worse_than_plain(uint64_t seed, Data data, int64_t length) {
  Case<T> c({1, std::min<int64_t>(length, 64), length, 1, 1, 64, 32});
  RandomStream random(seed, 7, 0);
  for (const auto* x : {&c.q, &c.k, &c.v, &c.d_o}) randomize(*x, random, data);
  c.scale = 0.125f;
  run(c);
  const Case<double> exact = c.template as<double>();
  reference::attention_forward(exact.forward());
  reference::attention_backward(exact.backward());
  Case<T> plain = c;
  Plain<T>{plain};
  const auto expect = [&](const char* name, const Tensor<T, 4>& got, const Tensor<T, 4>& other,
                          const Tensor<double, 4>& want) {
    EXPECT_LE(error_of(got, want), 2 * error_of(other, want))
        << name << ", data " << static_cast<int>(data) << ", " << length << " keys, " << sizeof(T) << " bytes";
  };
  expect("o", c.o, plain.o, exact.o);
  // Where all values are nearly equal, dP - D cancels: the short floats of the plain computation then agree and
  // cancel to 0 by accident, and in float the last bit of o decides, which the plain computation does not read.
  if (data == Data::kLarge || (data == Data::kOffset && std::is_same_v<T, float>)) return;
  expect("dq", c.dq, plain.dq, exact.dq);
  expect("dk", c.dk, plain.dk, exact.dk);
  expect("dv", c.dv, plain.dv, exact.dv);
}

TEST(AttentionPrecision, IsNeverTwiceAsBadAsThePlainComputation) {
  on_every_isa([] {
    uint64_t seed = 0;
    for (const Data data : {Data::kNormal, Data::kHeavyTails, Data::kOffset, Data::kLarge}) {
      for (const int64_t length : {16, 100, 128, 300, 1100}) {
        expect_no_worse_than_plain<float>(++seed, data, length);
        expect_no_worse_than_plain<BFloat16>(seed, data, length);
        expect_no_worse_than_plain<Float16>(seed, data, length);
      }
    }
  });
}

}  // namespace
}  // namespace headlight
