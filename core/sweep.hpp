// The only loop over examples, for every rule and any number of heads. Each example costs time linear in its
// non-zeros for every column of the weights.
//
// One-vs-rest: head h has column h, and its example is y x with y = 1 for its class and -1 otherwise. A head whose
// class has not come yet waits; it begins with the first row of that class.
//
// Joint: one head has all columns, one a class. Its example is x in the column of the right class and -x in that of
// the best wrong class, so its square norm is twice that of x (Kesler's construction).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arithmetic.hpp"
#include "head_calibration.hpp"
#include "head_steps.hpp"
#include "trace.hpp"

namespace maxcosine {

// Sparse rows over slots, as CSR. Unless `mapped`, slots must rise strictly; mapped rows come from an index or a
// parser: each slot once in a row, within bounds, in any order.
template <class T>
struct Rows {
  const std::int64_t* indptr;
  const std::uint32_t* slots;
  const T* values;
  const double* squares = nullptr;  // square norms of the rows, if known
  bool mapped = false;

  [[nodiscard]] std::size_t size(std::size_t row) const { return std::size_t(indptr[row + 1] - indptr[row]); }
};

// A weight counts as at least, and at most, this many times the mean weight: squares of weights stay within double.
inline constexpr double SMALLEST_FACTOR = 1e-12, LARGEST_FACTOR = 1e12;

// Which rows to learn from, and what is known of them. Arrays are indexed by row.
struct Examples {
  const std::int64_t* codes;
  const double* weights = nullptr;     // null: all are 1
  const std::int64_t* order = nullptr; // null: 0, 1, 2, ...
  std::size_t n = 0;                   // rows to visit
  std::int64_t* predicted = nullptr;   // null, or receives the class predicted before each row is learnt
  Trace* trace = nullptr;              // null, or receives the steps
};

// new_class: the layout of the model lacks the class of a row.
enum class Refusal : int { none, not_canonical, bad_row, bad_step, new_class };

struct Outcome {
  std::size_t rows_done;
  Refusal refusal = Refusal::none;
  std::size_t head = 0;
};

// Weights larger than this, in bytes, do not stay in the second-level cache: prefetch them some rows ahead.
inline constexpr std::size_t PREFETCH_FROM = 1 << 21;
inline constexpr std::size_t ROWS_AHEAD = 2;

template <class T, class W>
inline void prefetch_row(const W* weights, std::size_t width, const Rows<T>& rows, std::size_t row) {
  for (std::int64_t k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k)
    __builtin_prefetch(weights + rows.slots[k] * width, 0, 2);
}

// Marks a class as seen; the head that waited for it, if one did, begins.
template <class T>
void activate_class(const Heads<T>& heads, std::int64_t code) {
  heads.class_seen[code] = 1;
  for (std::size_t h = 0; h < heads.n_heads; ++h)
    if (heads.table[h].since < 0 && heads.table[h].positive == code) heads.table[h].since = heads.table[h].seen;
}

// The wrong class of the highest score, the first of equals; -1 if no other class has come.
template <class T>
[[nodiscard]] std::int64_t best_rival(const Heads<T>& heads, const double* scores, std::int64_t code) {
  std::int64_t rival = -1;
  double highest = -std::numeric_limits<double>::infinity();
  for (std::int64_t other = 0; other < heads.table[0].stop; ++other) {
    const double score = scores[other] + heads.constant * double(heads.bias[other]);
    if (other != code && heads.class_seen[other] && score > highest) {
      rival = other;
      highest = score;
    }
  }
  return rival;
}

// The class that the last hypotheses predict among those that have come, the first of equals; -1 if none has.
template <class T>
[[nodiscard]] std::int64_t predict(const Heads<T>& heads, const double* scores) {
  const bool joint = heads.table[0].joint != 0;
  if (!joint && heads.n_heads == 1) {
    const std::int64_t positive = heads.table[0].positive;
    const bool above = scores[0] + heads.constant * double(heads.bias[0]) > 0;
    if (heads.class_seen[positive] && (above || !heads.class_seen[0])) return positive;
    return heads.class_seen[0] ? 0 : -1;
  }
  const std::int64_t n_classes = joint ? heads.table[0].stop : std::int64_t(heads.n_heads);
  std::int64_t best = -1;
  double highest = -std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < n_classes; ++c) {
    double score = scores[c] + heads.constant * double(heads.bias[c]);
    if (!joint) {
      const Head& head = heads.table[c];
      if (head.since < 0) continue;
      if (!head.scale_free)
        score *= head.scale;
      else if (head.coef_v > 0)
        score /= head.coef_v;
    }
    if (heads.class_seen[c] && (best < 0 || score > highest)) {
      best = c;
      highest = score;
    }
  }
  return best;
}

// One row as all heads see it.
template <class T>
struct Row {
  const std::uint32_t* slots;
  const T* values;
  std::size_t n;
  std::size_t number;  // among the rows given
  bool rising;    // whether the slots rise
  double sq_x;    // of the example as a head sees it: with the constant feature, and doubled if joint
  double factor;  // of its steps: its weight relative to the mean weight

  [[nodiscard]] std::int64_t highest_slot() const {
    if (n == 0) return -1;
    if (rising) return slots[n - 1];
    std::uint32_t highest = 0;
    for (std::size_t k = 0; k < n; ++k) highest = std::max(highest, slots[k]);
    return highest;
  }
};

// Adds step times a row to one column of weights of type W, and returns what rounding may do to it: each product and
// each sum is rounded by half of eps, relative to itself. With one root, because sqrt(a) + sqrt(b) <= sqrt(2 (a + b)).
template <class T, class W>
[[nodiscard]] double write_column(const Heads<T>& heads, const Row<T>& row, W* weights, W& constant_weight,
                                  double step) {
  const double written = add_row(weights, heads.width, row.slots, row.values, row.n, step);
  constant_weight += W(step * heads.constant);
  const double constant = constant_weight;
  const double added = step * step * row.sq_x;
  return LIMITS<W>.eps * std::sqrt(2 * (written + constant * constant + added)) + LIMITS<W>.underflow;
}

// Adds step times a row to one column, and to the sum over time what averaging needs there.
template <class T>
void write_row(const Heads<T>& heads, Head& head, const Row<T>& row, std::int64_t column, double step) {
  head.slack_v += write_column(heads, row, heads.v + column, heads.bias[column], step);
  if (!heads.total) return;
  const double owed = -head.sum_scale * step;
  head.sum_slack += write_column(heads, row, heads.total + column, heads.total_bias[column], owed);
}

// One round of one head. `right` and `rival` are columns; y is the sign of the example in `right`.
template <class T>
[[nodiscard]] Refusal learn_row(const Heads<T>& heads, std::size_t h, const Row<T>& row, double dot, double y,
                              std::int64_t right, std::int64_t rival, Trace* trace) {
  Head& head = heads.table[h];
  const double scale = head.scale;
  const double margin = scale * dot;
  double move[2] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  const RuleCall& rule = heads.rules[h];
  rule.function(margin, scale * scale * head.sq_v, row.sq_x, scale * head.coef_v, heads.state + h * heads.state_width,
                heads.params + h * heads.params_width, move, rule.context);
  const double keep = move[0];
  double add = move[1];
  if (!(keep >= 0 && add >= 0 && std::isfinite(keep) && std::isfinite(add))) return Refusal::bad_step;
  if (row.factor != 1) {
    head.weighted = 1;
    add *= row.factor;
  }
  if (keep != 1 && !shrink(heads, h, keep)) return Refusal::bad_step;
  if (heads.total && must_flush(head)) flush_average(heads, head);
  const double step = add > 0 ? plan_step(heads, h, add, dot, row.sq_x) : 0;
  if (!(step >= 0)) return Refusal::bad_step;
  if (trace) trace->begin(head, h, row.number, margin, keep, step * head.scale);
  if (step > 0) {
    write_row(heads, head, row, right, step * y);
    if (rival >= 0) write_row(heads, head, row, rival, -step);
    if (heads.restarts) log_slots(heads, h, row.slots, row.n);
    count_step(heads, h, row.n, row.highest_slot(), step, row.sq_x);
  }
  if (trace) trace->end(head);
  head.seen += 1;
  head.learnt += 1;
  head.mistakes += margin <= 0;
  if (heads.total) add_to_sums(head);
  return Refusal::none;
}

// All heads learn one row, whose scores are known.
template <class T>
[[nodiscard]] Outcome learn_in_all_heads(const Heads<T>& heads, const Row<T>& row, std::int64_t code,
                                         const double* scores, Trace* trace) {
  if (heads.table[0].joint) {
    const std::int64_t rival = best_rival(heads, scores, code);
    if (rival < 0) {
      heads.table[0].seen += 1;
      return {};
    }
    const double dot = scores[code] - scores[rival] + heads.constant * (heads.bias[code] - heads.bias[rival]);
    return {0, learn_row(heads, 0, row, dot, 1, code, rival, trace), 0};
  }
  for (std::size_t h = 0; h < heads.n_heads; ++h) {
    Head& head = heads.table[h];
    if (head.since < 0) {
      head.seen += 1;
      continue;
    }
    const double y = code == head.positive ? 1 : -1;
    const double dot = y * (scores[h] + heads.constant * double(heads.bias[h]));
    const Refusal refusal = learn_row(heads, h, row, dot, y, std::int64_t(h), -1, trace);
    if (refusal != Refusal::none) return {0, refusal, h};
  }
  return {};
}

// Learns from the rows in the order given. Rows before a refused one have been learnt.
//
// A row of weight 0 is as if absent. One without features is the example (0, 1) with an intercept; without one it has
// no direction, and no head learns it.
template <class T>
[[nodiscard]] Outcome sweep(const Heads<T>& heads, const Rows<T>& rows, const Examples& examples) {
  const Limits& limits = LIMITS<T>;
  const bool joint = heads.table[0].joint != 0;
  const bool far = heads.n_features * heads.width * sizeof(T) > PREFETCH_FROM;
  std::vector<double> scores(heads.width);
  HeadCalibrator<T> calibrator(heads);
  const auto row_at = [&](std::size_t position) {
    return examples.order ? std::size_t(examples.order[position]) : position;
  };
  for (std::size_t position = 0; position < examples.n; ++position) {
    const std::size_t number = row_at(position);
    if (far && position + ROWS_AHEAD < examples.n)
      prefetch_row(heads.v, heads.width, rows, row_at(position + ROWS_AHEAD));
    const std::int64_t first = rows.indptr[number];
    Row<T> row{rows.slots + first, rows.values + first, rows.size(number), number, !rows.mapped, 0, 1};
    if (!rows.mapped && !is_canonical(row.slots, row.n, heads.n_features)) return {position, Refusal::not_canonical};
    const double square = rows.squares ? rows.squares[number] : square_norm(row.values, row.n);
    const std::int64_t code = examples.codes[number];
    const bool empty = square == 0 && is_zero(row.values, row.n);
    if (!empty && !(limits.low_sq_x <= square && square <= limits.high_sq_x)) return {position, Refusal::bad_row};
    score_columns(row.slots, row.values, row.n, heads.v, heads.width, scores.data());
    const std::int64_t predicted = predict(heads, scores.data());
    if (examples.predicted) examples.predicted[number] = predicted;
    const double weight = examples.weights ? examples.weights[number] : 1;
    if (weight == 0) continue;
    *heads.scalars = heads.scalars->with_weight(weight);
    heads.scalars->mistakes += predicted != code;
    if (heads.calibration) calibrator.learn(row.slots, row.values, row.n, scores.data(), code);
    if (!heads.class_seen[code]) activate_class(heads, code);
    if (empty && heads.constant == 0) {
      for (std::size_t h = 0; h < heads.n_heads; ++h) heads.table[h].seen += 1;
      continue;
    }
    row.factor = std::clamp(weight / heads.scalars->mean_weight, SMALLEST_FACTOR, LARGEST_FACTOR);
    row.sq_x = (square + heads.constant * heads.constant) * (joint ? 2 : 1);
    const Outcome outcome = learn_in_all_heads(heads, row, code, scores.data(), examples.trace);
    if (outcome.refusal != Refusal::none) return {position, outcome.refusal, outcome.head};
  }
  return {examples.n};
}

// Dense rows are packed into sparse blocks of about this many values, which fit into the second-level cache.
inline constexpr std::size_t BLOCK_VALUES = 1 << 17;

// Sparse rows packed from dense ones.
template <class T>
class PackedBlock {
 public:
  // For n_rows rows in all: a single one needs no room for a whole block.
  PackedBlock(std::size_t n_rows, std::size_t n_columns)
      : n_columns_(n_columns),
        max_rows_(std::max<std::size_t>(1, std::min(n_rows, BLOCK_VALUES / std::max<std::size_t>(1, n_columns)))),
        indptr_(max_rows_ + 1),
        slots_(max_rows_ * n_columns + 1),
        values_(max_rows_ * n_columns + 1) {}

  [[nodiscard]] std::size_t max_rows() const { return max_rows_; }
  [[nodiscard]] Rows<T> rows() const { return {indptr_.data(), slots_.data(), values_.data()}; }

  // row_of(k) is the k-th row to pack.
  template <class RowOf>
  void pack(const T* x, std::size_t n, RowOf row_of) {
    std::size_t end = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const T* row = x + row_of(k) * n_columns_;
      for (std::size_t column = 0; column < n_columns_; ++column) {
        // Written always and kept if not zero: a branch here would be mispredicted.
        slots_[end] = std::uint32_t(column);
        values_[end] = row[column];
        end += row[column] != 0;
      }
      indptr_[k + 1] = std::int64_t(end);
    }
  }

 private:
  std::size_t n_columns_, max_rows_;
  std::vector<std::int64_t> indptr_;
  std::vector<std::uint32_t> slots_;
  std::vector<T> values_;
};

// `sweep` over the rows of a C-ordered dense array with n_columns <= n_features columns.
template <class T>
[[nodiscard]] Outcome sweep_dense(const Heads<T>& heads, const T* x, std::size_t n_columns, const Examples& examples) {
  PackedBlock<T> block(examples.n, n_columns);
  std::vector<std::int64_t> codes(block.max_rows()), predicted(block.max_rows());
  std::vector<double> weights(block.max_rows());
  for (std::size_t start = 0; start < examples.n; start += block.max_rows()) {
    const std::size_t n = std::min(block.max_rows(), examples.n - start);
    const auto row_of = [&](std::size_t k) {
      return examples.order ? std::size_t(examples.order[start + k]) : start + k;
    };
    block.pack(x, n, row_of);
    for (std::size_t k = 0; k < n; ++k) {
      codes[k] = examples.codes[row_of(k)];
      if (examples.weights) weights[k] = examples.weights[row_of(k)];
    }
    const std::size_t traced = examples.trace ? examples.trace->n : 0;
    const Outcome outcome = sweep(heads, block.rows(),
                                  Examples{codes.data(), examples.weights ? weights.data() : nullptr, nullptr, n,
                                           examples.predicted ? predicted.data() : nullptr, examples.trace});
    if (examples.predicted)
      for (std::size_t k = 0; k < outcome.rows_done; ++k) examples.predicted[row_of(k)] = predicted[k];
    if (examples.trace)
      for (std::size_t k = traced; k < examples.trace->n; ++k)
        examples.trace->steps[k].row = std::int64_t(row_of(std::size_t(examples.trace->steps[k].row)));
    if (outcome.refusal != Refusal::none) return {start + outcome.rows_done, outcome.refusal, outcome.head};
  }
  return {examples.n};
}

}  // namespace maxcosine
