#pragma once
// Tokenizers from the values that GGUF files carry, and llama2.c's tokenizer files.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headlight/text/tokenizer.h"

namespace headlight {

// The values of GGUF's keys `tokenizer.ggml.*`; what a file lacks stays empty.
struct TokenizerMetadata {
  std::string model{};                 // .model: "gpt2", "llama", "bert", "t5"; ours: "llama2.c"
  std::string pre{};                   // .pre: how text is cut for "gpt2"
  std::vector<std::string> tokens{};   // .tokens
  std::vector<float> scores{};         // .scores
  std::vector<int32_t> token_types{};  // .token_type: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string> merges{};   // .merges: "left right"
  std::string precompiled_charsmap{};  // .precompiled_charsmap: bytes
  std::optional<int64_t> bos{}, eos{}, unknown{}, padding{}, separator{}, mask{};  // .bos_token_id and so on
  std::optional<bool> add_bos{}, add_eos{};                                        // .add_bos_token, .add_eos_token
  std::optional<bool> add_space_prefix{}, remove_extra_whitespaces{};

  bool operator==(const TokenizerMetadata&) const = default;
};

// Absent values mean what they mean to llama.cpp. "llama" is SentencePiece's BPE: the neighbours whose union is the
// token of the highest score merge first. "bert" lower-cases and strips accents. Errors: bad data naming `where`, the
// key, what was found and expected; models, kinds of `pre` and types that are not supported are refused by name.
std::shared_ptr<const Tokenizer> tokenizer_from_metadata(const TokenizerMetadata& metadata, const std::string& where);

// llama2.c's tokenizer.bin: i32 length of the longest token, then for each of `vocabulary` tokens f32 score, i32
// length and its bytes. Token 0 is unknown, 1 and 2 start and end, 3 to 258 bytes. The file has no count, so that
// `vocabulary` comes from the model; 0: as many as there are. Errors: bad data at `where`, with the byte, when the
// file ends early or goes on, when a length is out of range, or as above.
std::shared_ptr<const Tokenizer> llama2c_tokenizer(std::span<const std::byte> file, int64_t vocabulary,
                                                   const std::string& where);

}  // namespace headlight
