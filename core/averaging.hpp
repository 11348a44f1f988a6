// The average of a hypothesis over time.
//
// The sum over time of w_t = s_t v_t is S v + total, where S is the sum of the scales so far, provided that total loses
// S times whatever is added to v. So an update writes only the weights it touches. The two parts cancel when w has
// shrunk and S has not; then S v is moved into total and S starts anew.
//
// Where the length of w means nothing, only the ratios of the lengths of the w_t matter to their average. The sums are
// kept in units of 2^sum_exponent, which rises with the longest w_t, so that they stay in range.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "claims.hpp"
#include "head.hpp"

namespace maxcosine {

// S v may be this many times what as many rounds with the present w would have made of it.
inline constexpr double LARGEST_DEBT = 16;

// Lengths below this beside the longest one are nothing. Not 0, so that an infinite slack stays infinite.
inline constexpr std::int64_t LOWEST_EXPONENT = -1000;

// The scale of w in the units of the sums.
[[nodiscard]] inline double scale_in_sums(const Head& head) {
  return std::ldexp(head.scale, int(std::max(head.w_exponent - head.sum_exponent, LOWEST_EXPONENT)));
}

[[nodiscard]] inline bool must_flush(const Head& head) {
  return head.sum_scale > LARGEST_DEBT * scale_in_sums(head) * double(head.learnt + 1);
}

// Counts S v as moved into total. Each number is rounded twice, relative to what was moved and to what came of it;
// norm(v) and norm(total) are at most the coefficients times the longest example, and the slack.
inline void count_flush(Head& head) {
  if (head.sum_scale == 0) return;  // nothing was moved, and slack_v may be infinite
  const double moved = head.sum_scale * (head.coef_v * head.radius + head.slack_v);
  const double written = head.sum_coef * head.radius + moved + head.sum_slack;
  head.sum_slack += head.sum_scale * head.slack_v + ROUNDING * (moved + written) + LIMITS<double>.underflow;
  head.sum_scale = 0;
}

template <class T>
void flush_average(const Heads<T>& heads, Head& head) {
  for (std::int64_t column = head.first; column < head.stop; ++column) {
    for (std::int64_t slot = 0; slot <= head.highest; ++slot) {
      const std::size_t place = std::size_t(slot) * heads.width + std::size_t(column);
      heads.total[place] += head.sum_scale * double(heads.v[place]);
    }
    heads.total_bias[column] += head.sum_scale * double(heads.bias[column]);
  }
  count_flush(head);
}

// Divides the sums by the power of two by which w exceeds their unit, if it does.
template <class T>
void fit_unit_of_sums(const Heads<T>& heads, Head& head) {
  const std::int64_t excess = head.w_exponent - head.sum_exponent;
  if (!heads.total || excess <= 0) return;
  const double factor = std::ldexp(1.0, int(std::max(-excess, LOWEST_EXPONENT)));
  for (std::int64_t column = head.first; column < head.stop; ++column) {
    double* const total = heads.total + column;
    for (std::size_t slot = 0; slot < heads.n_features; ++slot) total[slot * heads.width] *= factor;
    heads.total_bias[column] *= factor;
  }
  head.sum_scale *= factor;
  head.sum_coef *= factor;
  head.sum_slack = head.sum_slack * factor + LIMITS<double>.underflow;
  head.sum_exponent = head.w_exponent;
}

// Adds the present w to the sums. Lambda is weighed by what the scale, rounded, has added to S.
inline void add_to_sums(Head& head) {
  if (head.sq_v == 0) return;  // the scale of w = 0 says nothing
  const double before = head.sum_scale;
  head.sum_scale += scale_in_sums(head);
  head.sum_coef += (head.sum_scale - before) * head.coef_v;
}

}  // namespace maxcosine
