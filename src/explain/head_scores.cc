#include "headlight/explain/head_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "explain/parts.h"
#include "headlight/base/thread_pool.h"
#include "headlight/model/run.h"

namespace headlight {
namespace {

constexpr std::size_t kScores = 7;
using Sums = std::array<double, kScores>;

// A sequence as its rows lie in the batch; for repeated ones, where the second copy begins.
struct SequenceShape {
  int64_t begin = 0;
  int64_t length = 0;
  int64_t repeat = 0;  // N, or 0
  int64_t second = 0;  // first row of the second copy, counted from `begin`
};

double& of(Sums& sums, HeadScore score) { return sums[static_cast<std::size_t>(score)]; }

bool is_single_weight(HeadScore score) { return score != HeadScore::kEntropy && score != HeadScore::kDistance; }

// The key whose weight in row i counts for a score that is a mean of single weights; -1 for none.
int64_t key_of(HeadScore score, int64_t i, const SequenceShape& s) {
  switch (score) {
    case HeadScore::kPrevious:
      return i - 1;
    case HeadScore::kStart:
      return 0;
    case HeadScore::kCurrent:
      return i;
    case HeadScore::kDuplicate:
      return i < s.second ? -1 : i - s.repeat;
    case HeadScore::kInduction:
      return i < s.second ? -1 : i - s.repeat + 1;
    default:
      return -1;
  }
}

// rows that a score is the mean over
int64_t denominator(HeadScore score, const SequenceShape& s) {
  switch (score) {
    case HeadScore::kPrevious:
      return std::max<int64_t>(0, s.length - 1);
    case HeadScore::kDuplicate:
    case HeadScore::kInduction:
      return s.repeat;
    default:
      return s.length;
  }
}

// Sums of one part of the batch, all heads of one block at a time.
class ScoreStream {
 public:
  ScoreStream(const Model& model, const Batch& batch, const std::vector<SequenceShape>& shapes,
              const std::vector<HeadScore>& columns)
      : model_(model), batch_(batch), shapes_(shapes) {
    std::copy_if(columns.begin(), columns.end(), std::back_inserter(singles_), is_single_weight);
    const int64_t heads = model.config().heads, size = batch.size, time = batch.time;
    const int64_t singles = static_cast<int64_t>(singles_.size());
    // of whole rows: their sum and, where they are asked for, entropy and distance
    const bool moments = singles_.size() < columns.size();
    rows_ = Buffer<double>((moments ? 3 : 1) * size * heads * time);
    const auto of_rows = [&](int64_t i) { return rows_.view<3>({size, heads, time}, i * size * heads * time); };
    chosen_ = Buffer<int64_t>(size * time * singles);
    weights_ = Buffer<float>(size * heads * time * singles);
    choose(chosen_.view<3>({size, time, singles}));
    out_ = {.sum = of_rows(0),
            .chosen = chosen_.view<3>({size, time, singles}),
            .weights = weights_.view<4>({size, heads, time, singles})};
    if (!moments) return;
    out_.entropy = of_rows(1);
    out_.distance = of_rows(2);
  }

  // (sequences, H) sums of a block
  std::vector<Sums> block(const Run& run, int64_t block) {
    const int64_t heads = model_.config().heads;
    std::vector<Sums> sums(static_cast<std::size_t>(batch_.size * heads), Sums{});
    std::vector<Largest> errors(sums.size());
    pattern_sums<float>(model_, batch_, run, block, out_);
    default_pool().run(batch_.size * heads, [&](int64_t task, int) {
      const std::size_t index = static_cast<std::size_t>(task);
      add_rows(task / heads, task % heads, sums[index], errors[index]);
    });
    for (const Largest& error : errors) error_.take(error.value());
    return sums;
  }

  double row_sum_error() const { return error_.value(); }

 private:
  void choose(View<int64_t, 3> chosen) const {
    for (int64_t b = 0; b < batch_.size; ++b) {
      const SequenceShape& s = shapes_[static_cast<std::size_t>(b)];
      for (int64_t i = 0; i < s.length; ++i) {
        for (std::size_t n = 0; n < singles_.size(); ++n) {
          const int64_t key = key_of(singles_[n], i, s);
          chosen(b, s.begin + i, static_cast<int64_t>(n)) = key < 0 ? -1 : s.begin + key;
        }
      }
    }
  }

  void add_rows(int64_t b, int64_t h, Sums& sums, Largest& error) const {
    const SequenceShape& s = shapes_[static_cast<std::size_t>(b)];
    for (int64_t row = s.begin; row < s.begin + s.length; ++row) {
      for (std::size_t n = 0; n < singles_.size(); ++n) {
        of(sums, singles_[n]) += static_cast<double>(out_.weights(b, h, row, static_cast<int64_t>(n)));
      }
      if (out_.entropy.data != nullptr) of(sums, HeadScore::kEntropy) += out_.entropy(b, h, row);
      if (out_.distance.data != nullptr) of(sums, HeadScore::kDistance) += out_.distance(b, h, row);
      error.take(std::abs(out_.sum(b, h, row) - 1));
    }
  }

  const Model& model_;
  const Batch& batch_;
  const std::vector<SequenceShape>& shapes_;
  std::vector<HeadScore> singles_;
  Buffer<double> rows_;
  Buffer<int64_t> chosen_;
  Buffer<float> weights_;
  PatternSums<float> out_;
  Largest error_;
};

int64_t numbers_per_sequence(const ModelConfig& c, int64_t time, int64_t columns) {
  // a double counts as two numbers
  return time * (c.heads * 2 * columns + c.blocks * c.head_width * (c.heads + c.key_value_heads));
}

HeadScores stream_scores(const Model& model, const Batch& batch, const std::vector<SequenceShape>& shapes,
                         const std::vector<HeadScore>& columns, const std::string& condition) {
  const ModelConfig& config = model.config();
  HeadScores scores;
  scores.condition = condition;
  scores.columns = columns;
  scores.blocks = config.blocks;
  scores.heads = config.heads;
  scores.sequences = batch.size;
  scores.time = batch.time;
  const std::size_t heads = static_cast<std::size_t>(config.heads);
  // each sequence's own means, per (block, head, column)
  std::vector<std::vector<double>> means(static_cast<std::size_t>(config.blocks) * heads * columns.size());
  Largest error;
  const int64_t step = std::min(
      batch.size, sequences_per_part(numbers_per_sequence(config, batch.time, static_cast<int64_t>(columns.size()))));
  std::optional<Run> run;
  for (int64_t begin = 0; begin < batch.size && config.blocks > 0; begin += step) {
    const Batch part = slice_sequences(batch, begin, std::min(batch.size, begin + step));
    const std::vector<SequenceShape> part_shapes(shapes.begin() + begin, shapes.begin() + begin + part.size);
    if (!run)
      run.emplace(model, step, batch.time, RunOptions{.logits = false, .capture = {"blocks.*.attn.hook_pattern"}});
    forward(model, part, *run);
    ScoreStream stream(model, part, part_shapes, columns);
    for (int64_t block = 0; block < config.blocks; ++block) {
      std::vector<Sums> sums = stream.block(*run, block);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const SequenceShape& shape = part_shapes[i / heads];
        scores.rows += shape.length;
        for (std::size_t c = 0; c < columns.size(); ++c) {
          const int64_t rows = denominator(columns[c], shape);
          if (rows == 0) continue;
          means[(static_cast<std::size_t>(block) * heads + i % heads) * columns.size() + c].push_back(
              of(sums[i], columns[c]) / static_cast<double>(rows));
        }
      }
    }
    error.take(stream.row_sum_error());
  }
  for (const std::vector<double>& values : means) scores.values.push_back(estimate_of(values));
  scores.row_sum_error = error.value();
  return scores;
}

}  // namespace

const std::vector<ScoreDefinition>& score_definitions() {
  static const std::vector<ScoreDefinition> definitions{
      {HeadScore::kPrevious, "previous", "previous token",
       "mean over rows i >= 1 of P(i, i-1): attention to the token before", "all rows but a sequence's first"},
      {HeadScore::kDuplicate, "duplicate", "duplicate token",
       "mean over the second copy of P(i, i-N): attention to the earlier copy of the same token",
       "the N rows of the second copy"},
      {HeadScore::kInduction, "induction", "induction",
       "mean over the second copy of P(i, i-N+1): attention to the token after the earlier copy",
       "the N rows of the second copy"},
      {HeadScore::kStart, "start", "start", "mean over rows of P(i, 0): attention to the first token", "all rows"},
      {HeadScore::kCurrent, "current", "current", "mean over rows of P(i, i): attention to the token itself",
       "all rows"},
      {HeadScore::kEntropy, "entropy", "entropy",
       "mean over rows of -sum over j of P(i, j) ln P(i, j), in nats: 0 for one key, ln n for n equal ones",
       "all rows"},
      {HeadScore::kDistance, "distance", "distance", "mean over rows of sum over j of P(i, j) |i - j|, in tokens",
       "all rows"},
  };
  return definitions;
}

const ScoreDefinition& definition_of(HeadScore score) {
  for (const ScoreDefinition& definition : score_definitions()) {
    if (definition.score == score) return definition;
  }
  throw LogicError("definition_of", "unknown score");
}

bool HeadScores::has(HeadScore score) const {
  return std::find(columns.begin(), columns.end(), score) != columns.end();
}

const Estimate& HeadScores::at(const HeadId& head, HeadScore score) const {
  const auto column = std::find(columns.begin(), columns.end(), score);
  if (column == columns.end()) throw LogicError("HeadScores", definition_of(score).id + " was not measured");
  if (head.block < 0 || head.block >= blocks || head.head < 0 || head.head >= heads) {
    throw LogicError("HeadScores", "no head " + to_string(head));
  }
  const std::size_t row = static_cast<std::size_t>(head.block * heads + head.head);
  return values[row * columns.size() + static_cast<std::size_t>(column - columns.begin())];
}

HeadScores head_scores(const Model& model, const RepeatedBatch& repeated) {
  const Batch& batch = repeated.batch;
  std::vector<SequenceShape> shapes;
  for (int64_t b = 0; b < batch.size; ++b) {
    const int64_t n = repeated.lengths.at(static_cast<std::size_t>(b));
    if (n < 1 || batch.lengths[b] != repeated.start_tokens + 2 * n) {
      throw LogicError("head_scores", "sequence " + std::to_string(b) + " of " + std::to_string(batch.lengths[b]) +
                                          " tokens is no repetition of " + std::to_string(n));
    }
    shapes.push_back({batch.begins[b], batch.lengths[b], n, repeated.second_copy(b)});
  }
  return stream_scores(
      model, batch, shapes,
      {HeadScore::kPrevious, HeadScore::kDuplicate, HeadScore::kInduction, HeadScore::kStart, HeadScore::kCurrent},
      repeated.condition);
}

HeadScores head_scores(const Model& model, const RepeatOptions& options) {
  return head_scores(model, repeat_random_tokens(model.config(), options));
}

HeadScores text_scores(const Model& model, const Batch& batch, const std::string& condition) {
  std::vector<SequenceShape> shapes;
  for (int64_t b = 0; b < batch.size; ++b) shapes.push_back({.begin = batch.begins[b], .length = batch.lengths[b]});
  return stream_scores(
      model, batch, shapes,
      {HeadScore::kPrevious, HeadScore::kStart, HeadScore::kCurrent, HeadScore::kEntropy, HeadScore::kDistance},
      condition);
}

HeadScores untrained_scores(const ModelConfig& config, const RepeatedBatch& repeated, uint64_t seed) {
  constexpr uint64_t kOther = 0x756e747261696e65;  // so that no training run began with these weights
  Model model(config);
  initialise(model, seed ^ kOther);
  HeadScores scores = head_scores(model, repeated);
  scores.condition += ", same shapes, untrained";
  return scores;
}

Estimate pooled(const HeadScores& scores, HeadScore score) {
  Estimate pool;
  double squares = 0;
  double count = 0;
  for (int64_t block = 0; block < scores.blocks; ++block) {
    for (int64_t head = 0; head < scores.heads; ++head) {
      const Estimate& one = scores.at({block, head}, score);
      pool.mean += one.mean;
      squares += one.spread * one.spread;
      pool.count = one.count;
      count += 1;
    }
  }
  pool.mean /= count;
  pool.spread = std::sqrt(squares / count);
  return pool;
}

std::vector<HeadId> ranked(const HeadScores& scores, HeadScore score) {
  std::vector<HeadId> heads;
  for (int64_t block = 0; block < scores.blocks; ++block) {
    for (int64_t head = 0; head < scores.heads; ++head) heads.push_back({block, head});
  }
  const auto key = [&](const HeadId& head) {
    const double mean = scores.at(head, score).mean;
    return std::isnan(mean) ? -1.0 : mean;
  };
  std::stable_sort(heads.begin(), heads.end(), [&](const HeadId& a, const HeadId& b) { return key(a) > key(b); });
  return heads;
}

}  // namespace headlight
