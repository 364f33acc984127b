#include "kernels/reference/attention.h"

#include <cmath>
#include <limits>
#include <vector>

namespace headlight::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An element of a view that broadcasts over dimensions of size 1.
template <class T>
T& broadcast_at(const View<T, 4>& view, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t at[] = {b, h, i, j};
  int64_t offset = 0;
  for (int d = 0; d < 4; ++d) offset += view.size(d) == 1 ? 0 : at[d] * view.stride(d);
  return view.data[offset];
}

int64_t entry_or(const View<const int64_t, 1>& view, int64_t b, int64_t otherwise) {
  return view.data == nullptr ? otherwise : view(b);
}

// What one query row sees: the scores and weights of all keys.
struct Row {
  std::vector<bool> visible;
  std::vector<double> raw;     // before the cap
  std::vector<double> score;   // -inf where invisible
  std::vector<double> weight;  // 0 where invisible
  std::vector<double> distance;
  double max = -kInfinity;
  double sum = 0;
  double sink_weight = 0;
};

template <class T>
struct Rows {
  View<const T, 4> q, k;
  AttentionPattern<T> pattern;

  int64_t group_of(int64_t h) const { return h / (q.size(2) / k.size(2)); }

  bool is_visible(int64_t b, int64_t h, int64_t i, int64_t j, int64_t p, int64_t r) const {
    const int64_t q_begin = entry_or(pattern.q_begin, b, 0), k_begin = entry_or(pattern.k_begin, b, 0);
    const int64_t q_len = entry_or(pattern.q_len, b, q.size(1) - q_begin);
    const int64_t k_len = entry_or(pattern.k_len, b, k.size(1) - k_begin);
    if (i < q_begin || i >= q_begin + q_len || j < k_begin || j >= k_begin + k_len) return false;
    if (pattern.left && r < p && p - r > *pattern.left) return false;
    if (pattern.right && r > p && r - p > *pattern.right) return false;
    if (pattern.mask.data != nullptr && broadcast_at(pattern.mask, b, h, i, j) == 0) return false;
    return pattern.bias.data == nullptr || double(broadcast_at(pattern.bias, b, h, i, j)) != -kInfinity;
  }

  bool is_additive() const { return pattern.additive.data != nullptr; }
  // tanh(q + k) of one column
  double bent(int64_t b, int64_t h, int64_t i, int64_t j, int64_t c) const {
    return std::tanh(double(q(b, i, h, c)) + double(k(b, j, group_of(h), c)));
  }
  double raw_score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t c = 0; c < q.size(3); ++c) {
      sum += is_additive() ? double(pattern.additive(h, c)) * bent(b, h, i, j, c)
                           : double(q(b, i, h, c)) * double(k(b, j, group_of(h), c));
    }
    return double(pattern.scale) * sum;
  }

  double final_score(double raw, double distance, int64_t b, int64_t h, int64_t i, int64_t j) const {
    double score = raw;
    if (pattern.soft_cap) score = double(*pattern.soft_cap) * std::tanh(raw / double(*pattern.soft_cap));
    if (pattern.bias.data != nullptr) score += double(broadcast_at(pattern.bias, b, h, i, j));
    if (pattern.slopes.data != nullptr) score -= double(pattern.slopes(h)) * distance;
    return score;
  }

  Row row(int64_t b, int64_t h, int64_t i) const {
    const int64_t keys = k.size(1);
    Row out;
    out.visible.resize(keys);
    out.raw.resize(keys);
    out.score.assign(keys, -kInfinity);
    out.weight.resize(keys);
    out.distance.resize(keys);
    const int64_t p = pattern.pos0 + i - entry_or(pattern.q_begin, b, 0);
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t r = j - entry_or(pattern.k_begin, b, 0);
      out.visible[j] = is_visible(b, h, i, j, p, r);
      if (!out.visible[j]) continue;
      out.distance[j] = std::abs(double(p - r));
      out.raw[j] = raw_score(b, h, i, j);
      out.score[j] = final_score(out.raw[j], out.distance[j], b, h, i, j);
      if (out.score[j] > out.max) out.max = out.score[j];
    }
    weigh(out, h);
    return out;
  }

 private:
  // softmax of the visible scores and of the sink
  void weigh(Row& row, int64_t h) const {
    const bool has_sink = pattern.sinks.data != nullptr;
    const double sink = has_sink ? double(pattern.sinks(h)) : -kInfinity;
    if (has_sink && !(sink <= row.max)) row.max = sink;
    const double max = row.max == -kInfinity ? 0 : row.max;
    for (std::size_t j = 0; j < row.score.size(); ++j) {
      if (!row.visible[j]) continue;
      row.weight[j] = std::exp(row.score[j] - max);
      row.sum += row.weight[j];
    }
    if (has_sink) row.sink_weight = std::exp(sink - max);
    row.sum += row.sink_weight;
    if (row.sum == 0) return;
    for (double& w : row.weight) w /= row.sum;
    for (std::size_t j = 0; j < row.score.size(); ++j) row.weight[j] = row.visible[j] ? row.weight[j] : 0;
    row.sink_weight /= row.sum;
  }
};

template <class T, int Rank>
void fill_zero(const View<T, Rank>& view) {
  if (view.data == nullptr) return;
  if constexpr (Rank == 1) {
    for (int64_t i = 0; i < view.size(0); ++i) view(i) = T(0);
  } else {
    for (int64_t i = 0; i < view.size(0); ++i) fill_zero(view[i]);
  }
}

template <class T>
double output_at(const View<const T, 4>& v, const Row& row, int64_t b, int64_t g, int64_t c) {
  double sum = 0;
  for (int64_t j = 0; j < v.size(1); ++j) {
    if (row.visible[j]) sum += row.weight[j] * double(v(b, j, g, c));
  }
  return sum;
}

// Gradients in float64, stored as T at the end: several heads and rows add to one element.
template <class T, int Rank>
struct Gradient {
  View<T, Rank> out;
  std::vector<double> sums;
  View<double, Rank> at;

  explicit Gradient(const View<T, Rank>& view) : out(view) {
    if (out.data == nullptr) return;
    sums.resize(static_cast<std::size_t>(out.count()));
    at = View<double, Rank>(sums.data(), out.sizes);
  }
  bool wanted() const { return out.data != nullptr; }
  void store() const {
    if (wanted()) copy(at, out);
  }

 private:
  template <int R>
  static void copy(const View<double, R>& from, const View<T, R>& to) {
    for (int64_t i = 0; i < to.size(0); ++i) {
      if constexpr (R == 1) {
        to(i) = static_cast<T>(from(i));
      } else {
        copy(from[i], to[i]);
      }
    }
  }
};

template <class T>
struct Backward {
  const AttentionBackward<T>& args;
  Rows<T> rows{args.q, args.k, args.pattern};
  Gradient<T, 4> dq{args.dq}, dk{args.dk}, dv{args.dv}, dbias{args.dbias};
  Gradient<T, 1> dsinks{args.dsinks}, dslopes{args.dslopes};
  Gradient<T, 2> d_additive{args.d_additive};

  void run() {
    for (int64_t b = 0; b < args.q.size(0); ++b) {
      for (int64_t h = 0; h < args.q.size(2); ++h) {
        for (int64_t i = 0; i < args.q.size(1); ++i) add_row(b, h, i);
      }
    }
    dq.store();
    dk.store();
    dv.store();
    dbias.store();
    dsinks.store();
    dslopes.store();
    d_additive.store();
  }

  void add_row(int64_t b, int64_t h, int64_t i) {
    const Row row = rows.row(b, h, i);
    const int64_t g = rows.group_of(h);
    double D = 0;
    bool sees_a_key = false;
    for (int64_t c = 0; c < args.v.size(3); ++c) D += double(args.d_o(b, i, h, c)) * output_at(args.v, row, b, g, c);
    for (int64_t j = 0; j < args.k.size(1); ++j) {
      if (!row.visible[j]) continue;
      sees_a_key = true;
      double dP = 0;
      for (int64_t c = 0; c < args.v.size(3); ++c) dP += double(args.d_o(b, i, h, c)) * double(args.v(b, j, g, c));
      add_pair(row, b, h, i, j, row.weight[j] * (dP - D));
    }
    if (dsinks.wanted() && sees_a_key) dsinks.at(h) -= row.sink_weight * D;
  }

  // dS is the derivative of the final score
  void add_pair(const Row& row, int64_t b, int64_t h, int64_t i, int64_t j, double dS) {
    const int64_t g = rows.group_of(h);
    if (dbias.wanted()) broadcast_at(dbias.at, b, h, i, j) += dS;
    if (dslopes.wanted()) dslopes.at(h) -= dS * row.distance[j];
    double ds = dS * double(args.pattern.scale);
    if (args.pattern.soft_cap) {
      const double t = std::tanh(row.raw[j] / double(*args.pattern.soft_cap));
      ds *= 1 - t * t;
    }
    for (int64_t c = 0; c < args.q.size(3); ++c) {
      // the derivatives of the raw score by q and by k
      double by_q = double(args.k(b, j, g, c)), by_k = double(args.q(b, i, h, c));
      if (rows.is_additive()) {
        const double t = rows.bent(b, h, i, j, c);
        by_q = by_k = double(args.pattern.additive(h, c)) * (1 - t * t);
        if (d_additive.wanted()) d_additive.at(h, c) += ds * t;
      }
      if (dq.wanted()) dq.at(b, i, h, c) += ds * by_q;
      if (dk.wanted()) dk.at(b, j, g, c) += ds * by_k;
    }
    for (int64_t c = 0; c < args.v.size(3) && dv.wanted(); ++c) {
      dv.at(b, j, g, c) += row.weight[j] * double(args.d_o(b, i, h, c));
    }
  }
};

}  // namespace

template <class T>
void attention_forward(const AttentionForward<T>& args) {
  const Rows<T> rows{args.q, args.k, args.pattern};
  for (int64_t b = 0; b < args.q.size(0); ++b) {
    for (int64_t h = 0; h < args.q.size(2); ++h) {
      for (int64_t i = 0; i < args.q.size(1); ++i) {
        const Row row = rows.row(b, h, i);
        for (int64_t c = 0; c < args.v.size(3); ++c) {
          args.o(b, i, h, c) = static_cast<T>(output_at(args.v, row, b, rows.group_of(h), c));
        }
        if (args.statistics.data != nullptr) {
          args.statistics(b, h, i) = {static_cast<T>(row.max), static_cast<T>(row.sum)};
        }
      }
    }
  }
}

template <class T>
void attention_backward(const AttentionBackward<T>& args) {
  Backward<T>{args}.run();
}

template <class T>
void attention_rows(const AttentionRows<T>& args) {
  const Rows<T> rows{args.q, args.k, args.pattern};
  for (int64_t b = 0; b < args.weights.size(0); ++b) {
    for (int64_t n = 0; n < args.weights.size(1); ++n) {
      for (int64_t i = 0; i < args.weights.size(2); ++i) {
        const Row row = rows.row(b, args.head_begin + n, args.row_begin + i);
        for (int64_t j = 0; j < args.weights.size(3); ++j) args.weights(b, n, i, j) = static_cast<T>(row.weight[j]);
      }
    }
  }
}

template <class T>
void attention_sums(const AttentionSums<T>& args) {
  const Rows<T> rows{args.q, args.k, args.pattern};
  for (int64_t b = 0; b < args.q.size(0); ++b) {
    for (int64_t h = 0; h < args.q.size(2); ++h) {
      for (int64_t i = 0; i < args.q.size(1); ++i) {
        const Row row = rows.row(b, h, i);
        double sum = 0, entropy = 0, distance = 0;
        for (std::size_t j = 0; j < row.weight.size(); ++j) {
          sum += row.weight[j];
          if (row.weight[j] != 0) entropy -= row.weight[j] * std::log(row.weight[j]);
          distance += row.weight[j] * row.distance[j];
        }
        if (args.sum.data != nullptr) args.sum(b, h, i) = sum;
        if (args.entropy.data != nullptr) args.entropy(b, h, i) = entropy;
        if (args.distance.data != nullptr) args.distance(b, h, i) = distance;
        for (int64_t n = 0; n < args.chosen.size(2); ++n) {
          const int64_t j = args.chosen(b, i, n);
          const bool is_key = j >= 0 && j < args.k.size(1);
          args.weights(b, h, i, n) = is_key ? static_cast<T>(row.weight[static_cast<std::size_t>(j)]) : T(0);
        }
      }
    }
  }
}

template void attention_forward(const AttentionForward<float>&);
template void attention_forward(const AttentionForward<double>&);
template void attention_backward(const AttentionBackward<float>&);
template void attention_backward(const AttentionBackward<double>&);
template void attention_rows(const AttentionRows<float>&);
template void attention_rows(const AttentionRows<double>&);
template void attention_sums(const AttentionSums<float>&);
template void attention_sums(const AttentionSums<double>&);

}  // namespace headlight::reference
