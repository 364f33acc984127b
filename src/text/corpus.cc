#include "headlight/text/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/file.h"
#include "text/sources.h"
#include "text/streams.h"

namespace headlight {
namespace {

int64_t training_bytes(int64_t bytes, double validation_fraction) {
  return static_cast<int64_t>(static_cast<double>(bytes) * (1.0 - validation_fraction));
}

// The first problem of a file of `bytes` bytes, or "".
std::string problem_of(int64_t bytes, const TextOptions& options) {
  const int64_t needed = options.context + 1;
  const int64_t training = training_bytes(bytes, options.validation_fraction);
  const int64_t validation = bytes - training;
  if (options.validation_fraction < 1 && training < needed) {
    return fmt::format("holds {} bytes, of which {} are for training", bytes, training);
  }
  if (options.validation_fraction > 0 && validation < needed) {
    return fmt::format("holds {} bytes, of which {} are for validation", bytes, validation);
  }
  return "";
}

// The fewest bytes that do; only asked for in an error, so it may search.
int64_t fewest_bytes(const TextOptions& options) {
  int64_t low = 0;
  int64_t high = 1;
  while (!problem_of(high, options).empty()) high *= 2;
  while (low + 1 < high) {
    const int64_t middle = low + (high - low) / 2;
    (problem_of(middle, options).empty() ? high : low) = middle;
  }
  return high;
}

void check_options(const TextOptions& options) {
  const auto refuse = [](const char* name, const std::string& found, const char* expected) {
    throw Error(ErrorKind::kUsage, "text", fmt::format("{} is {}", name, found), expected);
  };
  if (options.context < 1) refuse("context", std::to_string(options.context), "expected at least 1");
  if (!(options.validation_fraction >= 0 && options.validation_fraction <= 1)) {
    refuse("validation_fraction", fmt::format("{}", options.validation_fraction), "expected a number from 0 to 1");
  }
  if (options.validation_limit < 0) {
    refuse("validation_limit", std::to_string(options.validation_limit), "expected at least 0");
  }
}

// What a file held when a run was made.
struct Content {
  int64_t bytes = 0;
  std::string hash;
};

class TextFile final : public DataSource {
 public:
  explicit TextFile(const TextOptions& options, const Content* expected = nullptr) : options_(options) {
    check_options(options_);
    options_.path = std::filesystem::absolute(options_.path);
    text_ = read_file(options_.path);
    hash_ = content_hash(std::as_bytes(std::span(text_)));
    const int64_t bytes = static_cast<int64_t>(text_.size());
    if (expected != nullptr) check_content(*expected);
    if (bytes == 0) throw Error(ErrorKind::kBadData, options.path.string(), "is empty", "expected text");
    if (const std::string problem = problem_of(bytes, options_); !problem.empty()) {
      throw Error(ErrorKind::kBadData, options.path.string(), problem,
                  fmt::format("a context of {} needs {} in each part, a file of at least {} bytes", options_.context,
                              options_.context + 1, fewest_bytes(options_)));
    }
    training_ = training_bytes(bytes, options_.validation_fraction);
    const int64_t targets = std::max<int64_t>(0, bytes - training_ - 1);
    windows_ = (targets + options_.context - 1) / options_.context;
    used_ = options_.validation_limit > 0 ? std::min(options_.validation_limit, windows_) : windows_;
  }

  std::string kind() const override { return "text"; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return byte_tokenizer(); }
  int64_t context() const override { return options_.context; }
  const std::vector<std::string>& classes() const override {
    static const std::vector<std::string> names{"text"};
    return names;
  }

  void training(uint64_t seed, int64_t step, int64_t first, int64_t size, Samples& out) const override {
    if (training_ == 0) throw LogicError("training", "the whole text is for validation");
    out.resize(size, options_.context);
    for (int64_t i = 0; i < size; ++i) {
      RandomStream random = training_stream(seed, step, first + i);
      window(static_cast<int64_t>(random.below(static_cast<uint64_t>(training_ - options_.context))), 0, out, i);
    }
  }

  int64_t validation_count() const override { return used_; }

  void validation(int64_t first, int64_t size, Samples& out) const override {
    check_rows("validation", first, size, used_);
    out.resize(size, options_.context);
    const int64_t last = static_cast<int64_t>(text_.size()) - options_.context - 1;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t begin = training_ + (first + i) * windows_ / used_ * options_.context;
      const int64_t full = std::min(begin, last);
      window(full, begin - full, out, i);
    }
  }

  std::string to_json() const override {
    return pretty_json({{"kind", kind()},
                        {"path", options_.path.string()},
                        {"bytes", text_.size()},
                        {"hash", hash_},
                        {"context", options_.context},
                        {"validation_fraction", options_.validation_fraction},
                        {"validation_limit", options_.validation_limit}});
  }

 private:
  void check_content(const Content& expected) const {
    if (static_cast<int64_t>(text_.size()) == expected.bytes && hash_ == expected.hash) return;
    throw Error(ErrorKind::kBadData, options_.path.string(),
                fmt::format("has changed: {} bytes with content hash {}", text_.size(), hash_),
                fmt::format("the run was made with {} bytes and {}; put that file back or start a new run",
                            expected.bytes, expected.hash));
  }

  // row i = the window at `begin`, whose first `ignored` positions predict nothing
  void window(int64_t begin, int64_t ignored, Samples& out, int64_t i) const {
    const int64_t time = options_.context;
    for (int64_t t = 0; t < time; ++t) {
      const std::size_t at = static_cast<std::size_t>(i * time + t);
      const std::size_t from = static_cast<std::size_t>(begin + t);
      out.tokens[at] = static_cast<unsigned char>(text_[from]);
      out.targets[at] = t < ignored ? kNoTarget : static_cast<unsigned char>(text_[from + 1]);
      out.classes[at] = 0;
    }
  }

  TextOptions options_;
  std::string text_;
  std::string hash_;
  int64_t training_ = 0;  // bytes of the first part
  int64_t windows_ = 0;   // that cover the last part
  int64_t used_ = 0;      // of them, for validation
};

}  // namespace

std::shared_ptr<const DataSource> text_file(const TextOptions& options) { return std::make_shared<TextFile>(options); }

std::shared_ptr<const DataSource> read_text_file(JsonReader& read) {
  TextOptions options;
  options.path = read.text("path");
  options.context = read.whole("context", 1);
  options.validation_fraction = read.number("validation_fraction", 0, 1);
  options.validation_limit = read.whole("validation_limit", 0);
  const Content content{read.whole("bytes", 0), read.text("hash")};
  read.finish();
  return std::make_shared<TextFile>(options, &content);
}

}  // namespace headlight
