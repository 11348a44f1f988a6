// What is proven of the mixture of the one-pass learner, with what rounding may have done to it.
//
// The mixture is a combination p of the signed rows y a with coefficients lam >= 0: those of the duals, times gains
// and shares, which are positive. So gamma Lambda <= norm(p) for every separator of length 1 and margin gamma, in
// today's geometry: mu and D are the numbers that are stored, each row has the divisor R that it got.
//
// Rounding. Let q be the coefficient of a row over R, of one head. Every sum of steps that a weight of a feature ever
// held is at most sum |q z| <= sqrt(sum q^2) sqrt(SS) (Cauchy and Schwarz), where sum q^2 is `sq_steps`, over all
// blocks. A weight is written at most n times. Each time it is rounded, relative to what is written and to what is
// added, by at most r = `of_weights`. So its error is at most ((1 + r)^n - 1) sqrt(sq_steps SS); for the weights v of
// an average it is C_T times that, and v counts 1 / C_T.
//
// Sums of T scalars are off by at most T roundings, relative to the sum of the sizes of what was added. For s and beta
// these are at most sqrt(2) Lambda over all blocks, because R >= 1 and a row has the coefficients of Kesler rows of
// total mass lam. The coefficient of a right block is itself a sum over the other blocks.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "claims.hpp"
#include "onepass.hpp"

namespace maxcosine {

struct OnePassClaim {
  double norm = 0;
  double coef_sum = 0;  // Lambda
  double ceiling = std::numeric_limits<double>::infinity();  // proven: at least norm / coef_sum
};

// The hypothesis that predicts is the sum over the lanes of these factors times u, or s, beta and Lambda.
[[nodiscard]] inline DoubleLanes lane_factors(const Mixer& mixer) {
  const double of_logistic = mixer.gain * mixer.shares[1], of_mcp = mixer.shares[3];
  return DoubleLanes{mixer.gain * mixer.shares[0] + of_logistic, -of_logistic * mixer.inverse_weight,
                     mixer.shares[2] + of_mcp, -of_mcp * mixer.inverse_weight};
}

template <class T>
[[nodiscard]] OnePassClaim claim_of_mixture(const OnePass<T>& model) {
  const OnePassScalars& scalars = *model.scalars;
  const std::size_t n_blocks = model.n_blocks(), n_slots = std::size_t(scalars.slots_used);
  const Mixer mixer = mixer_of(scalars, scalars.rows, scalars.rows);
  const DoubleLanes factors = lane_factors(mixer);
  const double unit = centre_unit(scalars.rows), metric = constant_metric(scalars.rows);

  std::vector<double> parts;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const double s = sum_lanes(factors * load_lanes(model.blocks[b].s));
    parts.push_back(norm_of(n_slots, [&](std::size_t slot) {
      const Feature& feature = model.features[slot];
      const double u = sum_lanes(factors * load_lanes(model.weights + slot * model.width + b * LANES));
      return std::sqrt(feature.metric) * (u - feature.centre * unit * s);
    }));
    parts.push_back(std::sqrt(metric) * sum_lanes(factors * load_lanes(model.blocks[b].beta)));
  }
  OnePassClaim claim;
  claim.norm = norm_of(parts.size(), [&](std::size_t k) { return parts[k]; });
  claim.coef_sum = sum_lanes(factors * load_lanes(scalars.coef_sum));

  const double of_scalars = ROUNDING * (double(scalars.rows) + double(n_blocks) + SCALAR_ROUNDINGS);
  const double of_weights = LIMITS<T>.eps / 2 + ROUNDING * (double(n_blocks) + SCALAR_ROUNDINGS);
  double steps = 0, masses = 0;  // of the last dual and, twice, of the average: its u and its v
  for (std::size_t head = 0; head < 2; ++head) {
    const double share = (head ? 1 : mixer.gain) * (mixer.shares[2 * head] + 2 * mixer.shares[2 * head + 1]);
    steps += share * std::sqrt(scalars.sq_steps[head]);
    masses += share * scalars.coef_sum[2 * head];
  }
  const auto of_features = [&](const auto& item) {
    return norm_of(n_slots, [&](std::size_t slot) { return item(model.features[slot]); });
  };
  const double written = of_features([&](const Feature& f) {
    return std::sqrt(f.metric * f.square) * std::expm1(double(f.count) * of_weights);
  });
  const double counted = of_features([](const Feature& f) { return std::sqrt(f.metric) * double(f.count); });
  const double centre = of_features([&](const Feature& f) { return std::sqrt(f.metric) * f.centre * unit; });
  double underflow = counted * double(n_blocks) * double(std::numeric_limits<T>::denorm_min());
  underflow *= (std::abs(factors[0]) + std::abs(factors[1])) + (std::abs(factors[2]) + std::abs(factors[3]));
  const double slack = steps * written + underflow + of_scalars * 2 * masses * (centre + 1);
  const double rounding = of_scalars + ROUNDING * double(SUM_BLOCK + n_slots / SUM_BLOCK);
  const double proven = claim.coef_sum - of_scalars * 2 * masses;
  if (proven > 0 && rounding < 1) claim.ceiling = (claim.norm + slack) * (1 + rounding) / (proven * (1 - rounding));
  return claim;
}

}  // namespace maxcosine
