// One hypothesis: its weights and scalars, and what a weight type can carry.
//
// A head stores w = scale * v, so that shrinking w costs nothing, and its scalars relative to the scale:
// sq_v = norm(v)^2 and coef_v = Lambda / scale.
//
// Tracked scalars steer the rules and prove nothing: claims.hpp computes what is proven from the weights.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "calibration.hpp"
#include "rules/step.hpp"

namespace maxcosine {

// The scalars of one head, laid out as the NumPy structured type HEAD of src/maxcosine/heads.py.
struct Head {
  std::int64_t positive;    // the class that counts as +1, one-vs-rest
  std::int64_t joint;       // whether this head learns all classes, each in one of its columns
  std::int64_t first;       // its columns of the weights: first <= column < stop
  std::int64_t stop;
  std::int64_t since;       // rows the model had seen when this head began; -1 while its class has not come
  std::int64_t weighted;    // whether a step was weighted
  std::int64_t scale_free;  // whether the length of w means nothing to the rule
  double scale;
  double sq_v;
  double coef_v;
  double slack_v;     // how far rounding may have moved v from the combination that it stands for, see claims.hpp
  double start_sq_w;  // norm(w)^2 after the first step of a scale-free rule
  double peak_sq_v;   // largest sq_v since it was last computed exactly
  std::int64_t written;     // non-zeros written since then
  std::int64_t highest;     // highest slot written since w was last cleared
  std::int64_t logged;      // slots logged since w was last cleared
  std::int64_t w_exponent;  // w as the rule would have it is 2^w_exponent * scale * v, see hold_length
  double radius;            // largest norm of an example that entered w
  double best_bound;        // the largest bound that a refresh has proven
  std::int64_t seen;    // rows seen by the model
  std::int64_t learnt;  // rows learnt since this head began, without those that were skipped
  std::int64_t mistakes;
  std::int64_t updates;
  std::int64_t roundings;     // updates in this model and in those that it goes on from: each rounds coef_v and slack_v
  std::int64_t sum_exponent;  // the sums over time, see averaging.hpp, are in units of 2^sum_exponent:
  double sum_scale;           // of the scale since v was last moved into total,
  double sum_coef;            // of Lambda
  double sum_slack;           // how far rounding may have moved total
};
static_assert(sizeof(Head) == 28 * 8 && std::is_trivially_copyable_v<Head>);

// What a weight type can carry. Examples outside are refused; v is rescaled to stay inside.
//
// Steps in proportion to norm(w) can lengthen it by the largest ratio of two norms, 1e18 in float and 1e96 in
// double, from at most 1e12 (see hold_length). high_sq_w is above the square of that, and leaves the square of the
// sum over 10^15 rounds within double.
//
// A vector of up to 2^40 numbers whose components, or the squares of these, underflow is off by at most `underflow`.
struct Limits {
  double eps, low_sq_x, high_sq_x, low_sq_v, high_sq_v, high_sq_w, underflow;
};
template <class T>
inline constexpr Limits LIMITS = std::is_same_v<T, float>
                                     ? Limits{0x1p-23, 1e-18, 1e18, 0x1p-100, 0x1p100, 1e62, 0x1p-130}
                                     : Limits{0x1p-52, 1e-96, 1e96, 0x1p-400, 0x1p400, 1e260, 0x1p-540};

// The scalars of a model. Sample weights are relative: each is divided by the running mean of those so far.
struct ModelScalars {
  double mean_weight;         // of the positive weights so far
  std::int64_t weighed_rows;  // rows of positive weight
  std::int64_t mistakes;      // rows that the last hypotheses predicted wrongly before they were learnt

  [[nodiscard]] ModelScalars with_weight(double weight) const {
    const std::int64_t n = weighed_rows + 1;
    return {mean_weight + (weight - mean_weight) / double(n), n, mistakes};
  }
};
static_assert(sizeof(ModelScalars) == 3 * 8 && std::is_trivially_copyable_v<ModelScalars>);

// The heads of a model as the sweep sees them. All memory is the caller's. Weights lie feature by feature:
// v[feature * width + column], so the columns of one feature are neighbours.
template <class T>
struct Heads {
  T* v;
  T* bias;
  double* total;  // null: hypotheses are not averaged
  double* total_bias;
  Head* table;
  std::size_t n_heads;
  std::size_t n_features;
  std::size_t width;
  double* state;
  std::size_t state_width;
  const double* params;
  std::size_t params_width;
  const RuleCall* rules;
  bool restarts;       // whether a rule may return keep = 0 after its start: then slots are logged
  std::uint64_t* log;  // n_heads rows of log_size slots
  std::size_t log_size;
  std::int64_t* class_seen;  // by class code: whether a row of it has come
  ModelScalars* scalars;
  Calibration* calibration;  // null: no probabilities
  double constant;           // 1 with an intercept, else 0
};

[[nodiscard]] inline int exponent_of(double x) {
  int exponent;
  std::frexp(x, &exponent);
  return exponent;
}

[[nodiscard]] inline int half_rounded_down(int x) { return x >> 1; }

}  // namespace maxcosine
