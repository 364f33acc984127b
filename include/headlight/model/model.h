#pragma once
// A model: configuration, weights, and the list of sublayers on its residual stream. Constant while it runs,
// so that threads may share it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headlight/model/config.h"
#include "headlight/model/parameters.h"
#include "headlight/model/sites.h"
#include "headlight/model/stored_matrix.h"
#include "headlight/tensor/buffer.h"
#include "headlight/tensor/dtype.h"
#include "headlight/text/tokenizer.h"

namespace headlight {

template <class T>
struct Architecture;  // the sublayers and what they declared; src/model/architecture.h

// T is the type of weights and activations: float, or double for checking gradients.
template <class T>
class BasicModel {
 public:
  // All weights 0. `config` is resolved first; throws as resolve(). `matrices` is how weight matrices are kept: as T
  // (F32), or with T float as BF16 or F16, which halves what a token reads; such a model runs forward and is not
  // trained, saved or taken apart. Vectors are always T.
  explicit BasicModel(const ModelConfig& config, DType matrices = DType::kF32);
  ~BasicModel();
  BasicModel(BasicModel&&) noexcept;
  BasicModel& operator=(BasicModel&&) noexcept;

  BasicModel clone() const;

  const ModelConfig& config() const noexcept { return config_; }
  const ParameterTable& parameters() const noexcept;
  const SiteTable& sites() const noexcept;
  const Architecture<T>& architecture() const noexcept { return *architecture_; }
  std::shared_ptr<const Architecture<T>> shared_architecture() const noexcept { return architecture_; }

  DType matrices() const noexcept { return matrices_; }
  // of all weights
  int64_t weight_bytes() const noexcept {
    return weights_.count() * static_cast<int64_t>(sizeof(T)) + short_.count() * static_cast<int64_t>(sizeof(uint16_t));
  }

  // All weights as one packed run (see ParameterTable). Throws LogicError when matrices are kept short, as do the three
  // after it.
  View<T, 1> weights() {
    demand_wide("weights");
    return weights_.template view<1>({weights_.count()});
  }
  View<const T, 1> weights() const {
    demand_wide("weights");
    return weights_.template view<1>({weights_.count()});
  }
  // One parameter by name; throws LogicError on an unknown name or another rank.
  View<const T, 2> matrix(const std::string& name) const;
  View<const T, 1> vector(const std::string& name) const;
  View<T, 2> matrix(const std::string& name);
  View<T, 1> vector(const std::string& name);
  // (D, V): W_U, or W_E transposed when tied.
  View<const T, 2> unembedding() const;

  // Parameters by index, as they are kept.
  StoredMatrix<T> stored(int parameter) const;
  View<const T, 1> vector(int parameter) const;
  View<T, 1> vector(int parameter);
  StoredMatrix<T> stored_unembedding() const;
  // Sets a matrix (rows, columns) from numbers in row-major order, rounded to how it is kept.
  void set_matrix(int parameter, View<const T, 1> values);

 private:
  void demand_wide(const char* what) const;

  ModelConfig config_;
  std::shared_ptr<const Architecture<T>> architecture_;
  DType matrices_;
  std::vector<int64_t> places_;  // per parameter: its first element in weights_ or, of a short matrix, in short_
  Buffer<T> weights_;
  Buffer<uint16_t> short_;
};

using Model = BasicModel<float>;

// The parameters of a model of this configuration, without memory for their numbers.
ParameterTable parameter_table(const ModelConfig& config);

// Draws all weights: matrices normal with deviation 0.8 / sqrt(inputs), those that write to the stream divided
// by sqrt(2 L), norms 1, biases 0. The same numbers for the same seed, whatever the threads.
template <class T>
void initialise(BasicModel<T>& model, uint64_t seed);

// The same weights in another type.
BasicModel<double> to_double(const Model& model);

// A folder with config.json and model.safetensors, the .safetensors file in such a folder, a .gguf file, or
// a llama2.c file (.bin).
// Errors: missing input, bad data (names the tensor or key, what was found and expected).
Model load_model(const std::filesystem::path& path, DType matrices = DType::kF32);
// Its configuration alone; also from a config.json.
ModelConfig load_config(const std::filesystem::path& path);
// Its tokenizer: tokenizer.json in the folder, the .gguf file's own, or tokenizer.bin beside the .bin file. Errors as
// those that read it.
std::shared_ptr<const Tokenizer> load_tokenizer_of(const std::filesystem::path& path);

// Weights that are NaN or infinite. Files may hold them; nothing computed from them means anything.
struct NonFiniteWeights {
  int64_t count = 0;
  std::string first{};  // the parameter that holds the first of them
};
NonFiniteWeights non_finite_weights(const Model& model);

// Writes both files, each whole or not at all. Makes the folder. Errors: cannot create, cannot write.
void save_model(const Model& model, const std::filesystem::path& folder);

// The same as the Hugging Face library reads it, with weights rounded to `type` (F32, F16 or BF16). Returns the
// `model_type` that it writes. Throws Error (usage) naming, family by family, what of the model it does not have, or the
// tensor with a finite number that `type` cannot hold; else as save_model().
std::string save_hugging_face_model(const Model& model, const std::filesystem::path& folder, DType type = DType::kF32);

}  // namespace headlight
