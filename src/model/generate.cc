#include "headlight/model/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headlight/base/error.h"
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
  for (int64_t i = 0; i < logits.size(0); ++i) {
    if (std::isnan(logits(i))) throw LogicError("sample", "logit " + std::to_string(i) + " is not a number");
  }
}

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
  double left = where * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
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
  const auto context = static_cast<std::size_t>(model.config().context);
  std::vector<int32_t> text = prompt;
  Run run(model, 1, static_cast<int64_t>(std::min(context, prompt.size() + static_cast<std::size_t>(options.tokens))));
  for (int64_t i = 0; i < options.tokens; ++i) {
    const std::size_t seen = std::min(text.size(), context);
    const Batch batch = make_batch({std::vector<int32_t>(text.end() - static_cast<std::ptrdiff_t>(seen), text.end())});
    forward(model, batch, run);
    RandomStream random(options.seed, kSampleStream, static_cast<uint64_t>(i));
    text.push_back(sample(run.logits()[0][batch.time - 1], options.sample, random));
    if (options.on_token && !options.on_token(text.back())) break;
  }
  text.erase(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return text;
}

}  // namespace headlight
