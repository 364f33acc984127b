// The kernels stand alone: one query that sees two keys of equal score averages their values.

#include <headlight/kernels/attention.h>
#include <headlight/kernels/matmul.h>
#include <headlight/tensor/buffer.h>

#include <cstdio>

using namespace headlight;

int main() {
  Buffer<float> q(2), k(4), v(4), o(2);
  v[0] = 1;
  v[1] = 2;
  v[2] = 3;
  v[3] = 6;
  attention_forward({.q = q.view<4>({1, 1, 1, 2}),
                     .k = k.view<4>({1, 2, 1, 2}),
                     .v = v.view<4>({1, 2, 1, 2}),
                     .o = o.view<4>({1, 1, 1, 2})});
  std::printf("attention: got (%g, %g), expected (2, 4)\n", static_cast<double>(o[0]), static_cast<double>(o[1]));

  Buffer<float> product(1);
  matmul<float>({.a = o.view<2>({1, 2}), .b = v.view<2>({2, 1}), .c = product.view<2>({1, 1})});
  std::printf("matmul: got %g, expected 10\n", static_cast<double>(product[0]));
  return o[0] == 2 && o[1] == 4 && product[0] == 10 ? 0 : 1;
}
