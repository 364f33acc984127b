#include "kernels/reference/rotary.h"

namespace headlight::reference {

void rotary(const Rotary<double>& a) {
  const int64_t pairs = a.cosine.size(1);
  for (int64_t b = 0; b < a.x.size(0); ++b) {
    for (int64_t t = 0; t < a.x.size(1); ++t) {
      for (int64_t h = 0; h < a.x.size(2); ++h) {
        for (int64_t c = 0; c < pairs; ++c) {
          const int64_t first = a.pairs == RotaryPairs::kHalves ? c : 2 * c;
          const int64_t second = a.pairs == RotaryPairs::kHalves ? c + pairs : 2 * c + 1;
          const double cosine = a.cosine(a.positions(b, t), c);
          const double sine = a.sine(a.positions(b, t), c) * (a.inverse ? -1 : 1);
          const double x1 = a.x(b, t, h, first);
          const double x2 = a.x(b, t, h, second);
          a.y(b, t, h, first) = x1 * cosine - x2 * sine;
          a.y(b, t, h, second) = x2 * cosine + x1 * sine;
        }
        for (int64_t c = 2 * pairs; c < a.x.size(3); ++c) a.y(b, t, h, c) = a.x(b, t, h, c);
      }
    }
  }
}

}  // namespace headlight::reference
