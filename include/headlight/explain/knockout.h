#pragma once
// Heads taken away together. They back each other up, so one at a time proves too little.

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/explain/ablation.h"
#include "headlight/explain/head_scores.h"

namespace headlight {

struct KnockoutOptions {
  Ablation ablation{};
  std::string order = "most inductive first";  // said in the result
  // how many heads together; none: 1, 2, ... up to 12, then in steps of about a quarter; of more than 64 heads 1, 2, 4,
  // 8, ..., and all
  std::vector<int64_t> counts{};
  int64_t orders = 20;  // random orders
  uint64_t seed = 7;
  SweepOptions sweep{};
};

struct KnockoutPoint {
  std::vector<HeadId> heads{};  // ablated together
  double change = 0;            // of the loss, nats
  double spread = 0;            // over sequences
};

struct Knockout {
  std::string order{};
  std::string metric{};
  std::string ablation{};  // its id
  double clean_loss = 0;
  int64_t orders = 0;
  std::vector<KnockoutPoint> ordered{};  // the first heads of the order, for each count
  std::vector<Estimate> random{};  // change with as many heads in random order: mean, standard deviation over orders
  Check same_as_naive{};
};

// Heads in the given order, against the same number of the same heads in random order. `order` is usually
// ranked(scores, HeadScore::kInduction): all heads of the model. A set that comes up twice is run once.
Knockout knock_out(const Model& model, const Batch& batch, const std::vector<HeadId>& order, const LossMetric& metric,
                   const KnockoutOptions& options = {});

// Heads chosen for what they do, to be ablated together.
struct HeadSet {
  std::string name{};        // "induction heads"
  std::string definition{};  // how they were chosen
  std::vector<HeadId> heads{};
};

struct HeadSetOptions {
  double induction = 0.4;       // an induction head scores at least this
  double times_uniform = 4.0;   // a leading previous-token head scores at least this many times `uniform`
  double uniform_previous = 0;  // the previous-token score of an untrained model
};

// Three sets, empty where no head qualifies:
//   all induction heads;
//   the leading previous-token heads: of the block with the highest previous-token score, at most half of its heads;
//   for contrast as many heads of that block, those with the lowest previous-token scores.
std::vector<HeadSet> head_sets(const HeadScores& scores, const HeadSetOptions& options);

struct HeadSetEffect {
  HeadSet set{};
  double change = 0;
  double spread = 0;
};
// Each set ablated together; empty sets are left out.
std::vector<HeadSetEffect> ablate_sets(const Model& model, const Batch& batch, const std::vector<HeadSet>& sets,
                                       const LossMetric& metric, const Ablation& ablation = zero_ablation(),
                                       const SweepOptions& options = {});

}  // namespace headlight
