#pragma once
// A parameter from a file, however the model keeps it.

#include "headlight/model/model.h"

namespace headlight {

// `load(to)` writes the parameter's numbers in row-major order.
template <class Load>
void load_parameter(Model& model, int parameter, Load load) {
  const Parameter& p = model.parameters()[parameter];
  if (model.matrices() == DType::kF32 || p.shape.size() == 1) return load(model.vector(parameter).data);
  Buffer<float> wide(p.count);
  load(wide.data());
  model.set_matrix(parameter, wide.view<1>({p.count}));
}

}  // namespace headlight
