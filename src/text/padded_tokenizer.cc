// A tokenizer with ids to spare.

#include <utility>

#include "headlight/base/error.h"
#include "headlight/text/tokenizer.h"

namespace headlight {
namespace {

class PaddedTokenizer final : public Tokenizer {
 public:
  PaddedTokenizer(std::shared_ptr<const Tokenizer> inner, int64_t vocabulary)
      : inner_(std::move(inner)), vocabulary_(vocabulary) {}

  std::string kind() const override { return inner_->kind(); }
  int64_t vocabulary() const override { return vocabulary_; }
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    std::vector<int32_t> known;
    for (const int32_t id : ids) {
      check_id(id);
      if (!is_spare(id)) known.push_back(id);
    }
    return inner_->decode(known, options);
  }
  std::string token_text(int32_t id) const override {
    check_id(id);
    return is_spare(id) ? "" : inner_->token_text(id);
  }
  bool is_special(int32_t id) const override {
    check_id(id);
    return is_spare(id) || inner_->is_special(id);
  }
  SpecialIds special_ids() const override { return inner_->special_ids(); }
  Frame frame() const override { return inner_->frame(); }
  std::string to_json() const override { return inner_->to_json(); }
  HuggingFaceFiles to_hugging_face() const override { return inner_->to_hugging_face(); }

 private:
  bool is_spare(int32_t id) const { return id >= inner_->vocabulary(); }

  // the frame is put around by the caller
  Encoding encode_bare(std::string_view text, const EncodeOptions& options) const override {
    EncodeOptions bare = options;
    bare.framed = false;
    return inner_->encode(text, bare);
  }

  std::shared_ptr<const Tokenizer> inner_;
  int64_t vocabulary_;
};

}  // namespace

std::shared_ptr<const Tokenizer> padded_tokenizer(std::shared_ptr<const Tokenizer> tokenizer, int64_t vocabulary) {
  if (tokenizer->vocabulary() > vocabulary) {
    throw LogicError("padded_tokenizer",
                     std::to_string(tokenizer->vocabulary()) + " tokens, " + std::to_string(vocabulary) + " ids");
  }
  if (tokenizer->vocabulary() == vocabulary) return tokenizer;
  return std::make_shared<PaddedTokenizer>(std::move(tokenizer), vocabulary);
}

}  // namespace headlight
