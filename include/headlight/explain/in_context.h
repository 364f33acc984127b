#pragma once
// How much of the loss the context takes away: the in-context learning score.

#include <cstdint>

#include "headlight/explain/head.h"
#include "headlight/model/batch.h"
#include "headlight/tensor/view.h"

namespace headlight {

// In-context learning score (Olsson et al. 2022): mean loss at a late token minus that at an early one, over
// sequences; negative when the context helps.
struct InContextScore {
  int64_t early = 50;  // tokens, counted from 1: the 50th
  int64_t late = 500;
  Estimate loss_early, loss_late;  // nats
  Estimate score;                  // of the differences within each sequence
};

// Of the 500th and the 50th token, or in shorter contexts of the last and the one at a tenth of it. Sequences without
// both targets are left out. `losses` (B, T): those of token_losses(). Throws LogicError when no sequence has two
// tokens to predict, or when the losses are not the batch's.
InContextScore in_context_score(const Batch& batch, View<const float, 2> losses);

}  // namespace headlight
