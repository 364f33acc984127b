#include "headlight/model/parameters.h"

namespace headlight {
namespace {

constexpr int64_t kAlignment = 16;  // elements: one cache line of floats

}  // namespace

int ParameterTable::add(Parameter parameter) {
  if (contains(parameter.name)) throw LogicError("ParameterTable::add", parameter.name + " is there already");
  parameter.offset = length_;
  parameter.count = 1;
  for (int64_t n : parameter.shape) parameter.count *= n;
  length_ += (parameter.count + kAlignment - 1) / kAlignment * kAlignment;
  count_ += parameter.count;
  parameters_.push_back(std::move(parameter));
  return static_cast<int>(parameters_.size()) - 1;
}

int ParameterTable::find(const std::string& name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return static_cast<int>(i);
  }
  throw LogicError("ParameterTable::find", "the model has no parameter " + name);
}

bool ParameterTable::contains(const std::string& name) const noexcept {
  for (const Parameter& p : parameters_) {
    if (p.name == name) return true;
  }
  return false;
}

}  // namespace headlight
