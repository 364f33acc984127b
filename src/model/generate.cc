#include "headlight/model/generate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "headlight/base/error.h"
#include "headlight/model/cache.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

constexpr uint32_t kSampleStream = 0x47454e45;  // "GENE"

// ids of the k largest logits, largest first
std::vector<int32_t> most_likely(const View<const float, 1>& logits, int64_t k) {
  std::vector<int32_t> ids(static_cast<std::size_t>(logits.size(0)));
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + k, ids.end(),
                    [&](int32_t a, int32_t b) { return logits(a) != logits(b) ? logits(a) > logits(b) : a < b; });
  ids.resize(static_cast<std::size_t>(k));
  return ids;
}

void check(const View<const float, 1>& logits, const SampleOptions& options) {
  if (logits.size(0) < 1) throw LogicError("sample", "there are no logits");
  if (!(options.temperature >= 0) || options.top_k < 0) throw LogicError("sample", "an option is negative");
  if (!(options.top_p > 0 && options.top_p <= 1)) throw LogicError("sample", "top_p is not above 0 and up to 1");
  for (int64_t i = 0; i < logits.size(0); ++i) {
    if (std::isnan(logits(i))) throw LogicError("sample", "logit " + std::to_string(i) + " is not a number");
  }
}

// Leaves of falling weights the first that together reach the share p of all.
void keep_top_p(double p, std::vector<double>& weights) {
  const double enough = p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size() && p < 1; ++i) {
    sum += weights[i];
    if (sum >= enough) return weights.resize(i + 1);
  }
}

// Runs a growing text: what is new on the cache while the text fits into the context, else the last tokens anew.
class GrowingText {
 public:
  GrowingText(const Model& model, const std::vector<int32_t>& prompt, int64_t more)
      : model_(model), context_(model.config().context), text_(prompt) {
    const auto size = static_cast<int64_t>(prompt.size());
    const int64_t longest = std::min(context_, size + more);
    cache_ = std::make_unique<Cache>(model, longest);
    RunOptions options;
    options.positions = longest;
    run_ = std::make_unique<Run>(model, 1, size + more > context_ ? context_ : size, options);
  }

  // of the token that comes next
  View<const float, 1> logits() {
    const auto size = static_cast<int64_t>(text_.size());
    const int64_t begin = size <= context_ ? cache_->length() : size - context_;
    const Batch batch = make_batch({std::vector<int32_t>(text_.begin() + begin, text_.end())});
    ForwardOptions<float> options;
    if (size <= context_) options.cache = cache_.get();
    forward(model_, batch, *run_, options);
    return run_->logits()[0][batch.time - 1];
  }

  void add(int32_t token) { text_.push_back(token); }

 private:
  const Model& model_;
  int64_t context_;
  std::vector<int32_t> text_;
  std::unique_ptr<Cache> cache_;
  std::unique_ptr<Run> run_;
};

}  // namespace

int32_t sample(View<const float, 1> logits, const SampleOptions& options, RandomStream& random) {
  check(logits, options);
  const int64_t all = logits.size(0);
  const int64_t k = options.temperature == 0 ? 1 : options.top_k == 0 ? all : std::min(options.top_k, all);
  const double where = random.uniform();
  const std::vector<int32_t> ids = most_likely(logits, k);
  if (k == 1) return ids[0];
  std::vector<double> weights;
  for (int32_t id : ids)
    weights.push_back(std::exp((double{logits(id)} - double{logits(ids[0])}) / options.temperature));
  keep_top_p(options.top_p, weights);
  double left = where * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return ids[i];
  }
  return ids[0];  // rounding left something over
}

std::vector<int32_t> generate(const Model& model, const std::vector<int32_t>& prompt, const GenerateOptions& options) {
  if (prompt.empty()) throw Error(ErrorKind::kUsage, "prompt", "is empty", "expected at least one token");
  if (!model.config().causal) {
    throw Error(ErrorKind::kUsage, "model", "is bidirectional", "only a causal model predicts what comes next");
  }
  GrowingText text(model, prompt, options.tokens);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < options.tokens; ++i) {
    RandomStream random(options.seed, kSampleStream, static_cast<uint64_t>(i));
    const int32_t token = sample(text.logits(), options.sample, random);
    if (token == options.end) break;
    tokens.push_back(token);
    text.add(tokens.back());
    if (options.on_token && !options.on_token(tokens.back())) break;
  }
  return tokens;
}

}  // namespace headlight
