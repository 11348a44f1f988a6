#pragma once

#include <algorithm>
#include <cmath>

#include "../framework.hpp"
#include "romma.hpp"
#include "step.hpp"

namespace maxcosine {

// NAROMMA, the New Aggressive ROMMA: Section 3, Figure 1, Lemmas 4 to 6. By Theorem 7 it always points where
// aggressive ROMMA points. In hull terms it is an exact line search from w / Lambda towards the example.
struct Naromma {
  static Step step(const Scalars& s, double*, const double*) {
    if (s.coef_sum == 0) return Step::restart(1);
    const double norm_w = std::sqrt(s.sq_w);
    const double norm_x = std::sqrt(s.sq_x);
    const double cosine = s.margin / (norm_w * norm_x);
    if (1 + cosine <= PARALLEL_TOLERANCE) return Step::none();  // antiparallel: nothing separates
    const double bound = std::min(s.coef_sum / norm_w, LARGEST_BOUND / norm_x);
    const Maximum best = maximise(bound, 1, 1, s.sq_x, s.margin / (norm_w * s.sq_x));
    if (best.argmax == 0) return Step::none();  // type I: gamma_i >= 1 / ell
    if (best.argmax == INFINITE || 1 - cosine <= PARALLEL_TOLERANCE)
      return Step::restart(1);  // type II: 1 / ell > gamma_i >= norm(x)^2 ell
    return Step::of(norm_w * best.argmax);  // type III
  }
};

}  // namespace maxcosine
