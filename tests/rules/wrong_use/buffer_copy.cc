// A buffer is never copied by accident.
#include "headlight/tensor/buffer.h"

headlight::Buffer<float> use(const headlight::Buffer<float>& buffer) {
#ifdef WRONG
  return buffer;
#else
  return buffer.clone();
#endif
}
