#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "step.hpp"

namespace maxcosine {

// 1 - cos and 1 + cos are known up to a few rounding errors of the scalars they are computed from.
inline constexpr double PARALLEL_TOLERANCE = 8 * std::numeric_limits<double>::epsilon();

// norm(u) norm(x) above this means a margin below rounding, relative to the examples: nothing separates them. On
// noisy data norm(u) would grow without end, so it is held at this length.
inline constexpr double LARGEST_BOUND = 0x1p45;

// Aggressive ROMMA, the relaxed online maximum margin algorithm of Li and Long (Machine Learning 46, 2002), as in
// Table 1 of the paper: u <- c u + d a whenever the margin is below 1. u is the shortest vector with a margin of 1
// on the last example and on the half-space that u itself stands for. Lambda = norm(u)^2 throughout, so the bound
// is norm(u) itself (Theorem 7).
struct AggressiveRomma {
  static Step step(const Scalars& s, double*, const double*) {
    if (s.coef_sum == 0) return Step::restart(1 / s.sq_x);
    double product = s.sq_w * s.sq_x;
    const double cosine = s.margin / std::sqrt(product);
    if (1 + cosine <= PARALLEL_TOLERANCE) return Step::none();  // antiparallel: nothing separates
    const double shrink = std::min(1.0, LARGEST_BOUND / std::sqrt(product));
    const double margin = s.margin * shrink;
    product *= shrink * shrink;
    if (margin >= 1) return {shrink, 0};  // type I
    if (margin >= product || 1 - cosine <= PARALLEL_TOLERANCE) return Step::restart(1 / s.sq_x);  // type II
    // Type III: c and d of Table 1, with D = norm(a)^2 norm(u)^2 - (u.a)^2.
    const double determinant = product * (1 - cosine) * (1 + cosine);
    const double keep = (product - margin) / determinant;
    const double add = (product / s.sq_x) * (1 - margin) / determinant;
    return {shrink * keep, add};
  }
};

// ROMMA: the same step, on mistakes only. Type II then occurs at the start alone.
struct Romma {
  static Step step(const Scalars& s, double* state, const double* params) {
    return s.margin > 0 ? Step::none() : AggressiveRomma::step(s, state, params);
  }
};

}  // namespace maxcosine
