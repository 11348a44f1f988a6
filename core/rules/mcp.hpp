#pragma once

#include <algorithm>
#include <cmath>

#include "step.hpp"

namespace maxcosine {

// MCP, the Maximum Cosine Perceptron: Figure 2, Lemma 9, Theorem 10.
struct Mcp {
  static Step step(const Scalars& s, double* state, const double*) {
    double& bound = state[0];
    if (s.coef_sum == 0) {
      bound = 1 / std::sqrt(s.sq_x);
      return Step::restart(1);
    }
    const double norm_w = std::sqrt(s.sq_w);
    if (s.margin > norm_w / (2 * bound)) return Step::none();
    const double eta = std::max(0.0, s.margin) * bound / norm_w;  // steps 3.2, 3.3
    const double add = norm_w / (bound * s.sq_x);                 // step 3.1
    // The threshold makes 1 - 2 eta >= 0; rounding must not make it negative.
    bound = std::sqrt(bound * bound + std::max(0.0, 1 - 2 * eta) / s.sq_x);
    return Step::of(add);
  }
};

// MCP with the exact bound Lambda / norm(w) in place of the paper's recursion, which drops terms. The bound never
// falls, and every mistake raises its square by at least 1 / norm(x)^2, so Theorem 10 holds unchanged.
struct McpExact {
  static Step step(const Scalars& s, double*, const double*) {
    if (s.coef_sum == 0) return Step::restart(1);
    if (s.margin > s.sq_w / (2 * s.coef_sum)) return Step::none();
    return Step::of(s.sq_w / (s.coef_sum * s.sq_x));
  }
};

}  // namespace maxcosine
