#pragma once
// Synthetic tasks that can only be solved by copying from the context.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headlight/text/data_source.h"

namespace headlight {

// Sequences `[start] R R R ...` cut at T tokens. R is N random tokens, without replacement when there are as many;
// N is drawn for each sequence. Classes: "first copy", and "second copy" for positions whose own token lies in a later
// copy of R, which can be predicted from the context.
struct RepeatsOptions {
  int64_t vocabulary = 64;     // tokens t0, t1, ... besides [start], which is the last id
  int64_t context = 96;        // T
  int64_t shortest = 0;        // N >= ..., 0: T / 4
  int64_t longest = 0;         // N <= ..., 0: T / 2
  int64_t held_out_every = 5;  // N with N mod this = 1 is never trained but validated; 0: N of both are the same
  int64_t validation_sequences = 128;

  bool operator==(const RepeatsOptions&) const = default;
};

class Repeats : public DataSource {
 public:
  // The values of N, in rising order.
  virtual const std::vector<int64_t>& training_lengths() const = 0;
  virtual const std::vector<int64_t>& validation_lengths() const = 0;
};

// Throws Error (usage) naming the first option that does not fit.
std::shared_ptr<const Repeats> repeats(const RepeatsOptions& options);

// `count` sequences `[start] R R ...` of exactly `copies` copies of R, N = `length` tokens of [0, vocabulary), for
// any model: T = copies N + 1, or copies N without a start token. The last position has no target. Classes as above.
// Throws LogicError when a number is not positive.
struct RepeatedSequences {
  int64_t vocabulary = 64;
  std::optional<int32_t> start{};
  int64_t length = 0;  // N
  int64_t copies = 2;
  int64_t count = 32;
  uint64_t seed = 0;
};
Samples repeated_sequences(const RepeatedSequences& options);

// Lines of a maintenance log:
//   P-104 coolant pump: noisy
//   V-371 feed valve: leaking
//   check P-104 coolant pump
// Each letter, dash and digit of an identifier is a token, each word one with the blank before it. Each sequence draws
// its identifiers and gives each a part name at random, so that a name that returns can only be copied. Classes:
// "text", "new name" (where a part name first occurs), "copied name" (where it returns).
struct LogLinesOptions {
  int64_t context = 128;       // T
  int64_t identifiers = 6;     // of each sequence, at most
  int64_t held_out_every = 7;  // identifiers with number mod this = 6, as P-104, are never trained but validated
  int64_t validation_sequences = 128;

  bool operator==(const LogLinesOptions&) const = default;
};

// Throws Error (usage) naming the first option that does not fit.
std::shared_ptr<const DataSource> log_lines(const LogLinesOptions& options);

// Whether an identifier of this number ("P-104": 104) is kept out of training.
bool is_held_out(const LogLinesOptions& options, int64_t number);

}  // namespace headlight
