#pragma once
// The loss of every token that a model predicted, sequence by sequence.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "console.h"
#include "headlight/tensor/view.h"
#include "headlight/text/data_source.h"
#include "headlight/text/tokenizer.h"

namespace headlight::cli {

struct PredictedSequence {
  std::vector<int32_t> ids;                  // what the model saw, then the last token that it predicted
  std::vector<std::optional<float>> losses;  // of each, in nats; none where it is not counted as predicted
};

// The validation sequences of a source whose targets are the next tokens. `losses` (validation_count, T): the
// evaluator's. Throws LogicError when a target is another than the next token.
std::vector<PredictedSequence> predicted_sequences(const DataSource& source, View<const float, 2> losses);

// One object per sequence: ids, tokens (their texts), losses.
nlohmann::ordered_json json_of(const std::vector<PredictedSequence>& sequences, const Tokenizer& tokenizer);

// Every token of one short sequence; of more or longer ones the tokens of the highest losses, with what stands before.
std::string predicted_text(const std::vector<PredictedSequence>& sequences, const Tokenizer& tokenizer,
                           const Screen& screen);

}  // namespace headlight::cli
