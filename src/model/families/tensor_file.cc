#include "model/families/tensor_file.h"

#include <fmt/format.h>

namespace headlight {
namespace {

template <class Format>
class TensorsOf final : public TensorFile {
 public:
  explicit TensorsOf(const Format& file) : file_(file) {}
  std::string name() const override { return file_.name(); }
  std::vector<TensorEntry> entries() const override {
    std::vector<TensorEntry> out;
    for (const auto& tensor : file_.tensors()) out.push_back({tensor.name, tensor.shape});
    return out;
  }
  void read_rows(std::size_t index, int64_t first, std::span<float> rows) const override {
    headlight::read_rows(file_.tensors()[index], first, rows);
  }

 private:
  const Format& file_;
};

class Llama2cTensors final : public TensorFile {
 public:
  Llama2cTensors(const Llama2cContent& content, const std::string& name) : name_(name) {
    for (const StoredTensor& tensor : content.tensors) add(tensor, content.sizes.blocks);
  }
  std::string name() const override { return name_; }
  std::vector<TensorEntry> entries() const override {
    std::vector<TensorEntry> out;
    for (const StoredTensor& tensor : tensors_) out.push_back({tensor.name, tensor.shape});
    return out;
  }
  void read_rows(std::size_t index, int64_t first, std::span<float> rows) const override {
    headlight::read_rows(tensors_[index], first, rows);
  }

 private:
  void add(const StoredTensor& tensor, int64_t blocks) {
    const bool of_blocks = tensor.shape.size() == 3 || tensor.name == "attention_norm" || tensor.name == "ffn_norm";
    if (!of_blocks) {
      tensors_.push_back(tensor);
      return;
    }
    for (int64_t block = 0; block < blocks; ++block) {
      StoredTensor part = tensor;
      part.name = fmt::format("{}.{}", tensor.name, block);
      part.shape.erase(part.shape.begin());
      part.count /= blocks;
      const std::size_t bytes = tensor.bytes.size() / static_cast<std::size_t>(blocks);
      part.bytes = tensor.bytes.subspan(static_cast<std::size_t>(block) * bytes, bytes);
      tensors_.push_back(std::move(part));
    }
  }

  std::string name_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace

std::unique_ptr<TensorFile> tensor_file(const Safetensors& file) {
  return std::make_unique<TensorsOf<Safetensors>>(file);
}
std::unique_ptr<TensorFile> tensor_file(const Gguf& file) { return std::make_unique<TensorsOf<Gguf>>(file); }
std::unique_ptr<TensorFile> tensor_file(const Llama2cContent& content, const std::string& name) {
  return std::make_unique<Llama2cTensors>(content, name);
}

}  // namespace headlight
