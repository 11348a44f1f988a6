// The arithmetic of one sparse row: its norm, its scores, and its addition to the weights.
//
// Sums over the non-zeros of a row run in four lanes: non-zero k goes to lane k mod 4, and the last n mod 4 are
// added apart. The order is the same for one head and for many, for dense and sparse rows, and on every
// processor, so the same input always gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace maxcosine {

inline constexpr std::size_t LANES = 4;

typedef double DoubleLanes __attribute__((vector_size(LANES * sizeof(double))));

// Written out, because GCC compiles __builtin_convertvector from float to double poorly.
template <class T>
[[nodiscard]] inline DoubleLanes load_lanes(const T* from) {
  return DoubleLanes{double(from[0]), double(from[1]), double(from[2]), double(from[3])};
}

[[nodiscard]] inline double sum_lanes(const DoubleLanes& lanes) {
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

template <class T>
[[nodiscard]] inline double square_norm(const T* x, std::size_t n) {
  const std::size_t in_lanes = n - n % LANES;
  DoubleLanes lanes{};
  double rest = 0;
  for (std::size_t k = 0; k < in_lanes; k += LANES) {
    const DoubleLanes values = load_lanes(x + k);
    lanes += values * values;
  }
  for (std::size_t k = in_lanes; k < n; ++k) rest += double(x[k]) * double(x[k]);
  return sum_lanes(lanes) + rest;
}

// The dot product of a row with the weights of a model that has one column.
template <class T, class W>
[[nodiscard]] inline double score_one_column(const std::uint32_t* slots, const T* x, std::size_t n, const W* weights) {
  const std::size_t in_lanes = n - n % LANES;
  DoubleLanes lanes{};
  double rest = 0;
  for (std::size_t k = 0; k < in_lanes; k += LANES) {
    const W gathered[LANES] = {weights[slots[k]], weights[slots[k + 1]], weights[slots[k + 2]], weights[slots[k + 3]]};
    lanes += load_lanes(x + k) * load_lanes(gathered);
  }
  for (std::size_t k = in_lanes; k < n; ++k) rest += double(x[k]) * double(weights[slots[k]]);
  return sum_lanes(lanes) + rest;
}

// Dot products of a row with G groups of four neighbouring columns.
template <std::size_t G, class T, class W>
inline void score_groups(const std::uint32_t* slots, const T* x, std::size_t n, const W* weights, std::size_t width,
                         double* scores) {
  const std::size_t in_lanes = n - n % LANES;
  DoubleLanes sums[LANES][G] = {}, rest[G] = {};
  for (std::size_t k = 0; k < in_lanes; k += LANES)
    for (std::size_t lane = 0; lane < LANES; ++lane) {
      const W* columns = weights + slots[k + lane] * width;
      for (std::size_t g = 0; g < G; ++g) sums[lane][g] += load_lanes(columns + g * LANES) * double(x[k + lane]);
    }
  for (std::size_t k = in_lanes; k < n; ++k)
    for (std::size_t g = 0; g < G; ++g) rest[g] += load_lanes(weights + slots[k] * width + g * LANES) * double(x[k]);
  for (std::size_t g = 0; g < G; ++g) {
    const DoubleLanes total = ((sums[0][g] + sums[1][g]) + (sums[2][g] + sums[3][g])) + rest[g];
    std::memcpy(scores + g * LANES, &total, sizeof total);
  }
}

// Dot products of a row with the first n_columns columns of `width`, both multiples of four.
template <class T, class W>
inline void score_columns(const std::uint32_t* slots, const T* x, std::size_t n, const W* weights, std::size_t width,
                          std::size_t n_columns, double* scores) {
  std::size_t h = 0;
#ifdef __AVX__  // twelve sums fit into the registers of AVX, not into those of SSE
  for (; h + 3 * LANES <= n_columns; h += 3 * LANES) score_groups<3>(slots, x, n, weights + h, width, scores + h);
#endif
  for (; h < n_columns; h += LANES) score_groups<1>(slots, x, n, weights + h, width, scores + h);
}

// Dot products of a row with every column. `width` is 1 or a multiple of four.
template <class T, class W>
inline void score_columns(const std::uint32_t* slots, const T* x, std::size_t n, const W* weights, std::size_t width,
                          double* scores) {
  if (width == 1)
    scores[0] = score_one_column(slots, x, n, weights);
  else
    score_columns(slots, x, n, weights, width, width, scores);
}

// Adds factor * x to one column, in the arithmetic of its weights; returns the square norm of the weights written.
template <class W, class T>
[[nodiscard]] inline double add_row(W* column, std::size_t width, const std::uint32_t* slots, const T* x, std::size_t n,
                                    double factor) {
  const W typed = W(factor);
  const auto add = [&](std::size_t k) { return column[slots[k] * width] += typed * W(x[k]); };
  const std::size_t in_lanes = n - n % LANES;
  DoubleLanes lanes{};
  double rest = 0;
  for (std::size_t k = 0; k < in_lanes; k += LANES) {
    const W written[LANES] = {add(k), add(k + 1), add(k + 2), add(k + 3)};
    lanes += load_lanes(written) * load_lanes(written);
  }
  for (std::size_t k = in_lanes; k < n; ++k) {
    const double written = add(k);
    rest += written * written;
  }
  return sum_lanes(lanes) + rest;
}

// Whether the slots rise strictly and lie within the features.
[[nodiscard]] inline bool is_canonical(const std::uint32_t* slots, std::size_t n, std::size_t n_features) {
  std::uint32_t not_rising = 0;  // as wide as a slot, so that compilers vectorise the loop
  for (std::size_t k = 1; k < n; ++k) not_rising |= slots[k] <= slots[k - 1];
  return !not_rising && (n == 0 || slots[n - 1] < n_features);
}

// Whether all values are zero. A square norm of zero may also be an underflow.
template <class T>
[[nodiscard]] inline bool is_zero(const T* x, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k)
    if (x[k] != 0) return false;
  return true;
}

}  // namespace maxcosine
