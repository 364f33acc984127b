#include "headlight/model/model.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "headlight/base/random.h"
#include "headlight/base/thread_pool.h"
#include "model/architecture.h"

namespace headlight {
namespace {

constexpr uint32_t kWeightStream = 0x57454947;  // "WEIG"

}  // namespace

template <class T>
BasicModel<T>::BasicModel(const ModelConfig& config, DType matrices)
    : config_(resolve(config)), architecture_(build_architecture<T>(config_)), matrices_(matrices) {
  const bool can_be_short = std::is_same_v<T, float> && (matrices == DType::kBF16 || matrices == DType::kF16);
  if (matrices != DType::kF32 && !can_be_short) {
    throw LogicError("BasicModel", "matrices of " + std::string(dtype_info(matrices).name));
  }
  const ParameterTable& table = architecture_->parameters;
  ParameterTable vectors, short_matrices;  // the same parameters in two runs
  for (const Parameter& p : table.all()) {
    ParameterTable& run = can_be_short && p.shape.size() == 2 ? short_matrices : vectors;
    places_.push_back(run[run.add(p)].offset);
  }
  weights_ = Buffer<T>(vectors.run_length());
  short_ = Buffer<uint16_t>(short_matrices.run_length());
}

template <class T>
BasicModel<T>::~BasicModel() = default;
template <class T>
BasicModel<T>::BasicModel(BasicModel&&) noexcept = default;
template <class T>
BasicModel<T>& BasicModel<T>::operator=(BasicModel&&) noexcept = default;

template <class T>
BasicModel<T> BasicModel<T>::clone() const {
  BasicModel<T> copy(config_, matrices_);
  copy.weights_ = weights_.clone();
  copy.short_ = short_.clone();
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
void BasicModel<T>::demand_wide(const char* what) const {
  if (matrices_ == DType::kF32) return;
  throw LogicError(what, "the matrices are kept as " + std::string(dtype_info(matrices_).name));
}

template <class T>
View<const T, 2> BasicModel<T>::matrix(const std::string& name) const {
  demand_wide("matrix");
  return headlight::matrix(parameters(), parameters().find(name), weights_.data());
}
template <class T>
View<T, 2> BasicModel<T>::matrix(const std::string& name) {
  demand_wide("matrix");
  return headlight::matrix(parameters(), parameters().find(name), weights_.data());
}
template <class T>
View<const T, 1> BasicModel<T>::vector(const std::string& name) const {
  return vector(parameters().find(name));
}
template <class T>
View<T, 1> BasicModel<T>::vector(const std::string& name) {
  return vector(parameters().find(name));
}

template <class T>
View<const T, 1> BasicModel<T>::vector(int parameter) const {
  const Parameter& p = parameters()[parameter];
  if (p.shape.size() == 2) demand_wide("vector");
  return {weights_.data() + places_[static_cast<std::size_t>(parameter)], {p.count}};
}
template <class T>
View<T, 1> BasicModel<T>::vector(int parameter) {
  const View<const T, 1> view = std::as_const(*this).vector(parameter);
  return {const_cast<T*>(view.data), view.sizes};
}

template <class T>
StoredMatrix<T> BasicModel<T>::stored(int parameter) const {
  const Parameter& p = parameters()[parameter];
  if (p.shape.size() != 2) throw LogicError("stored", p.name + " is not a matrix");
  const std::array<int64_t, 2> sizes{p.shape[0], p.shape[1]};
  const int64_t place = places_[static_cast<std::size_t>(parameter)];
  StoredMatrix<T> out;
  if (matrices_ == DType::kBF16) {
    out.bf16 = {reinterpret_cast<const BFloat16*>(short_.data() + place), sizes};
  } else if (matrices_ == DType::kF16) {
    out.f16 = {reinterpret_cast<const Float16*>(short_.data() + place), sizes};
  } else {
    out.wide = {weights_.data() + place, sizes};
  }
  return out;
}

template <class T>
void BasicModel<T>::set_matrix(int parameter, View<const T, 1> values) {
  const Parameter& p = parameters()[parameter];
  if (p.shape.size() != 2 || values.count() != p.count || !values.is_packed()) {
    throw LogicError("set_matrix", p.name + " from " + shape_text(values));
  }
  const int64_t place = places_[static_cast<std::size_t>(parameter)];
  if (matrices_ == DType::kF32) {
    std::copy(values.data, values.data + p.count, weights_.data() + place);
    return;
  }
  constexpr int64_t kEach = 1 << 16;
  default_pool().run((p.count + kEach - 1) / kEach, [&](int64_t task, int) {
    for (int64_t i = task * kEach; i < std::min(p.count, (task + 1) * kEach); ++i) {
      const float x = static_cast<float>(values.data[i]);
      short_[place + i] = matrices_ == DType::kBF16 ? narrow<BFloat16>(x).bits : narrow<Float16>(x).bits;
    }
  });
}

template <class T>
View<const T, 2> BasicModel<T>::unembedding() const {
  demand_wide("unembedding");
  return stored_unembedding().wide;
}

template <class T>
StoredMatrix<T> BasicModel<T>::stored_unembedding() const {
  const Architecture<T>& a = *architecture_;
  return a.unembedding >= 0 ? stored(a.unembedding) : stored(a.embedding).swap(0, 1);
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
    const auto count = [&](const auto* values) {
      int64_t& found = counts[static_cast<std::size_t>(index)];
      // the difference is NaN for NaN and infinity, else 0
      for (int64_t i = 0; i < p.count; ++i) found += !(widen(values[i]) - widen(values[i]) == 0.0F);
    };
    const int parameter = static_cast<int>(index);
    if (p.shape.size() != 2 || model.matrices() == DType::kF32) return count(model.vector(parameter).data);
    const StoredMatrix<float> matrix = model.stored(parameter);
    return matrix.bf16.data != nullptr ? count(matrix.bf16.data) : count(matrix.f16.data);
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
