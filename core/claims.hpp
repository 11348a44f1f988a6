// What is proven of a hypothesis, with what rounding may have done to it.
//
// v stands for a combination p of the signed examples y_j a_j with coefficients c_j >= 0. A coefficient is the step as
// it was written, a number of the weights' type, so it is exact. Writing rounds: v differs from p, in norm by at most
// slack_v. For a separator w* of length 1 and margin gamma,
//
//     gamma sum(c_j) <= w*.p <= norm(p) <= norm(v) + slack_v,
//
// so ell = sum(c_j) / (norm(v) + slack_v) is proven. norm(v) is summed anew from the weights. coef_v and slack_v are
// sums of at most `roundings` positive numbers. docs/explanation/rounding.md derives every bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "arithmetic.hpp"
#include "head.hpp"

namespace maxcosine {

// Twice the unit roundoff of double: one rounding, and room for the rounding of the bound on it.
inline constexpr double ROUNDING = 0x1p-52;

// Squares are summed in blocks of this length.
inline constexpr std::size_t SUM_BLOCK = 128;

// Between these, no square that counts has overflowed or underflowed.
inline constexpr double SMALLEST_SUM = 0x1p-800, LARGEST_SUM = 0x1p1000;

// Roundings of a claim that no loop counts: products, quotients and roots of scalars.
inline constexpr double SCALAR_ROUNDINGS = 16;

struct Claim {
  double norm = 0;
  double bound = 0;  // ell; 0 claims nothing
  double slack = 0;  // how far rounding may have moved the hypothesis
};

// The sum of the squares of item(0), ..., item(n - 1), each multiplied by a factor.
template <class Item>
[[nodiscard]] double sum_of_squares(std::size_t n, const Item& item, double factor) {
  double total = 0;
  for (std::size_t start = 0; start < n; start += SUM_BLOCK) {
    const std::size_t stop = std::min(n, start + SUM_BLOCK);
    double sums[LANES] = {};
    for (std::size_t k = start; k < stop; ++k) {
      const double scaled = double(item(k)) * factor;
      sums[k % LANES] += scaled * scaled;
    }
    total += (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  return total;
}

// The norm of item(0), ..., item(n - 1), up to a relative error of 2^-53 (SUM_BLOCK + n / SUM_BLOCK + 1).
template <class Item>
[[nodiscard]] double norm_of(std::size_t n, const Item& item) {
  const double plain = sum_of_squares(n, item, 1);
  if (SMALLEST_SUM < plain && plain < LARGEST_SUM) return std::sqrt(plain);
  double largest = 0;
  for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, std::abs(double(item(k))));
  if (largest == 0) return 0;
  // Relative to the largest number no square overflows, and only squares that do not count underflow.
  const int exponent = std::max(exponent_of(largest), -1000);
  return std::ldexp(std::sqrt(sum_of_squares(n, item, std::ldexp(1.0, -exponent))), exponent);
}

// The relative error of the norm of a head with n slots.
[[nodiscard]] inline double norm_rounding(const Head& head, std::size_t n) {
  const auto n_columns = std::size_t(head.stop - head.first);
  return ROUNDING * double(SUM_BLOCK + (n + n_columns) / SUM_BLOCK);
}

// The norm of the columns of a head: weight(slot, column) for all slots < n, and constant(column).
template <class Weight, class Constant>
[[nodiscard]] double norm_of_columns(const Head& head, std::size_t n, const Weight& weight, const Constant& constant) {
  std::vector<double> parts;
  for (std::int64_t column = head.first; column < head.stop; ++column) {
    parts.push_back(norm_of(n, [&](std::size_t slot) { return weight(slot, column); }));
    parts.push_back(constant(column));
  }
  return norm_of(parts.size(), [&](std::size_t k) { return parts[k]; });
}

template <class T>
[[nodiscard]] double norm_of_v(const Heads<T>& heads, const Head& head) {
  return norm_of_columns(
      head, std::size_t(head.highest + 1),
      [&](std::size_t slot, std::int64_t column) { return heads.v[slot * heads.width + std::size_t(column)]; },
      [&](std::int64_t column) { return heads.bias[column]; });
}

// The claim for a hypothesis of this norm, Lambda and slack, each up to the relative error `rounding`.
[[nodiscard]] inline Claim make_claim(double norm, double coef, double slack, double rounding, double smallest) {
  slack *= 1 + rounding;
  const double longest = norm * (1 + rounding) + slack;
  const bool provable = coef > 0 && rounding < 1;
  return {norm, provable ? coef * (1 - rounding) / std::max(longest, smallest) : 0, slack};
}

// What is proven of the last hypothesis. No norm below eps * radius is claimed for a point of the hull.
template <class T>
[[nodiscard]] Claim claim_of_last(const Heads<T>& heads, const Head& head) {
  const double of_sums = ROUNDING * (double(head.roundings) + SCALAR_ROUNDINGS);
  const double rounding = norm_rounding(head, std::size_t(head.highest + 1)) + of_sums;
  const double smallest = LIMITS<T>.eps * head.radius * head.coef_v;
  return make_claim(norm_of_v(heads, head), head.coef_v, head.slack_v, rounding, smallest);
}

// One more than the last slot with a weight in a sum over time: there may be room for features to come.
template <class T>
[[nodiscard]] std::size_t slots_in_sums(const Heads<T>& heads, const Head& head) {
  auto n = heads.n_features;
  const auto empty = [&](std::size_t slot) {
    const std::size_t row = slot * heads.width;
    for (std::int64_t column = head.first; column < head.stop; ++column)
      if (heads.v[row + std::size_t(column)] != 0 || heads.total[row + std::size_t(column)] != 0) return false;
    return true;
  };
  while (n > 0 && empty(n - 1)) --n;
  return n;
}

// What is proven of the averaged hypothesis, in the units of its sum over time, S v + total.
template <class T>
[[nodiscard]] Claim claim_of_average(const Heads<T>& heads, const Head& head) {
  const double S = head.sum_scale;
  const std::size_t n = slots_in_sums(heads, head);
  const double norm = norm_of_columns(
      head, n,
      [&](std::size_t slot, std::int64_t column) {
        const std::size_t place = slot * heads.width + std::size_t(column);
        return S * double(heads.v[place]) + heads.total[place];
      },
      [&](std::int64_t column) { return S * double(heads.bias[column]) + heads.total_bias[column]; });
  const double added = ROUNDING * (S * norm_of_v(heads, head) + norm) + LIMITS<double>.underflow;
  const double of_sums = ROUNDING * (2 * double(head.learnt) + double(head.roundings) + SCALAR_ROUNDINGS);
  const double rounding = norm_rounding(head, n) + of_sums;
  const double smallest = LIMITS<T>.eps * head.radius * head.sum_coef;
  const double of_last = S > 0 ? S * head.slack_v : 0;  // slack_v may be infinite
  return make_claim(norm, head.sum_coef, head.sum_slack + of_last + added, rounding, smallest);
}

}  // namespace maxcosine
