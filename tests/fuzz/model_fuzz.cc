// Any bytes as a model that another program wrote: the readers either make a model or throw Error. The first byte
// chooses between config.json of others and of our own, a GGUF file, its tokenizer, and a llama2.c file.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "headlight/base/error.h"
#include "model/families/foreign_models.h"

namespace {

using namespace headlight;

// The bytes as a file, in memory.
class File {
 public:
  explicit File(const std::string& bytes) : number_(::memfd_create("fuzz", 0)) {
    if (number_ < 0 || ::write(number_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("no file in memory");
    }
  }
  ~File() { ::close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

void read(uint8_t choice, const std::string& bytes) {
  switch (choice % 5) {
    case 0:
      hugging_face_config(bytes, "fuzz");
      break;
    case 1:
      model_config_from_json(bytes, "fuzz");
      break;
    case 2:
      load_gguf(File(bytes).path(), DType::kF32);
      break;
    case 3:
      gguf_tokenizer(File(bytes).path());
      break;
    default:
      load_llama2c(File(bytes).path(), DType::kF32);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  try {
    read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const headlight::Error&) {
    return 0;
  }
  return 0;
}
