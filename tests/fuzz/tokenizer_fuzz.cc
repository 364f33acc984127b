// Any bytes as a tokenizer file: the readers either make a tokenizer that encodes and decodes, or throw Error.
// The first byte chooses the reader, the second how many of the last bytes are a text for it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headlight/base/error.h"
#include "headlight/text/tokenizer.h"
#include "headlight/text/tokenizer_metadata.h"

namespace {

using namespace headlight;

std::shared_ptr<const Tokenizer> read(uint8_t reader, std::span<const std::byte> file) {
  if (reader % 4 == 0) return llama2c_tokenizer(file, 0, "fuzz");
  return tokenizer_from_json({reinterpret_cast<const char*>(file.data()), file.size()}, "fuzz");
}

void use(const Tokenizer& tokenizer, const std::string& text) {
  for (const bool special : {false, true}) {
    const EncodeOptions options{.framed = true, .special_tokens = special, .drop_unspelled = true, .spans = true};
    const Encoding encoding = tokenizer.encode(text, options);
    if (encoding.spans.size() != encoding.ids.size()) throw LogicError("fuzz", "spans and ids");
    for (const TokenSpan& span : encoding.spans) {
      if (span.begin > span.end || span.end > static_cast<int64_t>(text.size())) throw LogicError("fuzz", "a span");
    }
    tokenizer.decode(encoding.ids);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const uint8_t> rest(data + 2, size - 2);
  const std::size_t length = std::min<std::size_t>(data[1], rest.size());
  const std::string text(reinterpret_cast<const char*>(rest.data()) + rest.size() - length, length);
  try {
    use(*read(data[0], std::as_bytes(rest.first(rest.size() - length))), text + "aab <s>\xFF\xC3\xA9");
  } catch (const headlight::Error&) {
    return 0;
  }
  return 0;
}
