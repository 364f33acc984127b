#pragma once
// The parameters of a model: one table of names and shapes, one packed run of numbers.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "headlight/tensor/view.h"

namespace headlight {

struct Parameter {
  std::string name;              // "blocks.0.attn.W_Q"
  std::vector<int64_t> shape{};  // weights multiply from the right: W_Q is (D, H K)
  double initial_mean = 0;       // drawn from a normal distribution at the start of training
  double initial_deviation = 0;
  bool decays = false;  // weight decay applies (matrices; not biases, norms)
  int64_t offset = 0;   // of the first element in the packed run
  int64_t count = 0;    // elements
};

class ParameterTable {
 public:
  // Adds a parameter at the end of the run and returns its index.
  int add(Parameter parameter);

  const std::vector<Parameter>& all() const noexcept { return parameters_; }
  const Parameter& operator[](int index) const { return parameters_[static_cast<std::size_t>(index)]; }
  // Elements of all parameters together. Each parameter begins at a multiple of 16 elements; the gaps are 0.
  int64_t run_length() const noexcept { return length_; }
  // Elements without gaps.
  int64_t count() const noexcept { return count_; }
  // Throws LogicError when there is none of this name.
  int find(const std::string& name) const;
  bool contains(const std::string& name) const noexcept;

 private:
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, int> by_name_;
  int64_t length_ = 0;
  int64_t count_ = 0;
};

// Parameter `index` inside a packed run, as a matrix or a vector. Throws LogicError on another rank.
template <class T>
View<T, 2> matrix(const ParameterTable& table, int index, T* run) {
  const Parameter& p = table[index];
  if (p.shape.size() != 2) throw LogicError("matrix", p.name + " is not a matrix");
  return {run + p.offset, {p.shape[0], p.shape[1]}};
}
template <class T>
View<T, 1> vector(const ParameterTable& table, int index, T* run) {
  const Parameter& p = table[index];
  return {run + p.offset, {p.count}};
}

}  // namespace headlight
