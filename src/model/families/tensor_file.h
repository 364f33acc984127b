#pragma once
// What holds a model's tensors: one face for the formats, so that a family names its tensors and knows no format.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headlight/formats/gguf.h"
#include "headlight/formats/llama2c.h"
#include "headlight/formats/safetensors.h"

namespace headlight {

struct TensorEntry {
  std::string name;
  std::vector<int64_t> shape;
};

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual std::string name() const = 0;
  virtual std::vector<TensorEntry> entries() const = 0;
  // Rows of shape.back() numbers from row `first` on, as many as `rows` takes; `index` is that of the entry. Threads
  // may call it side by side. Throws Error (bad data) when the tensor's type cannot be read as numbers.
  virtual void read_rows(std::size_t index, int64_t first, std::span<float> rows) const = 0;
};

std::unique_ptr<TensorFile> tensor_file(const Safetensors& file);
std::unique_ptr<TensorFile> tensor_file(const Gguf& file);
// A tensor of all blocks comes as one for each: "wq.0", "wq.1", ...
std::unique_ptr<TensorFile> tensor_file(const Llama2cContent& content, const std::string& name);

}  // namespace headlight
