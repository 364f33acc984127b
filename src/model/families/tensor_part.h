#pragma once
// Which tensor of a file a parameter lies in, and how.

#include <cstdint>
#include <string>
#include <vector>

namespace headlight {

// Where the outputs of one map lie among those of a file's tensor. Output o of the parameter is the file's
// (o / group) stride + offset + o % group; a file whose heads hold rotary pairs side by side has them in halves here.
struct OutputOrder {
  int64_t group = 0;         // outputs that lie together; 0: all of the tensor's, in order
  int64_t stride = 0;        // from one group to the next
  int64_t offset = 0;        // of the first
  int64_t paired_width = 0;  // R: the first R of a group lie in pairs, (2c, 2c + 1) for (c, c + R/2) here

  bool is_plain() const { return group == 0; }
  int64_t in_file(int64_t output) const {
    if (is_plain()) return output;
    int64_t within = output % group;
    if (within < paired_width) {
      const int64_t half = paired_width / 2;
      within = within < half ? 2 * within : 2 * (within - half) + 1;
    }
    return output / group * stride + offset + within;
  }
};

struct TensorPart {
  std::string parameter;    // "blocks.0.attn.W_Q"
  std::string tensor;       // "model.layers.0.self_attn.q_proj.weight"
  bool transposed = false;  // a matrix (out, in) in the file, (in, out) here
  OutputOrder order{};
};

}  // namespace headlight
