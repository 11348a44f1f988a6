#pragma once

#include <algorithm>
#include <cmath>

#include "step.hpp"

namespace maxcosine {

// Rules of the band (docs/explanation/theory.md): lambda = k norm(w)^2 / (Lambda norm(x)^2), where k depends on
// v = ell margin / norm(w) alone, with the exact ell = Lambda / norm(w). If 2 k (1 - v) - k^2 >= 1 on mistakes and
// 0 <= k <= 2 (1 - v) on positive margins, ell never falls, and every mistake raises its square by at least
// 1 / norm(x)^2: Theorem 10 holds.

[[nodiscard]] inline double band_position(const Scalars& s) { return s.margin * s.coef_sum / s.sq_w; }

[[nodiscard]] inline Step band_step(const Scalars& s, double k) {
  return Step::of(k * (s.sq_w / (s.coef_sum * s.sq_x)));
}

// Damped MCP: k = 1 / (1 + |v|) for v <= 0.7. On mistakes 2 k (1 - v) - k^2 = 2 - k^2 >= 1; on margins k <= 2 (1 - v)
// says v^2 <= 1/2.
struct DampedMcp {
  static Step step(const Scalars& s, double*, const double*) {
    if (s.coef_sum == 0) return Step::restart(1);
    const double v = band_position(s);
    if (v > 0.7) return Step::none();
    return band_step(s, 1 / (1 + std::abs(v)));
  }
};

// Soft MCP: k = 1 on mistakes, the middle of the band, k = 1 - v, on margins. On mistakes 2 k (1 - v) - k^2 = 1 - 2 v.
struct SoftMcp {
  static Step step(const Scalars& s, double*, const double*) {
    if (s.coef_sum == 0) return Step::restart(1);
    const double v = band_position(s);
    if (v >= 1) return Step::none();
    return band_step(s, 1 - std::max(0.0, v));
  }
};

}  // namespace maxcosine
