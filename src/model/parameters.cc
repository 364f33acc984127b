#include "headlight/model/parameters.h"

namespace headlight {
namespace {

constexpr int64_t kAlignment = 16;  // elements: one cache line of floats

}  // namespace

int ParameterTable::add(Parameter parameter) {
  if (!by_name_.emplace(parameter.name, static_cast<int>(parameters_.size())).second) {
    throw LogicError("ParameterTable::add", parameter.name + " is there already");
  }
  parameter.offset = length_;
  parameter.count = 1;
  for (int64_t n : parameter.shape) parameter.count *= n;
  length_ += (parameter.count + kAlignment - 1) / kAlignment * kAlignment;
  count_ += parameter.count;
  parameters_.push_back(std::move(parameter));
  return static_cast<int>(parameters_.size()) - 1;
}

int ParameterTable::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) throw LogicError("ParameterTable::find", "the model has no parameter " + name);
  return found->second;
}

bool ParameterTable::contains(const std::string& name) const noexcept { return by_name_.count(name) != 0; }

}  // namespace headlight
