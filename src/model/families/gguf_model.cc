// GGUF files of the architectures in the table of families.

#include <fmt/format.h>

#include <algorithm>

#include "headlight/base/error.h"
#include "headlight/formats/gguf.h"
#include "model/families/foreign_models.h"
#include "model/families/transfer.h"

namespace headlight {
namespace {

const Family& family_of(const GgufKeys& keys) {
  std::vector<std::string> known;
  for (const Family& family : families()) {
    for (const std::string& name : family.architectures) {
      if (name == keys.architecture()) return family;
      known.push_back(name);
    }
  }
  keys.fail("general.architecture", keys.architecture(), fmt::format("expected one of {}", fmt::join(known, ", ")));
}

// as the file lies
ModelConfig stored_config(GgufKeys& keys, const Family& family) {
  const ModelConfig config = family.from_gguf(keys);
  keys.finish();
  return resolve_in_file(config, keys.file_name());
}

}  // namespace

ModelConfig gguf_config(const std::filesystem::path& path) {
  const Gguf file(path);
  GgufKeys keys(file);
  return with_halves(stored_config(keys, family_of(keys)));
}

Model load_gguf(const std::filesystem::path& path, DType matrices) {
  const Gguf file(path);
  GgufKeys keys(file);
  const Family& family = family_of(keys);
  const ModelConfig stored = stored_config(keys, family);
  return load_parts(with_halves(stored), family, family.parts(stored, Naming::kGguf), *tensor_file(file), matrices);
}

}  // namespace headlight
