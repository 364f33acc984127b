#include "kernels/attention_plan.h"

#include <algorithm>
#include <limits>

namespace headlight {
namespace {

constexpr int64_t kFar = int64_t{1} << 20;

int64_t saturated_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
Range span_of(const View<const int64_t, 1>& begins, const View<const int64_t, 1>& lengths, int64_t b, int64_t rows) {
  const int64_t begin = begins.data == nullptr ? 0 : begins(b);
  return {begin, lengths.data == nullptr ? rows : begin + lengths(b)};
}

}  // namespace

Range intersect(Range a, Range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

template <class T>
Spans spans_of(const AttentionPattern<T>& pattern, int64_t b, int64_t Tq, int64_t Tk) {
  return {span_of<T>(pattern.q_begin, pattern.q_len, b, Tq), span_of<T>(pattern.k_begin, pattern.k_len, b, Tk)};
}

Range Band::keys(int64_t row) const {
  const int64_t p = saturated_add(pos0_, row);
  Range range{0, k_len_};
  if (left_) range.begin = std::clamp<int64_t>(saturated_add(p, -*left_), 0, k_len_);
  if (right_) range.end = std::clamp<int64_t>(saturated_add(saturated_add(p, *right_), 1), 0, k_len_);
  return range;
}

int64_t Band::first(int64_t row, int64_t from) const {
  if (!left_) return -kFar;
  return std::clamp(saturated_add(saturated_add(saturated_add(pos0_, row), -*left_), -from), -kFar, kFar);
}

int64_t Band::end(int64_t row, int64_t from) const {
  if (!right_) return kFar;
  const int64_t last = saturated_add(saturated_add(pos0_, row), *right_);
  return std::clamp(saturated_add(saturated_add(last, 1), -from), -kFar, kFar);
}

double Band::distance(int64_t row, int64_t key) const {
  return static_cast<double>(saturated_add(saturated_add(pos0_, row), -key));
}

template <class T>
TaskList::TaskList(const AttentionPattern<T>& pattern, int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t block,
                   int threads)
    : B_(B), H_(H), Tq_(Tq), Tk_(Tk) {
  const auto count_tasks = [&](int64_t rows_per_task) {
    int64_t tasks = 0;
    for (int64_t b = 0; b < B; ++b) {
      const int64_t rows = spans_of(pattern, b, Tq, Tk).q.size();
      tasks += H * std::max<int64_t>(1, ceil_div(rows, rows_per_task));
    }
    return tasks;
  };
  rows_per_task_ = rows_for_tasks(block, threads, count_tasks);
  count_ = count_tasks(rows_per_task_);
}

template <class T>
void TaskList::fill(const AttentionPattern<T>& pattern, Task* tasks) const {
  Task* next = tasks;
  for (int64_t b = 0; b < B_; ++b) {
    const Spans spans = spans_of(pattern, b, Tq_, Tk_);
    const Band band(pattern.pos0, pattern.left, pattern.right, spans.k.size());
    int64_t begin = 0;
    do {
      const Range rows{begin, std::min(spans.q.size(), begin + rows_per_task_)};
      const int64_t work = rows.empty() ? 0 : rows.size() * (band.seen_by_some(rows).size() + 1);
      for (int64_t h = 0; h < H_; ++h) *next++ = {b, h, rows, begin == 0, work};
      begin += rows_per_task_;
    } while (begin < spans.q.size());
  }
  std::sort(tasks, next, [](const Task& a, const Task& c) {
    if (a.work != c.work) return a.work > c.work;
    if (a.b != c.b) return a.b < c.b;
    if (a.h != c.h) return a.h < c.h;
    return a.rows.begin < c.rows.begin;
  });
}

template <class T>
BackwardPlan::BackwardPlan(const AttentionBackward<T>& args, int64_t block, int threads)
    : B(args.q.size(0)), Tq(args.q.size(1)), Tk(args.k.size(1)), Hkv(args.k.size(2)), blocks(ceil_div(Tq, block)) {
  const int64_t tiles = ceil_div(Tk, kTileKeys);
  splits = std::clamp<int64_t>(tiles, 1, kKeySplits);
  apart = splits > 1 && B * Hkv < kTasksPerThread * threads;
  tiles_per_task = apart ? ceil_div(tiles, splits) : tiles;
}

template <class T>
void BackwardPlan::fill(const AttentionPattern<T>& pattern, BackwardTask* tasks) const {
  BackwardTask* next = tasks;
  for (int64_t b = 0; b < B; ++b) {
    const Spans spans = spans_of(pattern, b, Tq, Tk);
    const Band band(pattern.pos0, pattern.left, pattern.right, spans.k.size());
    int64_t work = 0;
    for (int64_t row = 0; row < spans.q.size(); row += kTileKeys) work += band.keys(row).size();
    for (int64_t g = 0; g < Hkv; ++g) {
      for (int64_t split = 0; split < (apart ? splits : 1); ++split) {
        *next++ = {b, g, {split, apart ? split + 1 : splits}, work};
      }
    }
  }
  std::sort(tasks, next, [](const BackwardTask& a, const BackwardTask& c) {
    if (a.work != c.work) return a.work > c.work;
    if (a.b != c.b) return a.b < c.b;
    if (a.g != c.g) return a.g < c.g;
    return a.splits.begin < c.splits.begin;
  });
}

#define HEADLIGHT_INSTANTIATE(T)                                                                             \
  template Spans spans_of(const AttentionPattern<T>&, int64_t, int64_t, int64_t);                            \
  template TaskList::TaskList(const AttentionPattern<T>&, int64_t, int64_t, int64_t, int64_t, int64_t, int); \
  template void TaskList::fill(const AttentionPattern<T>&, Task*) const;                                     \
  template void BackwardPlan::fill(const AttentionPattern<T>&, BackwardTask*) const;
HEADLIGHT_INSTANTIATE(float)
HEADLIGHT_INSTANTIATE(double)
#undef HEADLIGHT_INSTANTIATE

template BackwardPlan::BackwardPlan(const AttentionBackward<float>&, int64_t, int);
template BackwardPlan::BackwardPlan(const AttentionBackward<double>&, int64_t, int);
template BackwardPlan::BackwardPlan(const AttentionBackward<BFloat16>&, int64_t, int);
template BackwardPlan::BackwardPlan(const AttentionBackward<Float16>&, int64_t, int);

}  // namespace headlight
