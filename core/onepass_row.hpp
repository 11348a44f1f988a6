// One row in the geometry of the one-pass learner: its squashed values, its length, and its products with all duals.
// All of it, and adding the row to the duals, costs time linear in its non-zeros.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arithmetic.hpp"
#include "onepass_geometry.hpp"

namespace maxcosine {

inline constexpr double CONSTANT = 0.5;       // appended to every row
inline constexpr double SMALLEST_Z = 1e-100;  // squashed values below this are absent; squares stay within double

// z = sign(x) log(1 + |x|), or 0 if that is too small. Counts, and pixels, come again and again; logarithms are slow,
// so some are remembered.
class Squash {
 public:
  [[nodiscard]] double operator()(double x) {
    Known& known = known_[(std::bit_cast<std::uint64_t>(x) * GOLDEN_RATIO) >> (64 - KNOWN_BITS)];
    if (known.x != x) {
      const double z = std::copysign(std::log1p(std::abs(x)), x);
      known = {x, std::abs(z) < SMALLEST_Z ? 0 : z};
    }
    return known.z;
  }

 private:
  static constexpr std::uint64_t GOLDEN_RATIO = 0x9E3779B97F4A7C15;  // 2^64 divided by it, for multiplicative hashing
  static constexpr int KNOWN_BITS = 10;
  struct Known {
    double x = 0, z = 0;
  };
  Known known_[1 << KNOWN_BITS];
};

// One row in the geometry: what its non-zeros and the sums over all features make of it.
template <class T>
class OnePassRow {
 public:
  // Squashes a row; false if a value is not finite.
  [[nodiscard]] bool read(const std::uint32_t* slots, const T* values, std::size_t n) {
    resize(n);
    std::size_t kept = 0;
    for (std::size_t k = 0; k < n; ++k) {
      if (!std::isfinite(values[k])) return false;
      slots_[kept] = slots[k];
      z_[kept] = squash_(values[k]);
      kept += z_[kept] != 0;
    }
    resize(kept);
    return true;
  }

  // Leaves out features that have never been seen.
  void forget_unseen(const OnePass<T>& model) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < z_.size(); ++k) {
      slots_[kept] = slots_[k];
      z_[kept] = z_[k];
      kept += slots_[k] < model.n_features && model.features[slots_[k]].count > 0;
    }
    resize(kept);
  }

  void observe_all(const OnePass<T>& model) {
    for (std::size_t k = 0; k < z_.size(); ++k) observe(model, slots_[k], z_[k]);
    model.scalars->visits += std::int64_t(z_.size());
  }

  // Lengths and inner products: sum D^2 (z - mu)^2 = sum D^2 mu^2 + sum over the non-zeros of D^2 z (z - 2 mu).
  void measure(const OnePass<T>& model) {
    const OnePassScalars& scalars = *model.scalars;
    unit_ = centre_unit(scalars.rows);
    double sq_scaled = 0, sq_metric = 0, pull = 0;
    sq_z_ = 0;
    scaled_.resize(z_.size());
    for (std::size_t k = 0; k < z_.size(); ++k) {
      const Feature& feature = model.features[slots_[k]];
      const double z = z_[k], mu = feature.centre * unit_;
      scaled_[k] = feature.metric * z;
      sq_scaled += feature.inverse_scale * z * (z - 2 * mu);
      sq_metric += scaled_[k] * (z - 2 * mu);
      sq_z_ += scaled_[k] * z;
      pull += scaled_[k] * feature.centre;
    }
    pull_ = pull;
    constant_metric_ = constant_metric(scalars.rows);
    radius_ = std::sqrt(1 + std::max(0.0, scalars.scaled_centre * unit_ * unit_ + sq_scaled));
    const double sq_features = std::max(0.0, scalars.sq_centre * unit_ * unit_ + sq_metric);
    sq_norm_ = sq_features / (radius_ * radius_) + constant_metric_ * CONSTANT * CONSTANT;
    products_.resize(model.n_blocks() * LANES);
    score_columns(slots_.data(), scaled_.data(), z_.size(), model.weights, model.width, products_.size(),
                  products_.data());
  }

  // <w, a> of each dual in block b, expanded over u - mu s and z - mu.
  [[nodiscard]] DoubleLanes inner_products(const OnePass<T>& model, std::size_t b) const {
    const Block& block = model.blocks[b];
    const double of_s = model.scalars->sq_centre * unit_ * unit_ - pull_ * unit_;
    const DoubleLanes centred =
        load_lanes(&products_[b * LANES]) - load_lanes(block.centred) * unit_ + load_lanes(block.s) * of_s;
    return centred / radius_ + load_lanes(block.beta) * (constant_metric_ * CONSTANT);
  }

  // The square norm of mcp_exact's last dual.
  [[nodiscard]] double sq_w(const OnePass<T>& model) const {
    const OnePassScalars& scalars = *model.scalars;
    double square = scalars.sq_u;
    for (std::size_t b = 0, n = model.n_blocks(); b < n; ++b) {
      const Block& block = model.blocks[b];
      const double s = block.s[U_OF_MCP], beta = block.beta[U_OF_MCP];
      square += s * (s * scalars.sq_centre * unit_ * unit_ - 2 * block.centred[U_OF_MCP] * unit_);
      square += constant_metric_ * beta * beta;
    }
    return square;
  }

  // Adds the row to all duals with coefs[b * LANES + lane]. The sums over all features follow from what is known of the
  // row, up to the rounding of the weights, until they are computed anew.
  void add_to(const OnePass<T>& model, const std::vector<double>& coefs) {
    const std::size_t n_blocks = model.n_blocks();
    steps_.resize(coefs.size());
    for (std::size_t b = 0; b < n_blocks; ++b) {
      Block& block = model.blocks[b];
      const DoubleLanes coef = load_lanes(&coefs[b * LANES]), step = coef / radius_;
      store_lanes(&steps_[b * LANES], step);
      add_lanes(block.s, step);
      add_lanes(block.beta, coef * CONSTANT);
      add_lanes(block.centred, step * pull_);
      const double of_mcp = step[U_OF_MCP];
      model.scalars->sq_u += of_mcp * (2 * products_[b * LANES + U_OF_MCP] + of_mcp * sq_z_);
    }
    for (std::size_t k = 0; k < z_.size(); ++k) {
      T* const weights = model.weights + slots_[k] * model.width;
      for (std::size_t b = 0; b < n_blocks; ++b) {
        const DoubleLanes step = load_lanes(&steps_[b * LANES]);
        store_lanes(weights + b * LANES, load_lanes(weights + b * LANES) + step * z_[k]);
      }
    }
  }

  [[nodiscard]] double radius() const { return radius_; }
  [[nodiscard]] double sq_norm() const { return sq_norm_; }

 private:
  void resize(std::size_t n) {
    slots_.resize(n);
    z_.resize(n);
  }

  Squash squash_;
  std::vector<std::uint32_t> slots_;
  std::vector<double> z_, scaled_, products_, steps_;  // scaled_ is D^2 z
  double unit_, constant_metric_, radius_;
  double pull_;     // sum of D^2 z centre
  double sq_z_;     // sum of D^2 z^2
  double sq_norm_;  // of the row
};

}  // namespace maxcosine
