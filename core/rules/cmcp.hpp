#pragma once

#include <cmath>

#include "step.hpp"

namespace maxcosine {

// CMCP, the Conservative Maximum Cosine Perceptron: Section 4 of the paper, Lemma 8.
//
// It maximises (ell + x) / sqrt(1 + norm(x)^2 x^2): Lemma 2 with r = ell, p = s = 1 and q = norm(x)^2. The
// projection is dropped because it is not positive on a mistake.
struct Cmcp {
  static Step step(const Scalars& s, double* state, const double*) {
    double& bound = state[0];
    if (s.coef_sum == 0) {
      bound = 1 / std::sqrt(s.sq_x);
      return Step::restart(1);
    }
    if (s.margin > 0) return Step::none();
    const double add = std::sqrt(s.sq_w) / (bound * s.sq_x);
    bound = std::sqrt(bound * bound + 1 / s.sq_x);
    return Step::of(add);
  }
};

}  // namespace maxcosine
