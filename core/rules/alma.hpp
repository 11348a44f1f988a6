#pragma once

#include <algorithm>
#include <cmath>

#include "step.hpp"

namespace maxcosine {

// ALMA for p = 2: Gentile, A new approximate maximal margin classification algorithm, JMLR 2 (2001).
// With z = x / norm(x) and k = 1, 2, ...: when y (w.z) <= (1 - alpha) B / sqrt(k), a step C / sqrt(k) along y z,
// then back into the unit ball.
struct Alma {
  static Step step(const Scalars& s, double* state, const double* params) {
    const double alpha = params[0], b = params[1], c = params[2];
    double& updates = state[0];
    const double norm_x = std::sqrt(s.sq_x);
    const double root = std::sqrt(updates + 1);
    if (s.margin > norm_x * (1 - alpha) * b / root) return Step::none();
    const double step = c / root;
    const double sq_after = s.sq_w + 2 * step * s.margin / norm_x + step * step;
    // norm(w) after the step follows from scalars, so projecting all of w is one keep and add.
    const double keep = 1 / std::max(1.0, std::sqrt(std::max(0.0, sq_after)));
    updates += 1;
    return {keep, keep * step / norm_x};
  }
};

}  // namespace maxcosine
