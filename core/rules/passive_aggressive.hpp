#pragma once

#include <algorithm>

#include "step.hpp"

namespace maxcosine {

// Passive-aggressive learning: the smallest step that gives the example a margin of 1.
// Crammer et al., Online passive-aggressive algorithms, JMLR 7 (2006), Figure 1.
struct Pa {
  static Step step(const Scalars& s, double*, const double*) {
    return Step::of(std::max(0.0, 1 - s.margin) / s.sq_x);
  }
};

// PA-I: C caps the step.
struct Pa1 {
  static Step step(const Scalars& s, double*, const double* params) {
    return Step::of(std::min(params[0], std::max(0.0, 1 - s.margin) / s.sq_x));
  }
};

// PA-II: C softens the step.
struct Pa2 {
  static Step step(const Scalars& s, double*, const double* params) {
    return Step::of(std::max(0.0, 1 - s.margin) / (s.sq_x + 0.5 / params[0]));
  }
};

}  // namespace maxcosine
