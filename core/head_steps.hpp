// What a step does to a head, and what keeps its weights and scalars in range.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "averaging.hpp"
#include "claims.hpp"
#include "head.hpp"

namespace maxcosine {

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

// The exponent of the length of a step relative to the scale.
[[nodiscard]] inline int step_exponent(double add, double sq_x, double scale) {
  return exponent_of(add) + half_rounded_down(exponent_of(sq_x)) - exponent_of(scale);
}

// w = 0, at the cost of what was written since it was last 0.
template <class T>
void clear_weights(const Heads<T>& heads, std::size_t h) {
  Head& head = heads.table[h];
  const bool use_log = head.logged > 0 && std::size_t(head.logged) <= heads.log_size;
  const std::uint64_t* log = heads.log + h * heads.log_size;
  const auto n = std::size_t(use_log ? head.logged : head.highest + 1);
  for (std::int64_t column = head.first; column < head.stop; ++column) {
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t place = (use_log ? std::size_t(log[k]) : k) * heads.width + std::size_t(column);
      if (heads.total) heads.total[place] += head.sum_scale * double(heads.v[place]);
      heads.v[place] = 0;  // the log may list a slot twice
    }
    if (heads.total) heads.total_bias[column] += head.sum_scale * double(heads.bias[column]);
    heads.bias[column] = 0;
  }
  if (heads.total) count_flush(head);
  head.scale = 1;
  head.sq_v = head.coef_v = head.slack_v = head.start_sq_w = head.peak_sq_v = 0;
  head.written = head.logged = head.w_exponent = 0;
  head.highest = -1;
}

// v <- v / 2^exponent and scale * 2^exponent: exact but for underflow, and w stays the same.
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
  head.slack_v = head.slack_v * factor + LIMITS<T>.underflow;
}

// Rescales v so that a step that is long beside it fits; returns the factor that v was multiplied by.
template <class T>
[[nodiscard]] double make_room_for_step(const Heads<T>& heads, std::size_t h, double add, double sq_x) {
  Head& head = heads.table[h];
  int exponent = step_exponent(add, sq_x, head.scale);
  if (exponent > LARGEST_STEP_EXPONENT) {
    const std::int64_t w_exponent = head.w_exponent;
    clear_weights(heads, h);
    head.w_exponent = w_exponent;
    head.scale = std::ldexp(1.0, step_exponent(add, sq_x, 1));
    return 0;
  }
  exponent = std::max(exponent, half_rounded_down(exponent_of(head.sq_v)));
  rescale(heads, h, exponent);
  return std::ldexp(1.0, -exponent);
}

// Computes norm(v) anew from the weights, stores what it proves, and keeps it in range.
template <class T>
void refresh(const Heads<T>& heads, std::size_t h) {
  Head& head = heads.table[h];
  const Claim claim = claim_of_last(heads, head);
  head.best_bound = std::max(head.best_bound, claim.bound);
  head.written = 0;
  if (claim.norm == 0) {
    clear_weights(heads, h);  // w = 0 is where a rule starts
    return;
  }
  double norm_v = claim.norm;
  if (norm_v * norm_v < LIMITS<T>.low_sq_v) {
    const int exponent = std::max(exponent_of(norm_v), -1000);
    if (heads.total) flush_average(heads, head);  // S could underflow
    rescale(heads, h, exponent);
    norm_v = std::ldexp(norm_v, -exponent);
  }
  head.sq_v = head.peak_sq_v = norm_v * norm_v;
}

[[nodiscard]] inline bool must_refresh(const Head& head, const Limits& limits) {
  const bool accurate = head.sq_v >= CANCELLATION * head.peak_sq_v && head.sq_v >= limits.low_sq_v;
  return !accurate || head.written > std::max(REFRESH_FROM, WRITES_PER_WEIGHT * (head.highest + 1));
}

// Holds Lambda where double ends on data that nothing separates. A Lambda smaller than the true one keeps every claim
// true.
inline void hold_coef(Head& head) {
  const double longest = head.coef_v * head.radius;
  if (longest * longest > LARGEST_READ_BOUND * LARGEST_READ_BOUND * head.sq_v)
    head.coef_v = LARGEST_READ_BOUND * std::sqrt(head.sq_v) / head.radius;
}

// Where the length of w means nothing, keeps it within reach: on noise it shrinks without end. In reach of where it
// started, so that scaling all examples changes nothing. w_exponent remembers the length that the rule gave it.
template <class T>
void hold_length(const Heads<T>& heads, Head& head) {
  const double sq_w = head.scale * head.scale * head.sq_v;
  if (!head.scale_free || sq_w == 0) return;
  bool held;
  if (head.start_sq_w == 0) {
    head.start_sq_w = std::min(std::max(sq_w, SHORTEST_SQ_START), LONGEST_SQ_START);
    held = sq_w == head.start_sq_w;
  } else {
    held = SHORTEST_SQ_W * head.start_sq_w <= sq_w && sq_w <= LONGEST_SQ_W * head.start_sq_w;
  }
  if (held) return;
  const int exponent = half_rounded_down(exponent_of(head.start_sq_w) - exponent_of(sq_w));
  head.scale = std::ldexp(head.scale, exponent);
  head.w_exponent -= exponent;
  fit_unit_of_sums(heads, head);
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

// The length of a step beside v, a number of the weights' type, with sq_v after it stored; NaN if the weights overflow.
// Where examples are weighted, such a step is not taken: it is 0.
template <class T>
[[nodiscard]] double plan_step(const Heads<T>& heads, std::size_t h, double add, double dot, double sq_x) {
  Head& head = heads.table[h];
  const Limits& limits = LIMITS<T>;
  if (head.weighted && !(add < std::numeric_limits<double>::infinity())) return 0;
  if (head.sq_v == 0) {
    head.scale = std::ldexp(1.0, step_exponent(add, sq_x, 1));  // v starts with a norm of about 1
    dot = 0;
  }
  double step = T(add / head.scale);
  double sq_v = head.sq_v + step * (2 * dot + step * sq_x);
  if (!(sq_v <= limits.high_sq_v)) {
    dot *= make_room_for_step(heads, h, add, sq_x);
    step = T(add / head.scale);
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
  head.coef_v += step;
  head.peak_sq_v = std::max(head.peak_sq_v, head.sq_v);
  head.written += std::int64_t(n);
  head.highest = std::max(head.highest, highest);
  if (sq_x > head.radius * head.radius) head.radius = std::sqrt(sq_x);
  head.updates += 1;
  head.roundings += 1;
  if (must_refresh(head, LIMITS<T>)) refresh(heads, h);
  hold_coef(head);
  hold_length(heads, head);
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
