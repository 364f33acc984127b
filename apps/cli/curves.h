#pragma once
// From what training logs to the curves that show when heads formed.

#include <vector>

#include "headlight/explain/formation.h"
#include "headlight/explain/repeats.h"
#include "headlight/text/data_source.h"
#include "headlight/train/log.h"

namespace headlight::cli {

// Random repeats to score the heads of a model on: with its start token if it has one, of tokens that stand for text,
// of bytes only printable ones. With the data it was trained on: at lengths that training never used, where the data
// keeps such.
RepeatOptions scoring_repeats(const ModelConfig& config, const Tokenizer& tokenizer);
RepeatOptions scoring_repeats(const ModelConfig& config, const DataSource& data);

// The log's losses by class, of training and of validation, and the scores that an observer put there by
// named_scores().
TrainingLog training_log(const std::vector<LogEntry>& entries);

}  // namespace headlight::cli
