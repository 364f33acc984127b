// The tokenizer that a GGUF file carries.

#include "headlight/formats/gguf.h"
#include "headlight/text/tokenizer_metadata.h"
#include "model/families/foreign_models.h"

namespace headlight {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;

}  // namespace

std::shared_ptr<const Tokenizer> gguf_tokenizer(const std::filesystem::path& path) {
  const Gguf file(path);
  const std::string prefix = "tokenizer.ggml.";
  TokenizerMetadata out;
  out.model = file.text(prefix + "model");
  out.tokens = file.texts(prefix + "tokens");
  if (file.has(prefix + "pre")) out.pre = file.text(prefix + "pre");
  if (file.has(prefix + "scores")) out.scores = file.numbers(prefix + "scores");
  if (file.has(prefix + "merges")) out.merges = file.texts(prefix + "merges");
  if (file.has(prefix + "token_type")) {
    for (const int64_t type : file.wholes(prefix + "token_type", 0, 255)) {
      out.token_types.push_back(static_cast<int32_t>(type));
    }
  }
  if (file.has(prefix + "precompiled_charsmap")) {
    for (const int64_t byte : file.wholes(prefix + "precompiled_charsmap", -128, 255)) {
      out.precompiled_charsmap.push_back(static_cast<char>(byte));
    }
  }
  const auto id = [&](const char* key, std::optional<int64_t>& to) {
    if (file.has(prefix + key)) to = file.whole(prefix + key, 0, kMost);
  };
  id("bos_token_id", out.bos);
  id("eos_token_id", out.eos);
  id("unknown_token_id", out.unknown);
  id("padding_token_id", out.padding);
  id("seperator_token_id", out.separator);  // spelled so in the format
  id("mask_token_id", out.mask);
  const auto flag = [&](const char* key, std::optional<bool>& to) {
    if (file.has(prefix + key)) to = file.boolean(prefix + key);
  };
  flag("add_bos_token", out.add_bos);
  flag("add_eos_token", out.add_eos);
  flag("add_space_prefix", out.add_space_prefix);
  flag("remove_extra_whitespaces", out.remove_extra_whitespaces);
  return tokenizer_from_metadata(out, file.name());
}

}  // namespace headlight
