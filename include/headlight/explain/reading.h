#pragma once
// What a head seems to do, in words, and whether its ablation agrees.

#include <optional>
#include <string>
#include <vector>

#include "headlight/explain/ablation.h"
#include "headlight/explain/head_scores.h"

namespace headlight {

struct ReadingOptions {
  double clear = 0.4;          // a score of at least this names the head
  double partly = 0.2;         // one of at least this, "partly"
  double times_chance = 4.0;   // and in any case at least this many times an untrained model's
  double effect = 0.1;         // a change of loss below this, in nats, or below two standard errors, counts as none
  double large_effect = 0.25;  // one of at least this asks for an explanation
};

struct HeadReading {
  HeadId head{};
  std::optional<HeadScore> role{};  // the score that names it
  std::string reads_as{};           // "induction; alone it is covered by 1.0, 1.1"
  bool disagrees = false;           // score and ablation say different things
};

// How the options are put in words.
std::string reading_definition(const ReadingOptions& options = {});

// One reading per head, block by block. The largest of a head's scores names it: "previous token", "duplicate token",
// "induction", "start", "current", "partly ...", or "mixed" when none stands out from `chance` (an untrained model's
// scores; absent: 0). `alone` holds the effect of each head's ablation in the same order, or is absent. A
// previous-token or induction head whose ablation does nothing, or lowers the loss, disagrees, and so does a mixed head
// whose ablation does much. Attention to the start, to itself or to its own earlier copy promises no effect. Throws
// LogicError when the parts do not fit together.
std::vector<HeadReading> read_heads(const HeadScores& scores, const HeadScores* chance, const SweepResult* alone,
                                    const ReadingOptions& options = {});

}  // namespace headlight
