#pragma once
// The tokenizers of real models: added tokens, normaliser, pre-tokenizer, model, decoder, put together from parts
// that a file's reader made.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "text/added_tokens.h"
#include "text/decoding.h"
#include "text/normalizer.h"
#include "text/piece_model.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace headlight {

struct PipelineParts {
  std::string kind;
  std::unique_ptr<const Vocabulary> vocabulary;  // the model's tokens; added ones may follow
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::unique_ptr<const PieceModel> model;
  DecodingRules decoding;
  Frame frame;
  SpecialIds special_ids;
  std::function<std::string()> to_json;
  std::function<HuggingFaceFiles()> to_hugging_face{};  // empty: there is no such form
};

// Throws Error (bad data) at `where` when an id of an added token leaves a gap or belongs to another token, and when
// an id of the frame or a special id is not in the vocabulary.
std::shared_ptr<const Tokenizer> pipeline_tokenizer(PipelineParts parts, const std::string& where);

}  // namespace headlight
