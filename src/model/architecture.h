#pragma once
// The sublayers of a model on its residual stream, and the parameters and sites that they declared.

#include <memory>
#include <vector>

#include "headlight/model/model.h"
#include "model/sublayer.h"

namespace headlight {

// A normalisation: its parameters and slots. Nothing happens when `kind` is kNone.
struct NormSlots {
  NormKind kind = NormKind::kNone;
  int weight = -1;
  int bias = -1;
  int scale = -1;       // slot (B, T)
  int mean = -1;        // slot (B, T)
  int normalized = -1;  // slot (B, T, D)
};

// norm(f(x W + b)) of the last stream, which the unembedding reads instead of it.
struct PredictionHead {
  int weight = -1;  // (D, D); -1: the model has none
  int bias = -1;
  int pre = -1;  // slots (B, T, D)
  int post = -1;
  NormSlots norm;
};

// One sublayer on the stream.
//   pre-norm:  sum = residual + F(norm(read)),  next stream = sum
//   post-norm: sum = residual + F(residual),    next stream = norm(sum)
template <class T>
struct ResidualStep {
  int64_t block = 0;
  NormSlots norm;
  std::unique_ptr<Sublayer<T>> sublayer;
  int read = -1;      // slot that F (through the norm) reads
  int residual = -1;  // slot that F's output is added to
  int sum = -1;       // slot of the sum
  int next = -1;      // slot of the stream after this step
  int out = -1;       // slot of F's output alone, computed on request
};

struct CacheShape {
  int64_t heads;        // Hkv
  int64_t key_width;    // K
  int64_t value_width;  // M
};

template <class T>
struct Architecture {
  ParameterTable parameters;
  SiteTable sites;
  std::vector<CacheShape> caches;  // what each attention keeps of a token

  int embedding = -1;           // W_E (V, D)
  int position_embedding = -1;  // W_pos (context, D), learned
  int type_embedding = -1;      // W_type (types, D)
  int unembedding = -1;         // W_U (D, V), or -1 when tied
  int unembedding_bias = -1;    // b_U (V)

  // slots of tables by position, filled when a run is planned: (T, D), (T, R/2), (T, R/2)
  int sinusoids = -1;
  int rotary_cosine = -1;
  int rotary_sine = -1;

  int embed_site = -1;
  int position_site = -1;
  int type_site = -1;
  int embedded = -1;  // slot of the sum of embeddings: the stream's start, or what the norm before it reads
  NormSlots embedding_norm;
  int stream_start = -1;  // slot of the stream before block 0
  int stream_end = -1;    // slot of the stream after the last block
  std::vector<ResidualStep<T>> steps;
  NormSlots final_norm;
  PredictionHead prediction;
  int logits = -1;  // -1: the model predicts no token

  int loss = -1;      // workspace slot (B, T)
  int d_stream = -1;  // workspace slots (B, T, D)
  int d_pending = -1;
  int d_normalized = -1;
};

// Declares the whole model that `config` (resolved) describes.
template <class T>
std::shared_ptr<const Architecture<T>> build_architecture(const ModelConfig& config);

// Fills the tables by position of a run whose slots have their places.
template <class T>
void fill_position_tables(const ModelConfig& config, typename BasicRun<T>::State& run);

}  // namespace headlight
