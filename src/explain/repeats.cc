#include "headlight/explain/repeats.h"

#include <algorithm>

#include "headlight/base/error.h"
#include "headlight/base/random.h"

namespace headlight {
namespace {

constexpr uint32_t kRepeatStream = 0x52455045;  // "REPE"
constexpr int64_t kUsualLength = 50;

void check_token(const std::string& what, int32_t token, int64_t vocabulary) {
  if (token >= 0 && token < vocabulary) return;
  throw Error(ErrorKind::kUsage, what, "token " + std::to_string(token),
              "expected 0 to " + std::to_string(vocabulary - 1));
}

std::vector<int32_t> token_pool(const ModelConfig& config, const RepeatOptions& options) {
  if (options.start) check_token("start token", *options.start, config.vocabulary);
  std::vector<int32_t> pool = options.pool;
  if (pool.empty()) {
    for (int32_t token = 0; token < config.vocabulary; ++token) {
      if (token != options.start) pool.push_back(token);
    }
    return pool;
  }
  std::vector<bool> seen(static_cast<std::size_t>(config.vocabulary));
  for (int32_t token : pool) {
    check_token("tokens to repeat", token, config.vocabulary);
    if (seen[static_cast<std::size_t>(token)]) {
      throw Error(ErrorKind::kUsage, "tokens to repeat", "token " + std::to_string(token) + " is there twice");
    }
    seen[static_cast<std::size_t>(token)] = true;
  }
  return pool;
}

// the longest copy for which there is room
int64_t room_for_copies(const ModelConfig& config, int64_t start_tokens, int64_t pool) {
  return std::min((config.context - start_tokens) / 2, pool);
}

std::vector<int64_t> lengths_of_copies(const ModelConfig& config, const RepeatOptions& options, int64_t start_tokens,
                                       int64_t pool) {
  const int64_t room = room_for_copies(config, start_tokens, pool);
  const std::vector<int64_t> lengths =
      options.lengths.empty() ? std::vector<int64_t>{std::min(room, kUsualLength)} : options.lengths;
  for (int64_t n : lengths) {
    if (n >= 2 && n <= room) continue;
    throw Error(ErrorKind::kUsage, "repeated sequences", "copies of " + std::to_string(n) + " tokens",
                "expected 2 to " + std::to_string(room) + ", for a context of " + std::to_string(config.context) +
                    " and " + std::to_string(pool) + " tokens to draw from");
  }
  return lengths;
}

std::string condition_text(const RepeatOptions& options, const std::vector<int64_t>& lengths) {
  std::string numbers;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    numbers += (i == 0 ? "" : i + 1 == lengths.size() ? " or " : ", ") + std::to_string(lengths[i]);
  }
  return std::to_string(options.sequences) + " sequences " + (options.start ? "[start] " : "") + "R R of 2 x " +
         numbers + " tokens, seed " + std::to_string(options.seed);
}

}  // namespace

int64_t usual_repeat_length(const ModelConfig& config, const RepeatOptions& options) {
  const int64_t start = options.start ? 1 : 0;
  const int64_t pool = options.pool.empty() ? config.vocabulary - start : static_cast<int64_t>(options.pool.size());
  return std::min(room_for_copies(config, start, pool), kUsualLength);
}

RepeatedBatch repeat_random_tokens(const ModelConfig& config, const RepeatOptions& options) {
  if (options.sequences < 1) {
    throw Error(ErrorKind::kUsage, "repeated sequences", std::to_string(options.sequences), "expected at least 1");
  }
  RepeatedBatch repeated;
  repeated.start_tokens = options.start ? 1 : 0;
  const std::vector<int32_t> pool = token_pool(config, options);
  const std::vector<int64_t> lengths =
      lengths_of_copies(config, options, repeated.start_tokens, static_cast<int64_t>(pool.size()));
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t b = 0; b < options.sequences; ++b) {
    const std::size_t n = static_cast<std::size_t>(lengths[static_cast<std::size_t>(b) % lengths.size()]);
    // the first n of a shuffled pool
    std::vector<int32_t> drawn = pool;
    RandomStream random(options.seed, kRepeatStream, static_cast<uint64_t>(b));
    for (std::size_t i = 0; i < n; ++i) std::swap(drawn[i], drawn[i + random.below(drawn.size() - i)]);
    drawn.resize(n);
    std::vector<int32_t> sequence;
    if (options.start) sequence.push_back(*options.start);
    for (int copy = 0; copy < 2; ++copy) sequence.insert(sequence.end(), drawn.begin(), drawn.end());
    sequences.push_back(std::move(sequence));
    repeated.lengths.push_back(static_cast<int64_t>(n));
  }
  repeated.batch = make_batch(sequences);
  repeated.condition = condition_text(options, lengths);
  return repeated;
}

}  // namespace headlight
