#include "kernels/reference/bilinear_attention.h"

#include "kernels/attention_plan.h"
#include "kernels/reference/attention.h"

namespace headlight::reference {
namespace {

// Calls body(b, i, h, c, e) for every row i that is a query of its entry, and every column of W.
template <class Args, class Body>
void each_term(const Args& args, Body body) {
  for (int64_t b = 0; b < args.q.size(0); ++b) {
    const Range valid = spans_of(args.pattern, b, args.q.size(1), args.k.size(1)).q;
    for (int64_t i = valid.begin; i < valid.end; ++i) {
      for (int64_t h = 0; h < args.q.size(2); ++h) {
        for (int64_t c = 0; c < args.q.size(3); ++c) {
          for (int64_t e = 0; e < args.k.size(3); ++e) body(b, i, h, c, e);
        }
      }
    }
  }
}

void fill_zero(const View<double, 3>& view) {
  for (int64_t h = 0; h < view.size(0); ++h) {
    for (int64_t c = 0; c < view.size(1); ++c) {
      for (int64_t e = 0; e < view.size(2); ++e) view(h, c, e) = 0;
    }
  }
}
void fill_zero(const View<double, 4>& view) {
  for (int64_t b = 0; b < view.size(0); ++b) fill_zero(view[b]);
}

}  // namespace

void bilinear_attention_forward(const BilinearForward<double>& args) {
  fill_zero(args.projected);
  each_term(args, [&](int64_t b, int64_t i, int64_t h, int64_t c, int64_t e) {
    args.projected(b, i, h, e) += args.q(b, i, h, c) * args.w(h, c, e);
  });
  attention_forward(attention_of(args));
}

void bilinear_attention_backward(const BilinearBackward<double>& args) {
  attention_backward(attention_of(args));
  fill_zero(args.dq);
  fill_zero(args.dw);
  each_term(args, [&](int64_t b, int64_t i, int64_t h, int64_t c, int64_t e) {
    const double dp = args.d_projected(b, i, h, e);
    args.dq(b, i, h, c) += args.w(h, c, e) * dp;
    args.dw(h, c, e) += args.q(b, i, h, c) * dp;
  });
}

}  // namespace headlight::reference
