// The one-pass learner: a logistic head and an mcp_exact head in the geometry of onepass_geometry.hpp, each predicting
// by its last dual and by its average with weights t, mixed by their progressive errors.
//
// Up to two classes have one block, y = -1 for the first class and 1 for the second. More have one block each, and a
// row enters block c with a coefficient g_c; these sum to 0: softmax, and Kesler's construction for mcp_exact.
//
// exp and log1p are those of the C library, so the same input gives the same bits on one machine, whatever the
// chunks, the storage of the rows and the level of the processor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arithmetic.hpp"
#include "calibration.hpp"
#include "onepass_geometry.hpp"
#include "onepass_row.hpp"
#include "sweep.hpp"

namespace maxcosine {

inline constexpr double LOGISTIC_GAIN = 8;
inline constexpr double MOST_COEF_SUM = 1e16;  // no step takes Lambda beyond it: the averages stay within float

// The average with weights t of the duals after rows 1, ..., T. A step du_j of row j is in all of them from row j on,
// so its share is 1 - C_(j-1) / C_T with C_t = t (t + 1) / 2. Beside u, v = sum C_(j-1) du_j is kept; the average is
// u - v / C_T. Only weights that a step touches are written. v / C_T is at most as large as the sum of the steps'
// sizes, as u is, so the subtraction loses no more than the additions to u did. Numbers x hold (u, v) of both heads;
// the result is, of each head, the last dual's and the average's.
[[nodiscard]] inline DoubleLanes averaged(const DoubleLanes& x, double inverse_weight) {
  return DoubleLanes{x[0], x[0] - x[1] * inverse_weight, x[2], x[2] - x[3] * inverse_weight};
}

// How predictors are computed from duals after T rows, and how they are mixed.
struct Mixer {
  double gain;            // eta kappa of the logistic head: a score is this times <w, a>
  double inverse_weight;  // 1 / C_T for the rows that are in the averages
  DoubleLanes shares;     // of the predictors' scores

  // Scores of the four predictors.
  [[nodiscard]] DoubleLanes predictors(const DoubleLanes& products) const {
    return averaged(products, inverse_weight) * DoubleLanes{gain, gain, 1, 1};
  }
  [[nodiscard]] double mix(const DoubleLanes& scores) const { return sum_lanes(shares * scores); }
};

[[nodiscard]] inline double inverse_or_zero(double x) { return x > 0 ? 1 / x : 0; }

// For a row that is scored when `rows` rows are in the geometry, and those that were learnt in the averages.
[[nodiscard]] inline Mixer mixer_of(const OnePassScalars& scalars, std::int64_t learnt, std::int64_t rows) {
  const double least = *std::min_element(scalars.errors, scalars.errors + LANES);
  const double spread = 2 * std::sqrt(1 + least);
  DoubleLanes shares;
  for (std::size_t k = 0; k < LANES; ++k) shares[k] = std::exp(-(scalars.errors[k] - least) / spread);
  const DoubleLanes usual = (load_lanes(scalars.sizes) + 1) / double(1 + learnt);
  return {LOGISTIC_GAIN * std::sqrt(double(std::max<std::int64_t>(rows, 1)) / scalars.energy[0]),
          inverse_or_zero(sum_of_weights(learnt)), shares / sum_lanes(shares) / usual};
}

// The largest of n numbers that lie `stride` apart, the first of equals; `skipped` is left out.
[[nodiscard]] inline std::size_t largest(const double* x, std::size_t n, std::size_t stride,
                                         std::size_t skipped = std::size_t(-1)) {
  std::size_t best = skipped == 0;
  for (std::size_t k = best + 1; k < n; ++k)
    if (k != skipped && x[k * stride] > x[best * stride]) best = k;
  return best;
}

// The class that these margins predict; -1 if none is known.
[[nodiscard]] inline std::int64_t predicted_class(const double* margins, std::size_t n, std::int64_t n_classes) {
  if (n_classes < 2) return n_classes - 1;
  return n == 1 ? margins[0] > 0 : std::int64_t(largest(margins, n, 1));
}

// Learns rows one after another; holds the working memory.
template <class T>
class OnePassLearner {
 public:
  explicit OnePassLearner(const OnePass<T>& model) : model_(model), scalars_(*model.scalars) {}

  // Predicts one row and then learns it; one that is refused changes nothing. `predicted` and `margins` may be null.
  [[nodiscard]] Refusal learn(const std::uint32_t* slots, const T* values, std::size_t n, std::int64_t code,
                              double weight, std::int64_t* predicted, double* margins) {
    if (!row_.read(slots, values, n)) return Refusal::bad_row;
    if (weight > 0 && code >= std::max<std::int64_t>(scalars_.n_classes, 2)) return Refusal::new_class;
    const std::int64_t before = scalars_.rows;
    if (weight > 0) {
      begin_row(model_);
      row_.observe_all(model_);
      keep_sums_exact(model_);
    } else {
      row_.forget_unseen(model_);
    }
    row_.measure(model_);
    const Mixer mixer = mixer_of(scalars_, before, scalars_.rows);
    score(mixer);
    const std::int64_t guess = predicted_class(margins_.data(), margins_.size(), scalars_.n_classes);
    if (predicted) *predicted = guess;
    if (margins) std::copy(margins_.begin(), margins_.end(), margins);
    if (weight == 0) return Refusal::none;
    scalars_.mistakes += guess != code;
    scalars_.n_classes = std::max(scalars_.n_classes, code + 1);
    scalars_.mean_weight += (weight - scalars_.mean_weight) / double(scalars_.rows);
    take_steps(std::size_t(code), std::clamp(weight / scalars_.mean_weight, SMALLEST_FACTOR, LARGEST_FACTOR));
    count_errors(std::size_t(code));
    calibrate(scalars_.calibration, margins_, std::size_t(code), scalars_.rows);
    return Refusal::none;
  }

  // Margins of a row that is not learnt. Features that have never been seen count nothing.
  void score_only(const std::uint32_t* slots, const T* values, std::size_t n, double* margins) {
    if (!row_.read(slots, values, n)) {
      std::fill_n(margins, model_.n_blocks(), std::numeric_limits<double>::quiet_NaN());
      return;
    }
    row_.forget_unseen(model_);
    row_.measure(model_);
    score(mixer_of(scalars_, scalars_.rows, scalars_.rows));
    std::copy(margins_.begin(), margins_.end(), margins);
  }

 private:
  // The scores of the four predictors in each block, and their mixture.
  void score(const Mixer& mixer) {
    const std::size_t n_blocks = model_.n_blocks();
    scores_.resize(n_blocks * LANES);
    margins_.resize(n_blocks);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      const DoubleLanes scores = mixer.predictors(row_.inner_products(model_, b));
      store_lanes(&scores_[b * LANES], scores);
      margins_[b] = mixer.mix(scores);
    }
  }

  // The steps of both heads, written to the lanes of their duals. Lambda follows the steps.
  void take_steps(std::size_t code, double factor) {
    const std::size_t n_blocks = model_.n_blocks();
    coefs_.assign(n_blocks * LANES, 0.0);
    const double masses[2] = {logistic_step(code), mcp_step(code)};
    const double before = sum_of_weights(scalars_.rows - 1);  // C_(T-1), see averaged()
    for (std::size_t head = 0; head < 2; ++head) {
      const std::size_t u = 2 * head, v = u + 1;
      const double room = std::max(0.0, MOST_COEF_SUM - scalars_.coef_sum[u]);
      const double mass = std::min(masses[head] * factor, room);
      const double kept = masses[head] * factor > room ? factor * (room / (masses[head] * factor)) : factor;
      double energy = 0;
      for (std::size_t b = 0; b < n_blocks; ++b) {
        double* const coef = &coefs_[b * LANES];
        coef[u] *= kept;
        coef[v] = coef[u] * before;
        energy += coef[u] * coef[u];
      }
      scalars_.energy[head] += energy;
      scalars_.sq_steps[head] += energy / (row_.radius() * row_.radius());
      scalars_.coef_sum[u] += mass;
      scalars_.coef_sum[v] += mass * before;
    }
    row_.add_to(model_, coefs_);
  }

  // lam = sigmoid(-margin), or g = e_y - softmax. Returns what the coefficients add to Lambda: of g, the coefficient
  // of the right block. That is summed from the others, so that it stays exact when it is small.
  double logistic_step(std::size_t code) {
    const std::size_t n_blocks = model_.n_blocks();
    if (n_blocks == 1) {
      const double y = code ? 1 : -1;
      const double lam = 1 / (1 + std::exp(std::min(y * scores_[0], LARGEST_EXPONENT)));
      coefs_[0] = y * lam;
      return lam;
    }
    const double highest = scores_[largest(scores_.data(), n_blocks, LANES) * LANES];
    double sum = 0, mass = 0;
    for (std::size_t b = 0; b < n_blocks; ++b) sum += coefs_[b * LANES] = std::exp(scores_[b * LANES] - highest);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      coefs_[b * LANES] /= -sum;
      if (b != code) mass -= coefs_[b * LANES];
    }
    return coefs_[code * LANES] = mass;
  }

  // mcp_exact: lam = norm(w)^2 / (Lambda norm(a)^2) if the margin is at most norm(w)^2 / (2 Lambda).
  double mcp_step(std::size_t code) {
    const std::size_t n_blocks = model_.n_blocks();
    double margin, sq_row = row_.sq_norm();
    std::size_t rival = 0;
    if (n_blocks == 1) {
      margin = (code ? 1 : -1) * scores_[U_OF_MCP];
    } else {
      rival = largest(&scores_[U_OF_MCP], n_blocks, LANES, code);
      margin = scores_[code * LANES + U_OF_MCP] - scores_[rival * LANES + U_OF_MCP];
      sq_row *= 2;
    }
    const double sq_w = row_.sq_w(model_), coef_sum = scalars_.coef_sum[U_OF_MCP];
    double lam = 1;
    if (coef_sum > 0 && sq_w > 0) lam = margin <= sq_w / (2 * coef_sum) ? sq_w / (coef_sum * sq_row) : 0;
    if (n_blocks == 1) {
      coefs_[U_OF_MCP] = code ? lam : -lam;
    } else {
      coefs_[code * LANES + U_OF_MCP] = lam;
      coefs_[rival * LANES + U_OF_MCP] = -lam;
    }
    return lam;
  }

  void count_errors(std::size_t code) {
    const std::size_t n_blocks = model_.n_blocks();
    for (std::size_t k = 0; k < LANES; ++k) {
      double size = 0;
      for (std::size_t b = 0; b < n_blocks; ++b) size += std::abs(scores_[b * LANES + k]);
      scalars_.sizes[k] += size / double(n_blocks);
      const bool wrong = n_blocks == 1 ? (code ? 1 : -1) * scores_[k] <= 0
                                       : largest(&scores_[k], n_blocks, LANES) != code;
      scalars_.errors[k] += wrong;
    }
  }

  const OnePass<T>& model_;
  OnePassScalars& scalars_;
  OnePassRow<T> row_;
  std::vector<double> scores_, margins_, coefs_;
};

// Where the progressive margins go: n_columns numbers for each row, of which one for each block is written.
struct Margins {
  double* margins = nullptr;
  std::size_t n_columns = 0;

  [[nodiscard]] double* of(std::size_t row) const { return margins ? margins + row * n_columns : nullptr; }
};

template <class T>
void prefetch(const OnePass<T>& model, const Rows<T>& rows, std::size_t row) {
  for (std::int64_t k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k) {
    const std::size_t slot = rows.slots[k];
    __builtin_prefetch(model.features + slot, 1, 2);
    __builtin_prefetch(model.weights + slot * model.width, 1, 2);
  }
}

// Learns from the rows in the order given. Rows before a refused one have been learnt. A row of weight 0 is predicted
// only. One without features is learnt: it has the constant.
template <class T>
[[nodiscard]] Outcome sweep(const OnePass<T>& model, const Rows<T>& rows, const Examples& examples,
                            const Margins& margins) {
  OnePassLearner<T> learner(model);
  const auto row_at = [&](std::size_t k) { return examples.order ? std::size_t(examples.order[k]) : k; };
  const bool far = model.n_features * (sizeof(Feature) + model.width * sizeof(T)) > PREFETCH_FROM;
  for (std::size_t position = 0; position < examples.n; ++position) {
    if (far && position + ROWS_AHEAD < examples.n) prefetch(model, rows, row_at(position + ROWS_AHEAD));
    const std::size_t row = row_at(position), n = rows.size(row);
    const std::uint32_t* const slots = rows.slots + rows.indptr[row];
    if (!rows.mapped && !is_canonical(slots, n, model.n_features)) return {position, Refusal::not_canonical};
    const Refusal refusal = learner.learn(slots, rows.values + rows.indptr[row], n, examples.codes[row],
                                          examples.weights ? examples.weights[row] : 1,
                                          examples.predicted ? examples.predicted + row : nullptr, margins.of(row));
    if (refusal != Refusal::none) return {position, refusal};
  }
  return {examples.n};
}

// `sweep` over the rows of a C-ordered dense array with n_columns <= n_features columns.
template <class T>
[[nodiscard]] Outcome sweep_dense(const OnePass<T>& model, const T* x, std::size_t n_columns, const Examples& examples,
                                  const Margins& margins) {
  OnePassLearner<T> learner(model);
  PackedBlock<T> block(examples.n, n_columns);
  for (std::size_t start = 0; start < examples.n; start += block.max_rows()) {
    const std::size_t n = std::min(block.max_rows(), examples.n - start);
    const auto row_of = [&](std::size_t k) {
      return examples.order ? std::size_t(examples.order[start + k]) : start + k;
    };
    block.pack(x, n, row_of);
    const Rows<T> rows = block.rows();
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t row = row_of(k);
      const Refusal refusal = learner.learn(
          rows.slots + rows.indptr[k], rows.values + rows.indptr[k], rows.size(k), examples.codes[row],
          examples.weights ? examples.weights[row] : 1, examples.predicted ? examples.predicted + row : nullptr,
          margins.of(row));
      if (refusal != Refusal::none) return {start + k, refusal};
    }
  }
  return {examples.n};
}

// Margins of n rows that are not learnt, one for each block.
template <class T>
void score_rows(const OnePass<T>& model, const Rows<T>& rows, std::size_t n, double* margins) {
  OnePassLearner<T> learner(model);
  for (std::size_t row = 0; row < n; ++row)
    learner.score_only(rows.slots + rows.indptr[row], rows.values + rows.indptr[row], rows.size(row),
                       margins + row * model.n_blocks());
}

template <class T>
void score_dense_rows(const OnePass<T>& model, const T* x, std::size_t n_columns, std::size_t n, double* margins) {
  PackedBlock<T> block(n, n_columns);
  for (std::size_t start = 0; start < n; start += block.max_rows()) {
    const std::size_t n_block = std::min(block.max_rows(), n - start);
    block.pack(x, n_block, [&](std::size_t k) { return start + k; });
    score_rows(model, block.rows(), n_block, margins + start * model.n_blocks());
  }
}

}  // namespace maxcosine
