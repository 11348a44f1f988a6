// One hypothesis: what a step does to its weights and scalars, and what keeps both exact and in range.
//
// A head stores w = scale * v, so that shrinking w costs nothing, and its scalars relative to the scale:
// sq_v = norm(v)^2 and coef_v = Lambda / scale.
//
// Averaging. The sum over time of w_t = s_t v_t is S v + total, where S is the sum of the scales so far, provided
// that total loses S times whatever is added to v. So an update writes only the weights it touches. The two parts
// cancel when w has shrunk and S has not; then S v is moved into total and S starts anew.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "arithmetic.hpp"
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
  double coef_v;      // as the rule reads it
  double claim_v;     // as it is claimed: at most coef_v, see certify
  double slack_v;     // how far rounding may have moved v from the combination that it stands for
  double start_sq_w;  // norm(w)^2 after the first step of a scale-free rule
  double peak_sq_v;   // largest sq_v since it was last computed exactly
  std::int64_t written;  // non-zeros written since then
  std::int64_t highest;  // highest slot written since w was last cleared
  std::int64_t logged;   // slots logged since w was last cleared
  double radius;         // largest norm of an example that entered w
  double best_bound;
  std::int64_t seen;    // rows seen by the model
  std::int64_t learnt;  // rows learnt since this head began, without zero rows
  std::int64_t mistakes;
  std::int64_t updates;
  double sum_scale;  // sums over time: of the scale,
  double sum_coef;   // of Lambda,
  double sum_norm;   // of norm(w)
  double sum_slack;  // how far rounding may have moved the sum over time of w
};
static_assert(sizeof(Head) == 27 * 8 && std::is_trivially_copyable_v<Head>);

// What a weight type can carry. Examples outside are refused; v is rescaled to stay inside.
//
// Steps in proportion to norm(w) can lengthen it by the largest ratio of two norms, 1e18 in float and 1e96 in
// double, from at most 1e12 (see hold_length). high_sq_w is above the square of that and leaves the sum over 10^7
// rounds, which averaging needs, within the type.
struct Limits {
  double eps, low_sq_x, high_sq_x, low_sq_v, high_sq_v, high_sq_w;
};
template <class T>
inline constexpr Limits LIMITS = std::is_same_v<T, float>
                                     ? Limits{0x1p-23, 1e-18, 1e18, 0x1p-100, 0x1p100, 1e62}
                                     : Limits{0x1p-52, 1e-96, 1e96, 0x1p-400, 0x1p400, 1e300};

// The heads of a model as the sweep sees them. All memory is the caller's. Weights lie feature by feature:
// v[feature * width + column], so the columns of one feature are neighbours.
template <class T>
struct Heads {
  T* v;
  T* bias;
  T* total;  // null: hypotheses are not averaged
  T* total_bias;
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
  double constant;           // 1 with an intercept, else 0
};

// sq_v is tracked by its increments. It is computed anew when cancellation has eaten four of its digits, and when
// so many non-zeros were written that computing it costs little beside them.
inline constexpr double CANCELLATION = 1e-4;
inline constexpr std::int64_t REFRESH_FROM = 1 << 20;
inline constexpr std::int64_t WRITES_PER_WEIGHT = 4;

// A hypothesis that has decayed this far is 0; so is one beside which a step is 2^100 times as long.
inline constexpr double SMALLEST_SCALE = 0x1p-900;
inline constexpr int LARGEST_STEP_EXPONENT = 100;

// Rules read a Lambda / norm(w) of at most this, relative to the longest example.
inline constexpr double LARGEST_READ_BOUND = 0x1p200;

// Within these, relative to its start, a w whose length means nothing keeps the length that its rule gave it.
inline constexpr double SHORTEST_SQ_W = 0x1p-40, LONGEST_SQ_W = 0x1p40;
inline constexpr double SHORTEST_SQ_START = 1e-12, LONGEST_SQ_START = 1e12;

// S v may be this many times what as many rounds with the present w would have made of it.
inline constexpr double LARGEST_DEBT = 16;

[[nodiscard]] inline int exponent_of(double x) {
  int exponent;
  std::frexp(x, &exponent);
  return exponent;
}

[[nodiscard]] inline int half_rounded_down(int x) { return x >> 1; }

// The exponent of the length of a step relative to the scale.
[[nodiscard]] inline int step_exponent(double add, double sq_x, double scale) {
  return exponent_of(add) + half_rounded_down(exponent_of(sq_x)) - exponent_of(scale);
}

// The square norm of the first n weights of a column, summed lane by lane as square_norm does it.
template <class T>
[[nodiscard]] double column_square_norm(const T* column, std::size_t width, std::size_t n) {
  if (width == 1) return square_norm(column, n);
  double sums[LANES] = {}, rest = 0;
  const std::size_t in_lanes = n - n % LANES;
  for (std::size_t slot = 0; slot < in_lanes; ++slot) {
    const double weight = column[slot * width];
    sums[slot % LANES] += weight * weight;
  }
  for (std::size_t slot = in_lanes; slot < n; ++slot) rest += double(column[slot * width]) * double(column[slot * width]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest;
}

template <class T>
[[nodiscard]] double exact_square_norm(const Heads<T>& heads, std::size_t h) {
  const Head& head = heads.table[h];
  double total = 0;
  for (std::int64_t column = head.first; column < head.stop; ++column) {
    const double bias = heads.bias[column];
    total += column_square_norm(heads.v + column, heads.width, std::size_t(head.highest + 1)) + bias * bias;
  }
  return total;
}

// total += S * (one weight). S alone may be outside the range of T.
template <class T>
inline void add_to_total(const Heads<T>& heads, std::size_t place, double sum_scale) {
  heads.total[place] += T(sum_scale * double(heads.v[place]));
}

template <class T>
void flush_bias_average(const Heads<T>& heads, const Head& head) {
  for (std::int64_t column = head.first; column < head.stop; ++column)
    heads.total_bias[column] += T(head.sum_scale * double(heads.bias[column]));
}

// Moves S v into total; see Averaging above.
template <class T>
void flush_average(const Heads<T>& heads, std::size_t h) {
  Head& head = heads.table[h];
  for (std::int64_t slot = 0; slot <= head.highest; ++slot)
    for (std::int64_t column = head.first; column < head.stop; ++column)
      add_to_total(heads, std::size_t(slot) * heads.width + std::size_t(column), head.sum_scale);
  flush_bias_average(heads, head);
  head.sum_scale = 0;
}

// w = 0, at the cost of what was written since it was last 0.
template <class T>
void clear_weights(const Heads<T>& heads, std::size_t h) {
  Head& head = heads.table[h];
  const bool use_log = head.logged > 0 && std::size_t(head.logged) <= heads.log_size;
  const std::int64_t n = use_log ? head.logged : head.highest + 1;
  const std::uint64_t* log = heads.log + h * heads.log_size;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::size_t slot = use_log ? std::size_t(log[k]) : std::size_t(k);
    for (std::int64_t column = head.first; column < head.stop; ++column) {
      const std::size_t place = slot * heads.width + std::size_t(column);
      if (heads.total) add_to_total(heads, place, head.sum_scale);
      heads.v[place] = 0;
    }
  }
  flush_bias_average(heads, head);
  for (std::int64_t column = head.first; column < head.stop; ++column) heads.bias[column] = 0;
  head.scale = 1;
  head.sq_v = head.coef_v = head.claim_v = head.slack_v = head.start_sq_w = head.peak_sq_v = head.sum_scale = 0;
  head.written = head.logged = 0;
  head.highest = -1;
}

// v <- v / 2^exponent and scale * 2^exponent: exact, and w stays the same.
template <class T>
void rescale(const Heads<T>& heads, std::size_t h, int exponent) {
  Head& head = heads.table[h];
  const double factor = std::ldexp(1.0, -exponent);
  // In double: weights that cancelled down to subnormal floats need a factor above the largest float.
  const auto scaled = [factor](T weight) { return T(double(weight) * factor); };
  for (std::int64_t slot = 0; slot <= head.highest; ++slot)
    for (std::int64_t column = head.first; column < head.stop; ++column) {
      T& weight = heads.v[std::size_t(slot) * heads.width + std::size_t(column)];
      weight = scaled(weight);
    }
  for (std::int64_t column = head.first; column < head.stop; ++column) heads.bias[column] = scaled(heads.bias[column]);
  head.scale /= factor;
  head.sum_scale /= factor;
  head.sq_v *= factor * factor;
  head.peak_sq_v *= factor * factor;
  head.coef_v *= factor;
  head.claim_v *= factor;
  head.slack_v *= factor;
}

// Rescales v so that a step that is long beside it fits; returns the factor that v was multiplied by.
template <class T>
[[nodiscard]] double make_room_for_step(const Heads<T>& heads, std::size_t h, double add, double sq_x) {
  Head& head = heads.table[h];
  int exponent = step_exponent(add, sq_x, head.scale);
  if (exponent > LARGEST_STEP_EXPONENT) {
    clear_weights(heads, h);
    head.scale = std::ldexp(1.0, step_exponent(add, sq_x, 1));
    return 0;
  }
  exponent = std::max(exponent, half_rounded_down(exponent_of(head.sq_v)));
  rescale(heads, h, exponent);
  return std::ldexp(1.0, -exponent);
}

// Computes sq_v anew from the weights and keeps it in range.
template <class T>
void refresh(const Heads<T>& heads, std::size_t h) {
  Head& head = heads.table[h];
  head.sq_v = head.peak_sq_v = exact_square_norm(heads, h);
  head.written = 0;
  if (head.sq_v == 0) {
    // The origin is in the hull: nothing separates. w = 0 is where a rule starts.
    head.best_bound = std::max(head.best_bound, 1 / (LIMITS<T>.eps * head.radius));
    clear_weights(heads, h);
  } else if (head.sq_v < LIMITS<T>.low_sq_v) {
    rescale(heads, h, half_rounded_down(exponent_of(head.sq_v)));
  }
}

// What rounding may do to total in one write: total is at most the sum of the norms and S v.
[[nodiscard]] inline double average_rounding(const Head& head, const Limits& limits) {
  const double longest_v = std::sqrt(std::max(head.sq_v, head.peak_sq_v));
  return limits.eps * (head.sum_norm + 2 * head.sum_scale * longest_v);
}

[[nodiscard]] inline bool must_refresh(const Head& head, const Limits& limits) {
  const bool accurate = head.sq_v >= CANCELLATION * head.peak_sq_v && head.sq_v >= limits.low_sq_v;
  return !accurate || head.written > std::max(REFRESH_FROM, WRITES_PER_WEIGHT * (head.highest + 1));
}

// ell = Lambda / norm(w), and the largest so far.
//
// 1 / ell is known up to rounding relative to the longest example, so a larger ell is not claimed; a Lambda smaller
// than the true one keeps every claim true. Rules go on reading the true Lambda, held where double ends on data that
// nothing separates. The combination that v stands for may be longer than v by the slack.
inline void certify(Head& head, const Limits& limits) {
  const double norm_v = std::sqrt(head.sq_v);
  if (!(norm_v > 0)) return;
  const double largest_coef = LARGEST_READ_BOUND * norm_v / head.radius;
  if (head.coef_v > largest_coef) {
    // (norm + slack) / Lambda only rises when slack and Lambda shrink alike.
    head.slack_v *= largest_coef / head.coef_v;
    head.coef_v = largest_coef;
  }
  const double bound = std::min(head.coef_v / (norm_v + head.slack_v), 1 / (limits.eps * head.radius));
  head.claim_v = bound * norm_v;
  head.best_bound = std::max(head.best_bound, bound);
}

// Where the length of w means nothing, keeps it within reach: on noise it shrinks without end. In reach of where it
// started, so that scaling all examples changes nothing.
inline void hold_length(Head& head) {
  const double sq_w = head.scale * head.scale * head.sq_v;
  if (!head.scale_free || sq_w == 0) return;
  bool held;
  if (head.start_sq_w == 0) {
    head.start_sq_w = std::min(std::max(sq_w, SHORTEST_SQ_START), LONGEST_SQ_START);
    held = sq_w == head.start_sq_w;
  } else {
    held = SHORTEST_SQ_W * head.start_sq_w <= sq_w && sq_w <= LONGEST_SQ_W * head.start_sq_w;
  }
  if (!held) head.scale = std::ldexp(head.scale, half_rounded_down(exponent_of(head.start_sq_w) - exponent_of(sq_w)));
}

// w <- keep * w, which costs nothing; w = 0 stays 0. False if the weights overflow. Where examples are weighted, w is
// held at half of what the weights can carry instead.
template <class T>
[[nodiscard]] bool shrink(const Heads<T>& heads, std::size_t h, double keep) {
  Head& head = heads.table[h];
  if (head.sq_v > 0) head.scale *= keep;
  if (head.scale < SMALLEST_SCALE) clear_weights(heads, h);
  if (head.scale * head.scale * head.sq_v <= LIMITS<T>.high_sq_w) return true;
  if (!head.weighted) return false;
  head.scale = std::sqrt(LIMITS<T>.high_sq_w / head.sq_v) / 2;
  return true;
}

// The length of a step beside v, with sq_v after it stored; NaN if the weights overflow. Where examples are weighted,
// such a step is not taken: it is 0.
template <class T>
[[nodiscard]] double plan_step(const Heads<T>& heads, std::size_t h, double add, double dot, double sq_x) {
  Head& head = heads.table[h];
  const Limits& limits = LIMITS<T>;
  if (head.weighted && !(add < std::numeric_limits<double>::infinity())) return 0;
  if (head.sq_v == 0) {
    head.scale = std::ldexp(1.0, step_exponent(add, sq_x, 1));  // v starts with a norm of about 1
    dot = 0;
  }
  double step = add / head.scale;
  double sq_v = head.sq_v + step * (2 * dot + step * sq_x);
  if (!(sq_v <= limits.high_sq_v)) {
    dot *= make_room_for_step(heads, h, add, sq_x);
    step = add / head.scale;
    sq_v = head.sq_v + step * (2 * dot + step * sq_x);
  }
  if (!(head.scale * head.scale * sq_v <= limits.high_sq_w))
    return head.weighted ? 0 : std::numeric_limits<double>::quiet_NaN();
  head.sq_v = sq_v;
  return step;
}

// Updates the scalars after a step has been written to n slots up to `highest`.
template <class T>
void count_step(const Heads<T>& heads, std::size_t h, std::size_t n, std::int64_t highest, double step, double sq_x) {
  Head& head = heads.table[h];
  const Limits& limits = LIMITS<T>;
  head.coef_v += step;
  head.peak_sq_v = std::max(head.peak_sq_v, head.sq_v);
  head.written += std::int64_t(n);
  head.highest = std::max(head.highest, highest);
  head.radius = std::max(head.radius, std::sqrt(sq_x));
  head.updates += 1;
  if (must_refresh(head, limits)) refresh(heads, h);
  // Each weight written is rounded, and so were the step and its product with the row; twice, for the tracked norm.
  if (head.sq_v > 0) head.slack_v += limits.eps * (std::sqrt(head.sq_v) + 2 * step * std::sqrt(sq_x));
  certify(head, limits);
  hold_length(head);
}

// Logs the slots of a step, for clear_weights. A log that has overflowed stays overflowed.
template <class T>
void log_slots(const Heads<T>& heads, std::size_t h, const std::uint32_t* slots, std::size_t n) {
  Head& head = heads.table[h];
  const auto start = std::size_t(head.logged);
  if (start > heads.log_size) return;
  if (start + n <= heads.log_size) std::copy(slots, slots + n, heads.log + h * heads.log_size + start);
  head.logged = std::int64_t(start + n);
}

}  // namespace maxcosine
