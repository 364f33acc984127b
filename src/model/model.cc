#include "headlight/model/model.h"

#include "headlight/base/random.h"
#include "headlight/base/thread_pool.h"
#include "model/architecture.h"

namespace headlight {
namespace {

constexpr uint32_t kWeightStream = 0x57454947;  // "WEIG"

}  // namespace

template <class T>
BasicModel<T>::BasicModel(const ModelConfig& config)
    : config_(resolve(config)),
      architecture_(build_architecture<T>(config_)),
      weights_(architecture_->parameters.run_length()) {}

template <class T>
BasicModel<T>::~BasicModel() = default;
template <class T>
BasicModel<T>::BasicModel(BasicModel&&) noexcept = default;
template <class T>
BasicModel<T>& BasicModel<T>::operator=(BasicModel&&) noexcept = default;

template <class T>
BasicModel<T> BasicModel<T>::clone() const {
  BasicModel<T> copy(config_);
  copy.weights_ = weights_.clone();
  return copy;
}

template <class T>
const ParameterTable& BasicModel<T>::parameters() const noexcept {
  return architecture_->parameters;
}

template <class T>
const SiteTable& BasicModel<T>::sites() const noexcept {
  return architecture_->sites;
}

template <class T>
View<const T, 2> BasicModel<T>::matrix(const std::string& name) const {
  return headlight::matrix(parameters(), parameters().find(name), weights_.data());
}
template <class T>
View<const T, 1> BasicModel<T>::vector(const std::string& name) const {
  return headlight::vector(parameters(), parameters().find(name), weights_.data());
}
template <class T>
View<T, 2> BasicModel<T>::matrix(const std::string& name) {
  return headlight::matrix(parameters(), parameters().find(name), weights_.data());
}
template <class T>
View<T, 1> BasicModel<T>::vector(const std::string& name) {
  return headlight::vector(parameters(), parameters().find(name), weights_.data());
}

template <class T>
View<const T, 2> BasicModel<T>::unembedding() const {
  const Architecture<T>& a = *architecture_;
  if (a.unembedding >= 0) return headlight::matrix(a.parameters, a.unembedding, weights_.data());
  return View<const T, 2>(headlight::matrix(a.parameters, a.embedding, weights_.data())).swap(0, 1);
}

ParameterTable parameter_table(const ModelConfig& config) {
  return build_architecture<float>(resolve(config))->parameters;
}

template <class T>
void initialise(BasicModel<T>& model, uint64_t seed) {
  const std::vector<Parameter>& parameters = model.parameters().all();
  T* const run = model.weights().data;
  // one random stream per parameter: the numbers do not depend on which thread draws them
  default_pool().run(static_cast<int64_t>(parameters.size()), [&](int64_t index, int) {
    const Parameter& p = parameters[static_cast<std::size_t>(index)];
    RandomStream random(seed, kWeightStream, static_cast<uint64_t>(index));
    for (int64_t i = 0; i < p.count; ++i) {
      const double noise = p.initial_deviation == 0 ? 0.0 : p.initial_deviation * random.normal();
      run[p.offset + i] = static_cast<T>(p.initial_mean + noise);
    }
  });
}

BasicModel<double> to_double(const Model& model) {
  BasicModel<double> copy(model.config());
  const View<const float, 1> from = model.weights();
  const View<double, 1> to = copy.weights();
  for (int64_t i = 0; i < from.count(); ++i) to(i) = static_cast<double>(from(i));
  return copy;
}

NonFiniteWeights non_finite_weights(const Model& model) {
  const std::vector<Parameter>& parameters = model.parameters().all();
  std::vector<int64_t> counts(parameters.size());
  default_pool().run(static_cast<int64_t>(parameters.size()), [&](int64_t index, int) {
    const Parameter& p = parameters[static_cast<std::size_t>(index)];
    const float* values = model.weights().data + p.offset;
    int64_t count = 0;
    // the difference is NaN for NaN and infinity, else 0
    for (int64_t i = 0; i < p.count; ++i) count += !(values[i] - values[i] == 0.0F);
    counts[static_cast<std::size_t>(index)] = count;
  });
  NonFiniteWeights out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (out.count == 0 && counts[i] > 0) out.first = parameters[i].name;
    out.count += counts[i];
  }
  return out;
}

template class BasicModel<float>;
template class BasicModel<double>;
template void initialise(BasicModel<float>&, uint64_t);
template void initialise(BasicModel<double>&, uint64_t);

}  // namespace headlight
