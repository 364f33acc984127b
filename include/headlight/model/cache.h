#pragma once
// Keys and values of the tokens of one sequence that have run, so that the tokens after them run alone.

#include <cstdint>
#include <vector>

#include "headlight/model/model.h"
#include "headlight/tensor/buffer.h"

namespace headlight {

template <class T>
class BasicCache {
 public:
  // Room for `capacity` tokens. Throws Error (usage) when the model is bidirectional, so that later tokens would
  // change earlier ones, or when capacity exceeds its context.
  BasicCache(const BasicModel<T>& model, int64_t capacity);

  int64_t length() const noexcept { return length_; }
  int64_t capacity() const noexcept { return capacity_; }
  int64_t bytes() const noexcept { return memory_.count() * static_cast<int64_t>(sizeof(T)); }
  bool fits(const BasicModel<T>& model) const { return architecture_.get() == &model.architecture(); }

  // Forgets the tokens from `length` on. Throws LogicError when there are fewer.
  void shorten(int64_t length);

  // What forward() does: rows of attention layer `layer`, (1, capacity, Hkv, K) and (1, capacity, Hkv, M), of which
  // the first length() are set; a head's rows follow each other in memory. add() says that `tokens` more are.
  View<T, 4> keys(int64_t layer) { return layers_[static_cast<std::size_t>(layer)].keys; }
  View<T, 4> values(int64_t layer) { return layers_[static_cast<std::size_t>(layer)].values; }
  void add(int64_t tokens);

 private:
  struct Layer {
    View<T, 4> keys, values;
  };

  std::shared_ptr<const Architecture<T>> architecture_;
  int64_t capacity_;
  int64_t length_ = 0;
  Buffer<T> memory_;
  std::vector<Layer> layers_;
};

using Cache = BasicCache<float>;

}  // namespace headlight
