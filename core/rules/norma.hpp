#pragma once

#include <algorithm>

#include "step.hpp"

namespace maxcosine {

// NORMA with a linear kernel: Kivinen, Smola and Williamson, Online learning with kernels, IEEE TSP 52 (2004).
// Every round w <- (1 - eta lambda) w; when margin <= rho also add eta y x. rho falls by eta (1 - nu) on a margin
// error and rises by eta nu otherwise. The margin is taken before the decay.
struct Norma {
  static Step step(const Scalars& s, double* state, const double* params) {
    const double eta = params[0], lambda = params[1], nu = params[2];
    const bool clip = params[3] > 0;  // holds rho at 0 or above, so that every mistake is learnt from
    double& rho = state[0];
    const bool margin_error = s.margin <= rho;
    rho = margin_error ? rho - eta * (1 - nu) : rho + eta * nu;
    if (clip) rho = std::max(0.0, rho);
    return {1 - eta * lambda, margin_error ? eta : 0.0};
  }
};

}  // namespace maxcosine
