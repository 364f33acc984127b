#pragma once
// The identities that prove what is said about a model on a batch: parts sum to their whole, a kernel equals its
// reference, a batch equals its sequences one by one.
//
// Deviations are relative to the sum of the absolute values of all terms, element by element, and the bounds are the
// largest that rounding in fp32 can reach (u = 2^-24 times the number of roundings): a bound is exceeded only when
// something is wrong.

#include <string>
#include <vector>

#include "headlight/explain/check.h"
#include "headlight/explain/head_scores.h"
#include "headlight/model/model.h"
#include "headlight/model/run.h"

namespace headlight {

// What a run must capture for the checks below.
std::vector<std::string> captures_for_checks(const Model& model);

// Each reads a run of `batch` planned with captures_for_checks().

// Every row of attention weights sums to 1.
Check check_row_sums(const Model& model, const Batch& batch, const Run& run);
// The same from scores, where it was measured on the way.
Check check_row_sums(const HeadScores& scores);
// Of every block: the heads' writes (hook_result) and b_O sum to hook_attn_out.
Check check_head_writes(const Model& model, const Batch& batch, const Run& run);
// Embedding, positions and every sublayer's write sum to the stream after the last block. In a post-norm model, whose
// stream is normalised after every write: for each sublayer, stream and write sum to what is normalised.
Check check_residual(const Model& model, const Batch& batch, const Run& run);
// The components' shares of a logit, through the final norm with its scale frozen, and the bias sum to the logit: for
// the target and the most likely token of every row, up to 256 rows spread evenly. In a post-norm model: the last
// stream times W_U.
Check check_logits(const Model& model, const Batch& batch, const Run& run);
// Attention weights and z equal those of the scalar reference in float64, computed from the captured queries, keys and
// values of one sequence.
Check check_attention(const Model& model, const Batch& batch, const Run& run);
// Each sequence alone gives the logits that it has in the batch, bit for bit.
Check check_batch(const Model& model, const Batch& batch, const Run& run);

// All of the above on the first 256 tokens of the first sequences: at most two, the second cut by a third, so that
// there is padding. Throws LogicError when every sequence is empty.
std::vector<Check> check_identities(const Model& model, const Batch& batch);

}  // namespace headlight
