// Encodes and decodes many texts, for scripts that compare with other libraries.
//   encode_lines tokenizer.json|tokenizer.bin [framed] [special] < TEXTS > RESULTS
// TEXTS: u32 length and bytes, again and again. RESULTS: for each u32 count, i32 ids, u32 length, the decoded bytes.

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "headlight/text/tokenizer.h"
#include "headlight/text/tokenizer_metadata.h"

using namespace headlight;

namespace {

std::shared_ptr<const Tokenizer> load(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  if (path.extension() != ".bin") return tokenizer_from_json(content, path.string());
  return llama2c_tokenizer(std::as_bytes(std::span(content.data(), content.size())), 0, path.string());
}

bool read_text(std::string& text) {
  uint32_t size = 0;
  if (std::fread(&size, 4, 1, stdin) != 1) return false;
  text.resize(size);
  return size == 0 || std::fread(text.data(), 1, size, stdin) == size;
}

void write_all(const void* data, std::size_t size, std::size_t count) {
  const auto length = static_cast<uint32_t>(count);
  std::fwrite(&length, 4, 1, stdout);
  if (count > 0) std::fwrite(data, size, count, stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  EncodeOptions options;
  options.drop_unspelled = true;
  for (int i = 2; i < argc; ++i) {
    options.framed = options.framed || std::strcmp(argv[i], "framed") == 0;
    options.special_tokens = options.special_tokens || std::strcmp(argv[i], "special") == 0;
  }
  try {
    const std::shared_ptr<const Tokenizer> tokenizer = load(argv[1]);
    for (std::string text; read_text(text);) {
      const std::vector<int32_t> ids = tokenizer->encode(text, options).ids;
      const std::string back = tokenizer->decode(ids, {.skip_special = true});
      write_all(ids.data(), sizeof(int32_t), ids.size());
      write_all(back.data(), 1, back.size());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
