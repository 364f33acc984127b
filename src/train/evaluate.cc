#include "headlight/train/evaluate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/train/batches.h"

namespace headlight {
namespace {

void check_fit(const Model& model, const DataSource& source) {
  const auto refuse = [](const std::string& what, int64_t found, int64_t wanted) {
    throw Error(ErrorKind::kUsage, "data", what + " " + std::to_string(wanted),
                "the model's is " + std::to_string(found));
  };
  const int64_t vocabulary = source.tokenizer()->vocabulary();
  if (model.config().vocabulary < vocabulary) {
    refuse("has a vocabulary of", model.config().vocabulary, vocabulary);
  }
  if (model.config().context < source.context()) {
    refuse("has a context of", model.config().context, source.context());
  }
}

double mean(double sum, int64_t count) {
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

struct Evaluator::Tally {
  double loss = 0;
  int64_t targets = 0;
  int64_t right = 0;
  int64_t spans = 0;
  int64_t right_spans = 0;
};

Evaluator::Evaluator(const Model& model, std::shared_ptr<const DataSource> source, int64_t batch)
    : source_((check_fit(model, *source), std::move(source))),
      batch_size_(std::max<int64_t>(1, std::min(batch, source_->validation_count()))),
      run_(model, batch_size_, source_->context()),
      losses_(batch_size_ * source_->context()),
      right_(static_cast<std::size_t>(batch_size_ * source_->context())) {}

Evaluation Evaluator::run(const Model& model, const EvaluateOptions& options) {
  std::vector<Tally> tallies(source_->classes().size());
  const int64_t count = source_->validation_count();
  const bool keeps = options.losses.data != nullptr;
  const int64_t time = source_->context();
  if (keeps && (options.losses.sizes != std::array{count, time} || !options.losses.is_packed())) {
    throw LogicError("Evaluator", "losses " + shape_text(options.losses) + " for " + std::to_string(count) +
                                      " sequences of " + std::to_string(time));
  }
  for (int64_t first = 0; first < count; first += batch_size_) {
    const int64_t size = std::min(batch_size_, count - first);
    add(model, first, size, tallies);
    if (keeps) std::copy_n(losses_.data(), size * time, options.losses.data + first * time);
    if (options.progress) options.progress(first + size, count);
  }
  Evaluation result;
  result.sequences = count;
  double loss = 0;
  int64_t right = 0;
  for (std::size_t c = 0; c < tallies.size(); ++c) {
    const Tally& t = tallies[c];
    result.classes.push_back({source_->classes()[c], t.targets, mean(t.loss, t.targets),
                              mean(static_cast<double>(t.right), t.targets), t.spans,
                              mean(static_cast<double>(t.right_spans), t.spans)});
    result.targets += t.targets;
    loss += t.loss;
    right += t.right;
  }
  result.loss = mean(loss, result.targets);
  result.accuracy = mean(static_cast<double>(right), result.targets);
  return result;
}

void Evaluator::add(const Model& model, int64_t first, int64_t size, std::vector<Tally>& tallies) {
  source_->validation(first, size, samples_);
  fill_batch(samples_, 0, size, batch_);
  forward(model, batch_, run_);
  token_losses(batch_, run_, losses_.view<2>({size, batch_.time}));

  // the first choice of each position
  const View<const float, 3> logits = run_.logits();
  const int64_t rows = size * batch_.time;
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = logits.data + row * logits.size(2);
    right_[static_cast<std::size_t>(row)] = std::max_element(x, x + logits.size(2)) - x == batch_.targets[row];
  }

  // sums by class, and spans: unbroken runs of one class
  for (int64_t row = 0; row < rows;) {
    const std::size_t at = static_cast<std::size_t>(row);
    if (batch_.targets[row] == kNoTarget) {
      ++row;
      continue;
    }
    const uint8_t what = samples_.classes[at];
    const int64_t sequence_end = (row / batch_.time + 1) * batch_.time;
    Tally& tally = tallies[what];
    bool all_right = true;
    for (; row < sequence_end && batch_.targets[row] != kNoTarget &&
           samples_.classes[static_cast<std::size_t>(row)] == what;
         ++row) {
      const bool is_right = right_[static_cast<std::size_t>(row)] != 0;
      tally.loss += static_cast<double>(losses_[row]);
      tally.right += is_right;
      all_right = all_right && is_right;
      ++tally.targets;
    }
    ++tally.spans;
    tally.right_spans += all_right;
  }
}

}  // namespace headlight
