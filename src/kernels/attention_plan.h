#pragma once
// How attention is cut into pieces: which keys a row sees, blocks of query rows, tiles and chunks of keys, and
// tasks. Everything is counted from the first valid row of a batch entry, so that a sequence is cut in the
// same places alone and inside a padded batch; and nothing but the grouping of whole blocks into tasks
// depends on the number of threads, so that it cannot change a bit of the result.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "headlight/kernels/attention.h"
#include "headlight/kernels/attention_sums.h"
#include "headlight/kernels/bilinear_attention.h"

namespace headlight {

constexpr int64_t kTileKeys = 128;      // keys whose scores are held at once
constexpr int64_t kChunkKeys = 1024;    // keys after which partial results are merged
constexpr int64_t kTasksPerThread = 4;  // at least, where rows or keys can be cut that far
constexpr int64_t kFewRows = 8;         // query rows of a key/value head, up to which they are done together

// Half open; empty when end <= begin.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool empty() const { return end <= begin; }
  int64_t size() const { return empty() ? 0 : end - begin; }
};
Range intersect(Range a, Range b);

// The valid rows of one batch entry.
struct Spans {
  Range q;
  Range k;
};
template <class T>
Spans spans_of(const AttentionPattern<T>& pattern, int64_t b, int64_t Tq, int64_t Tk);

// The keys that positions alone let a query see. Rows and keys count from the first valid one.
class Band {
 public:
  Band(int64_t pos0, std::optional<int64_t> left, std::optional<int64_t> right, int64_t k_len)
      : pos0_(pos0), left_(left), right_(right), k_len_(k_len) {}

  Range keys(int64_t row) const;
  // The first key that the window lets a row see and the one after the last, counted from key `from`, without
  // regard to which keys there are; far ones are brought to a distance of 2^20, which any number can hold.
  int64_t first(int64_t row, int64_t from) const;
  int64_t end(int64_t row, int64_t from) const;
  // p - key, the signed distance of a row from a key
  double distance(int64_t row, int64_t key) const;
  // keys that some row of `rows` sees; those that every one sees
  Range seen_by_some(Range rows) const { return {keys(rows.begin).begin, keys(rows.end - 1).end}; }
  Range seen_by_all(Range rows) const { return {keys(rows.end - 1).begin, keys(rows.begin).end}; }

 private:
  int64_t pos0_;
  std::optional<int64_t> left_;
  std::optional<int64_t> right_;
  int64_t k_len_;
};

// Rows of each task: a multiple of `block`, as many as give each of several threads `per_thread` tasks. count(rows) is
// how many tasks there are then.
template <class Count>
int64_t rows_for_tasks(int64_t block, int threads, Count count, int64_t per_thread = kTasksPerThread) {
  constexpr int64_t kMostRows = 256;
  int64_t rows = std::max(block, kMostRows);
  while (threads > 1 && count(rows) < per_thread * threads && rows / 2 >= block) rows /= 2;
  return rows;
}

// Consecutive query rows of one head of one batch entry, done by one worker.
struct Task {
  int64_t b;
  int64_t h;
  Range rows;    // from q_begin; empty when the entry has no valid row
  bool first;    // of its head: also writes the rows outside the valid ones
  int64_t work;  // pairs of rows and keys visited
};

// All tasks, those with most work first.
class TaskList {
 public:
  // Rows per task are a multiple of `block`, as many as give each of `threads` several tasks.
  template <class T>
  TaskList(const AttentionPattern<T>& pattern, int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t block,
           int threads);

  int64_t count() const { return count_; }
  int64_t rows_per_task() const { return rows_per_task_; }
  // Writes count() tasks.
  template <class T>
  void fill(const AttentionPattern<T>& pattern, Task* tasks) const;

 private:
  int64_t B_, H_, Tq_, Tk_, rows_per_task_, count_;
};

// Tiles of keys are dealt in turn to this many splits, each with a dq of its own; see the backward.
constexpr int64_t kKeySplits = 4;

// Key/value head g of one batch entry, and which splits of its tiles.
struct BackwardTask {
  int64_t b;
  int64_t g;
  Range splits;
  int64_t work;
};

// How one backward is cut.
struct BackwardPlan {
  template <class T>
  BackwardPlan(const AttentionBackward<T>& args, int64_t block, int threads);

  int64_t count() const { return B * Hkv * (apart ? splits : 1); }
  // Writes count() tasks, those with most work first.
  template <class T>
  void fill(const AttentionPattern<T>& pattern, BackwardTask* tasks) const;

  int64_t B, Tq, Tk, Hkv;
  int64_t blocks;          // of rows, at most, in a head
  int64_t splits;          // that can have a tile
  bool apart;              // each split is a task of its own
  int64_t tiles_per_task;  // at most
};

// Hands out 64-byte aligned pieces of one block of memory; without a block it only counts.
class Arena {
 public:
  explicit Arena(std::byte* base = nullptr) : base_(base) {}
  template <class U>
  U* take(int64_t count) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count * static_cast<int64_t>(sizeof(U)) + 63) / 64 * 64;
    return reinterpret_cast<U*>(piece);
  }
  int64_t used() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

// Preconditions, checked before anything is written. Throw LogicError.
template <class T>
void check(const AttentionForward<T>& args);
template <class T>
void check(const AttentionBackward<T>& args);
template <class T>
void check(const AttentionRows<T>& args);
template <class T>
void check(const AttentionSums<T>& args);
template <class T>
void check(const BilinearForward<T>& args);
template <class T>
void check(const BilinearBackward<T>& args);

// The attention that a bilinear one does on its projected queries.
template <class T>
AttentionForward<T> attention_of(const BilinearForward<T>& args) {
  return {.q = args.projected,
          .k = args.k,
          .v = args.v,
          .o = args.o,
          .statistics = args.statistics,
          .pattern = args.pattern};
}
template <class T>
AttentionBackward<T> attention_of(const BilinearBackward<T>& args) {
  return {.q = args.projected,
          .k = args.k,
          .v = args.v,
          .o = args.o,
          .statistics = args.statistics,
          .d_o = args.d_o,
          .dq = args.d_projected,
          .dk = args.dk,
          .dv = args.dv,
          .dbias = args.dbias,
          .dsinks = args.dsinks,
          .dslopes = args.dslopes,
          .d_additive = args.d_additive,
          .pattern = args.pattern};
}

}  // namespace headlight
