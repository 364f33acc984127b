#include "encoded_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headlight/base/error.h"

namespace headlight::cli {
namespace {

class EncodedText final : public DataSource {
 public:
  EncodedText(std::shared_ptr<const Tokenizer> tokenizer, EncodedTextOptions options)
      : tokenizer_(std::move(tokenizer)), options_(std::move(options)), seen_(std::move(options_.ids)) {
    // position t sees seen_[t] and predicts seen_[t + 1]; a start token is seen anew by each window
    if (options_.start) seen_.insert(seen_.begin(), *options_.start);
    const auto targets = static_cast<int64_t>(seen_.size()) - 1;
    if (targets < 1) throw Error(ErrorKind::kUsage, "", "the text has no token that could be predicted");
    context_ = std::min(options_.context, targets);
    windows_ = (targets + context_ - 1) / context_;
    used_ = options_.limit > 0 ? std::min(options_.limit, windows_) : windows_;
  }

  std::string kind() const override { return "encoded text"; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }
  int64_t context() const override { return context_; }
  const std::vector<std::string>& classes() const override {
    static const std::vector<std::string> names{"text"};
    return names;
  }

  void training(uint64_t, int64_t, int64_t, int64_t, Samples&) const override {
    throw LogicError("encoded text", "all of it is for validation");
  }
  std::string to_json() const override {
    throw LogicError("encoded text", "its tokens are a model's; it is made again from the model and the text");
  }

  int64_t validation_count() const override { return used_; }

  void validation(int64_t first, int64_t size, Samples& out) const override {
    if (first < 0 || size < 0 || first + size > used_) {
      throw LogicError("validation", fmt::format("sequences {} to {} of {}", first, first + size, used_));
    }
    out.resize(size, context_);
    const auto targets = static_cast<int64_t>(seen_.size()) - 1;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t begin = (first + i) * windows_ / used_ * context_;
      const int64_t full = std::min(begin, targets - context_);
      for (int64_t t = 0; t < context_; ++t) {
        const auto at = static_cast<std::size_t>(i * context_ + t);
        const auto from = static_cast<std::size_t>(full + t);
        out.tokens[at] = t == 0 && options_.start ? *options_.start : seen_[from];
        out.targets[at] = full + t < begin ? kNoTarget : seen_[from + 1];
        out.classes[at] = 0;
      }
    }
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  EncodedTextOptions options_;
  std::vector<int32_t> seen_;
  int64_t context_ = 0;
  int64_t windows_ = 0;
  int64_t used_ = 0;
};

}  // namespace

std::shared_ptr<const DataSource> encoded_text(std::shared_ptr<const Tokenizer> tokenizer, EncodedTextOptions options) {
  return std::make_shared<const EncodedText>(std::move(tokenizer), std::move(options));
}

}  // namespace headlight::cli
