#include "headlight/model/cache.h"

#include "headlight/base/error.h"
#include "model/architecture.h"

namespace headlight {
namespace {

template <class T>
std::shared_ptr<const Architecture<T>> checked(const BasicModel<T>& model, int64_t capacity) {
  const ModelConfig& config = model.config();
  if (!config.causal) {
    throw Error(ErrorKind::kUsage, "cache", "the model is bidirectional", "later tokens change earlier ones");
  }
  if (capacity < 0 || capacity > config.context) {
    throw Error(ErrorKind::kUsage, "cache", std::to_string(capacity) + " tokens",
                "expected 0 to the model's context, " + std::to_string(config.context));
  }
  return model.shared_architecture();
}

template <class T>
int64_t elements(const Architecture<T>& architecture, int64_t capacity) {
  int64_t per_token = 0;
  for (const CacheShape& shape : architecture.caches) per_token += shape.heads * (shape.key_width + shape.value_width);
  return checked_bytes("BasicCache", std::array<int64_t, 2>{capacity, per_token}, 1);
}

}  // namespace

template <class T>
BasicCache<T>::BasicCache(const BasicModel<T>& model, int64_t capacity)
    : architecture_(checked(model, capacity)), capacity_(capacity), memory_(elements(*architecture_, capacity)) {
  T* next = memory_.data();
  const auto take = [&](int64_t heads, int64_t width) {
    T* rows = next;
    next += capacity * heads * width;
    return View<T, 4>(rows, {1, capacity, heads, width}, {capacity * heads * width, width, capacity * width, 1});
  };
  for (const CacheShape& shape : architecture_->caches) {
    const View<T, 4> keys = take(shape.heads, shape.key_width);
    layers_.push_back({keys, take(shape.heads, shape.value_width)});
  }
}

template <class T>
void BasicCache<T>::shorten(int64_t length) {
  if (length < 0 || length > length_) {
    throw LogicError("BasicCache::shorten", "to " + std::to_string(length) + " of " + std::to_string(length_));
  }
  length_ = length;
}

template <class T>
void BasicCache<T>::add(int64_t tokens) {
  if (tokens < 0 || length_ + tokens > capacity_) {
    throw LogicError("BasicCache::add",
                     std::to_string(tokens) + " to " + std::to_string(length_) + " of " + std::to_string(capacity_));
  }
  length_ += tokens;
}

template class BasicCache<float>;
template class BasicCache<double>;

}  // namespace headlight
