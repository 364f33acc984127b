#pragma once
// What a sublayer is: it reads rows of the (normalised) residual stream and adds what it computed back.

#include <cstdint>

#include "headlight/model/batch.h"
#include "headlight/model/cache.h"
#include "headlight/model/count.h"
#include "headlight/model/model.h"
#include "headlight/model/run.h"

namespace headlight {

// What forward and backward of a sublayer have at hand.
template <class T>
struct Pass {
  const BasicModel<T>& model;
  const Batch& batch;
  typename BasicRun<T>::State& run;
  T* gradients = nullptr;          // packed like the weights; backward only
  BasicCache<T>* cache = nullptr;  // the tokens before the batch; forward only
  int64_t rows() const { return batch.size * batch.time; }
  // (B, T), from the first token of the sequence, which may be in the cache
  View<const int32_t, 2> positions() const { return run.positions.template view<2>({batch.size, batch.time}); }

  StoredMatrix<T> weight(int parameter) const { return model.stored(parameter); }
  // absent when the parameter is (-1)
  View<const T, 1> weight_vector(int parameter) const {
    if (parameter < 0) return {};
    return model.vector(parameter);
  }
  View<T, 2> gradient(int parameter) const { return matrix(model.parameters(), parameter, gradients); }
  View<T, 1> gradient_vector(int parameter) const {
    if (parameter < 0) return {};
    return vector(model.parameters(), parameter, gradients);
  }
};

template <class T>
class Sublayer {
 public:
  virtual ~Sublayer() = default;

  // out = residual + F(in), or F(in) when there is no residual. in, residual, out: (B T, D).
  virtual void forward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> residual, View<T, 2> out) const = 0;

  // Given d_out = d(loss)/d(out): adds to the gradients of the weights, and sets d_in = d(loss)/d(in) through F
  // alone (the residual's part is the caller's), or adds to it with `accumulate`. d_in may be d_out itself.
  virtual void backward(const Pass<T>& pass, View<const T, 2> in, View<const T, 2> d_out, View<T, 2> d_in,
                        bool accumulate) const = 0;
};

}  // namespace headlight
