#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/text/tasks.h"
#include "text/sources.h"
#include "text/streams.h"

namespace headlight {
namespace {

enum Class : uint8_t { kFirstCopy, kSecondCopy };

const std::vector<std::string>& class_names() {
  static const std::vector<std::string> names{"first copy", "second copy"};
  return names;
}

// Draws R. Keeps its memory, so that training does not allocate.
class Drawer {
 public:
  // `length` tokens of [0, vocabulary): without replacement when there are as many, else independent draws.
  const std::vector<int32_t>& draw(RandomStream& random, int64_t vocabulary, int64_t length) {
    const uint64_t tokens = static_cast<uint64_t>(vocabulary);
    deck_.resize(tokens);
    std::iota(deck_.begin(), deck_.end(), 0);
    r_.resize(static_cast<std::size_t>(length));
    for (uint64_t i = 0; i < r_.size(); ++i) {
      if (r_.size() > tokens) {
        r_[i] = static_cast<int32_t>(random.below(tokens));
      } else {
        std::swap(deck_[i], deck_[i + random.below(tokens - i)]);
        r_[i] = deck_[i];
      }
    }
    return r_;
  }

 private:
  std::vector<int32_t> deck_;  // the first elements of a shuffle
  std::vector<int32_t> r_;
};

// Row i of `out` = [start] R R R ..., each position predicting the token that follows.
void write_row(const std::vector<int32_t>& r, std::optional<int32_t> start, Samples& out, int64_t i) {
  const int64_t length = static_cast<int64_t>(r.size());
  const int64_t opening = start ? 1 : 0;
  const auto token = [&](int64_t t) {
    return t < opening ? *start : r[static_cast<std::size_t>((t - opening) % length)];
  };
  for (int64_t t = 0; t < out.time; ++t) {
    const std::size_t at = static_cast<std::size_t>(i * out.time + t);
    out.tokens[at] = token(t);
    out.targets[at] = token(t + 1);
    out.classes[at] = t - opening >= length ? kSecondCopy : kFirstCopy;
  }
}

void require(bool fits, const char* name, int64_t found, const std::string& expected) {
  if (!fits) throw Error(ErrorKind::kUsage, "repeats", fmt::format("{} is {}", name, found), "expected " + expected);
}

RepeatsOptions resolved(RepeatsOptions options) {
  require(options.vocabulary >= 2, "vocabulary", options.vocabulary, "at least 2");
  require(options.vocabulary <= 1'000'000, "vocabulary", options.vocabulary, "at most 1000000");
  require(options.context >= 4, "context", options.context, "at least 4");
  if (options.shortest == 0) options.shortest = options.context / 4;
  if (options.longest == 0) options.longest = options.context / 2;
  require(options.shortest >= 1, "shortest", options.shortest, "at least 1");
  require(options.longest >= options.shortest, "longest", options.longest,
          fmt::format("at least the shortest, {}", options.shortest));
  require(options.longest < options.context, "longest", options.longest,
          fmt::format("less than the context, {}, so that a second copy begins", options.context));
  require(options.held_out_every == 0 || options.held_out_every >= 2, "held_out_every", options.held_out_every,
          "0 or at least 2");
  require(options.validation_sequences >= 0, "validation_sequences", options.validation_sequences, "at least 0");
  return options;
}

class RepeatsSource final : public Repeats {
 public:
  explicit RepeatsSource(const RepeatsOptions& options) : options_(resolved(options)) {
    for (int64_t n = options_.shortest; n <= options_.longest; ++n) {
      const bool held_out = options_.held_out_every > 0 && n % options_.held_out_every == 1;
      (held_out ? validation_lengths_ : training_lengths_).push_back(n);
    }
    if (options_.held_out_every == 0) validation_lengths_ = training_lengths_;
    if (training_lengths_.empty() || validation_lengths_.empty()) {
      require(false, "held_out_every", options_.held_out_every,
              fmt::format("a number that leaves lengths from {} to {} on both sides, or 0", options_.shortest,
                          options_.longest));
    }
    std::vector<std::string> names;
    for (int64_t i = 0; i < options_.vocabulary; ++i) names.push_back(fmt::format("t{}", i));
    names.push_back("[start]");
    tokenizer_ = symbol_tokenizer(std::move(names), start());
  }

  std::string kind() const override { return "repeats"; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }
  int64_t context() const override { return options_.context; }
  const std::vector<std::string>& classes() const override { return class_names(); }
  const std::vector<int64_t>& training_lengths() const override { return training_lengths_; }
  const std::vector<int64_t>& validation_lengths() const override { return validation_lengths_; }

  void training(uint64_t seed, int64_t step, int64_t first, int64_t size, Samples& out) const override {
    fill(training_lengths_, size, out, [&](int64_t i) { return training_stream(seed, step, first + i); });
  }

  int64_t validation_count() const override { return options_.validation_sequences; }

  void validation(int64_t first, int64_t size, Samples& out) const override {
    check_rows("validation", first, size, options_.validation_sequences);
    fill(validation_lengths_, size, out, [&](int64_t i) { return validation_stream(first + i); });
  }

  std::string to_json() const override {
    return pretty_json({{"kind", kind()},
                        {"vocabulary", options_.vocabulary},
                        {"context", options_.context},
                        {"shortest", options_.shortest},
                        {"longest", options_.longest},
                        {"held_out_every", options_.held_out_every},
                        {"validation_sequences", options_.validation_sequences}});
  }

 private:
  int32_t start() const { return static_cast<int32_t>(options_.vocabulary); }

  template <class StreamOf>
  void fill(const std::vector<int64_t>& lengths, int64_t size, Samples& out, StreamOf stream_of) const {
    out.resize(size, options_.context);
    thread_local Drawer drawer;
    for (int64_t i = 0; i < size; ++i) {
      RandomStream random = stream_of(i);
      const int64_t length = lengths[random.below(lengths.size())];
      write_row(drawer.draw(random, options_.vocabulary, length), start(), out, i);
    }
  }

  RepeatsOptions options_;
  std::vector<int64_t> training_lengths_;
  std::vector<int64_t> validation_lengths_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::shared_ptr<const Repeats> repeats(const RepeatsOptions& options) {
  return std::make_shared<RepeatsSource>(options);
}

std::shared_ptr<const DataSource> read_repeats(JsonReader& read) {
  RepeatsOptions options;
  options.vocabulary = read.whole("vocabulary", 2, 1'000'000);
  options.context = read.whole("context", 4);
  options.shortest = read.whole("shortest", 1);
  options.longest = read.whole("longest", 1);
  options.held_out_every = read.whole("held_out_every", 0);
  options.validation_sequences = read.whole("validation_sequences", 0);
  read.finish();
  return repeats(options);
}

Samples repeated_sequences(const RepeatedSequences& options) {
  if (options.vocabulary < 1 || options.length < 1 || options.copies < 1 || options.count < 1) {
    throw LogicError("repeated_sequences", "a number is not positive");
  }
  Samples out;
  out.resize(options.count, options.length * options.copies + (options.start ? 1 : 0));
  Drawer drawer;
  for (int64_t i = 0; i < options.count; ++i) {
    RandomStream random = request_stream(options.seed, i);
    write_row(drawer.draw(random, options.vocabulary, options.length), options.start, out, i);
    const std::size_t last = static_cast<std::size_t>((i + 1) * out.time - 1);
    out.targets[last] = kNoTarget;
    out.classes[last] = 0;
  }
  return out;
}

}  // namespace headlight
