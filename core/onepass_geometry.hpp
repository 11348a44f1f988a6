// The state of the one-pass learner, and the geometry that all its heads share.
//
// Rows are squashed, z = sign(x) log(1 + |x|). The geometry is learnt from the rows without their labels. Of a feature,
// n is the number of rows that have it, S and SS are the sums of z and z^2 over them, T is the number of all rows:
//
//     mu = S / T, fixed anew when row T = 1, 2, 4, ... arrives, from the rows before it
//     N^-2 = n / sqrt(SS (SS - S^2 / (T + 1))) and D^2 = N^-2 n^(-1/2), fixed anew when n has grown by a quarter
//     R = sqrt(1 + sum N^-2 (z - mu)^2), row a = ((z - mu) / R, 1/2)
//     <p, q> = sum D^2 p q + T^(-1/2) p_constant q_constant
//
// A dual is u = sum lam y z / R, s = sum lam y / R, beta = sum lam y / 2 and Lambda = sum lam over the rows. The
// hypothesis (u - mu s, beta) is the combination sum lam y a of the rows in today's geometry, whatever mu and D have
// become, so nothing is rewritten when they move.
//
// Rows are sparse and centred rows are not. What the centre adds to a score or a norm is a sum over all features that
// does not depend on the row, so these sums are kept, and an example costs time linear in its non-zeros. Between
// T = 2^k and 2^(k+1), mu is centre * 2^-k, where `centre` is S as it was at 2^k. The sums are kept for `centre`: at
// the next power of two, mu of a feature that no row has had since is halved by the unit 2^-k alone, and only the
// features of the rows since then, which are listed, have to be corrected.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arithmetic.hpp"
#include "calibration.hpp"

namespace maxcosine {

// One feature, laid out as FEATURE of src/maxcosine/onepass.py; a cache line. Counts are exact. S and SS are sums of at
// most n numbers: after 10^9 rows, rounding has changed them by less than 10^-6 in relation to the sum of the sizes of
// what was added. They make the geometry only, in which every hypothesis is exact.
struct Feature {
  std::int64_t count;     // n
  double total;           // S
  double square;          // SS
  double centre;          // S when T was last a power of two
  double inverse_scale;   // N^-2
  double metric;          // D^2
  std::int64_t next_fix;  // the count at which N and D are fixed anew
  std::int64_t period;    // of the last row that had it, see period_of
};
static_assert(sizeof(Feature) == 64 && std::is_trivially_copyable_v<Feature>);

// Four numbers belong together everywhere, and lie side by side: u (or s, beta, Lambda) of the logistic head, and what
// its average lacks; the same two of the mcp_exact head. See averaged() in onepass.hpp.
inline constexpr std::size_t U_OF_MCP = 2;

// What a dual has beside its weights, for one block: a class or, of up to two classes, the second against the first.
struct Block {
  double s[LANES];
  double beta[LANES];
  double centred[LANES];  // sum of D^2 u centre
};
static_assert(sizeof(Block) == 12 * 8 && std::is_trivially_copyable_v<Block>);

// Laid out as SCALARS of src/maxcosine/onepass.py.
struct OnePassScalars {
  std::int64_t rows;        // T: rows of positive weight
  std::int64_t n_classes;   // known classes
  std::int64_t mistakes;    // rows that the mixture predicted wrongly before they were learnt
  std::int64_t slots_used;  // one more than the highest slot of a row
  std::int64_t n_visited;   // features listed since T was last a power of two
  std::int64_t visits;      // non-zeros since the sums were last computed from the features
  std::int64_t stale;       // whether they should be computed anew
  double mean_weight;       // of the rows
  double sq_centre;         // sum of D^2 centre^2
  double scaled_centre;     // sum of N^-2 centre^2
  double peak;              // the largest scaled_centre since the sums were last computed from the features
  double sq_u;              // sum of D^2 u^2 of mcp_exact's last dual, all blocks
  double coef_sum[LANES];   // Lambda
  double energy[2];         // 1 + sum of the squared coefficients of a head
  double sq_steps[2];       // sum of (coefficient / R)^2 of a head; more after a merge, see onepass_merging.py
  double errors[LANES];     // progressive errors of the predictors: a head's last dual, and its average
  double sizes[LANES];      // sums of the sizes of their scores
  PlattScaling calibration;
};
static_assert(sizeof(OnePassScalars) == 33 * 8 && std::is_trivially_copyable_v<OnePassScalars>);

// The learner as the core sees it. All memory is the caller's. The weights of one feature are neighbours: four numbers
// for each block, and perhaps room for blocks to come.
template <class T>
struct OnePass {
  T* weights;
  Feature* features;
  std::uint32_t* visited;  // room for all features
  Block* blocks;
  OnePassScalars* scalars;
  std::size_t n_features;
  std::size_t width;  // numbers for each feature

  [[nodiscard]] std::size_t n_blocks() const {
    return scalars->n_classes <= 2 ? 1 : std::size_t(scalars->n_classes);
  }
};

template <class T>
inline void store_lanes(T* to, const DoubleLanes& lanes) {
  for (std::size_t lane = 0; lane < LANES; ++lane) to[lane] = T(lanes[lane]);
}

inline void add_lanes(double* to, const DoubleLanes& lanes) { store_lanes(to, load_lanes(to) + lanes); }

// k + 1 for 2^k <= T < 2^(k+1); 0 before the first row.
[[nodiscard]] inline int period_of(std::int64_t rows) { return std::bit_width(std::uint64_t(rows)); }

// mu in units of `centre`.
[[nodiscard]] inline double centre_unit(std::int64_t rows) { return std::ldexp(1.0, 1 - std::max(period_of(rows), 1)); }

[[nodiscard]] inline double constant_metric(std::int64_t rows) {
  return 1 / std::sqrt(double(std::max<std::int64_t>(rows, 1)));
}

// The weight of all rows so far in an average with weights t.
[[nodiscard]] inline double sum_of_weights(std::int64_t rows) { return double(rows) * double(rows + 1) / 2; }

// The sums have lost too many digits when they have shrunk by this factor.
inline constexpr double LARGEST_LOSS = 0x1p12;

// Sums that are stale are computed anew after one visit for this many slots; others, against the drift by rounding,
// after this many visits for each slot. So all of it costs a bounded time for each non-zero.
inline constexpr std::int64_t SLOTS_A_VISIT = 4, VISITS_A_SLOT = 64;

// The sums over all features, computed from the features.
template <class T>
void refresh_sums(const OnePass<T>& model) {
  OnePassScalars& scalars = *model.scalars;
  const std::size_t n_blocks = model.n_blocks();
  double sq_centre = 0, scaled_centre = 0, sq_u = 0;
  for (std::size_t b = 0; b < n_blocks; ++b) std::fill_n(model.blocks[b].centred, LANES, 0.0);
  for (std::size_t slot = 0; slot < std::size_t(scalars.slots_used); ++slot) {
    const Feature& feature = model.features[slot];
    if (feature.count == 0) continue;
    const double pull = feature.metric * feature.centre;
    sq_centre += pull * feature.centre;
    scaled_centre += feature.inverse_scale * feature.centre * feature.centre;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      const DoubleLanes u = load_lanes(model.weights + slot * model.width + b * LANES);
      sq_u += feature.metric * u[U_OF_MCP] * u[U_OF_MCP];
      add_lanes(model.blocks[b].centred, u * pull);
    }
  }
  scalars.sq_centre = sq_centre;
  scalars.scaled_centre = scalars.peak = scaled_centre;
  scalars.sq_u = sq_u;
  scalars.visits = scalars.stale = 0;
}

// Computes the sums anew if that is due. The schedule depends on the rows alone, not on how they come in chunks.
template <class T>
void keep_sums_exact(const OnePass<T>& model) {
  OnePassScalars& scalars = *model.scalars;
  scalars.peak = std::max(scalars.peak, scalars.scaled_centre);
  if (scalars.scaled_centre * LARGEST_LOSS < scalars.peak) scalars.stale = 1;
  const bool paid = scalars.visits * SLOTS_A_VISIT >= scalars.slots_used;
  if ((scalars.stale && paid) || scalars.visits >= scalars.slots_used * VISITS_A_SLOT) refresh_sums(model);
}

// Gives a feature another centre, N^-2 and D^2, and corrects the sums.
template <class T>
void move_feature(const OnePass<T>& model, std::size_t slot, double centre, double inverse_scale, double metric) {
  Feature& feature = model.features[slot];
  OnePassScalars& scalars = *model.scalars;
  const double pull = metric * centre - feature.metric * feature.centre;
  const double stretch = metric - feature.metric;
  scalars.sq_centre += metric * centre * centre - feature.metric * feature.centre * feature.centre;
  scalars.scaled_centre += inverse_scale * centre * centre - feature.inverse_scale * feature.centre * feature.centre;
  const T* const weights = model.weights + slot * model.width;
  for (std::size_t b = 0, n = model.n_blocks(); b < n; ++b) {
    const DoubleLanes u = load_lanes(weights + b * LANES);
    scalars.sq_u += stretch * u[U_OF_MCP] * u[U_OF_MCP];
    add_lanes(model.blocks[b].centred, u * pull);
  }
  feature.centre = centre;
  feature.inverse_scale = inverse_scale;
  feature.metric = metric;
}

// Counts one more row; at a power of two, the features of the rows since the last one get their new centre.
template <class T>
void begin_row(const OnePass<T>& model) {
  OnePassScalars& scalars = *model.scalars;
  scalars.rows += 1;
  if (!std::has_single_bit(std::uint64_t(scalars.rows))) return;
  for (std::int64_t k = 0; k < scalars.n_visited; ++k) {
    const std::size_t slot = model.visited[k];
    const Feature& feature = model.features[slot];
    move_feature(model, slot, feature.total, feature.inverse_scale, feature.metric);
  }
  scalars.n_visited = 0;
  scalars.stale = 1;
}

// N^-2 and D^2 from the rows so far.
template <class T>
void fix_metric(const OnePass<T>& model, std::size_t slot) {
  Feature& feature = model.features[slot];
  const double n = double(feature.count), rows = double(model.scalars->rows + 1);
  // S^2 <= T SS, so without rounding this is at least SS / (T + 1) and never 0.
  const double variation =
      std::max(feature.square - feature.total * feature.total / rows, feature.square / rows);
  const double inverse_scale = n / (std::sqrt(feature.square) * std::sqrt(variation));
  move_feature(model, slot, feature.centre, inverse_scale, inverse_scale / std::sqrt(n));
  feature.next_fix = std::max(feature.count + 1, std::int64_t(std::floor(1.25 * n)));
}

// Takes one value of the row that has begun into the statistics.
template <class T>
void observe(const OnePass<T>& model, std::uint32_t slot, double z) {
  Feature& feature = model.features[slot];
  OnePassScalars& scalars = *model.scalars;
  const std::int64_t period = period_of(scalars.rows);
  if (feature.period != period) {
    feature.period = period;
    model.visited[scalars.n_visited++] = slot;
    scalars.slots_used = std::max(scalars.slots_used, std::int64_t(slot) + 1);
  }
  feature.count += 1;
  feature.total += z;
  feature.square += z * z;
  if (feature.count >= feature.next_fix) fix_metric(model, slot);
}

}  // namespace maxcosine
