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

template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(LANES * sizeof(T))));
};

template <class T>
[[nodiscard]] inline DoubleLanes load_lanes(const T* from) {
  typename LanesOf<T>::type lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return __builtin_convertvector(lanes, DoubleLanes);
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
template <class T>
[[nodiscard]] inline double score_one_column(const std::uint32_t* slots, const T* x, std::size_t n, const T* weights) {
  const std::size_t in_lanes = n - n % LANES;
  DoubleLanes lanes{};
  double rest = 0;
  for (std::size_t k = 0; k < in_lanes; k += LANES) {
    const typename LanesOf<T>::type gathered = {weights[slots[k]], weights[slots[k + 1]], weights[slots[k + 2]],
                                                weights[slots[k + 3]]};
    lanes += load_lanes(x + k) * __builtin_convertvector(gathered, DoubleLanes);
  }
  for (std::size_t k = in_lanes; k < n; ++k) rest += double(x[k]) * double(weights[slots[k]]);
  return sum_lanes(lanes) + rest;
}

// Dot products of a row with four neighbouring columns of the weights.
template <class T>
inline void score_four_columns(const std::uint32_t* slots, const T* x, std::size_t n, const T* weights, std::size_t width,
                               double* scores) {
  const std::size_t in_lanes = n - n % LANES;
  DoubleLanes s0{}, s1{}, s2{}, s3{}, rest{};
  for (std::size_t k = 0; k < in_lanes; k += LANES) {
    s0 += load_lanes(weights + slots[k] * width) * double(x[k]);
    s1 += load_lanes(weights + slots[k + 1] * width) * double(x[k + 1]);
    s2 += load_lanes(weights + slots[k + 2] * width) * double(x[k + 2]);
    s3 += load_lanes(weights + slots[k + 3] * width) * double(x[k + 3]);
  }
  for (std::size_t k = in_lanes; k < n; ++k) rest += load_lanes(weights + slots[k] * width) * double(x[k]);
  const DoubleLanes sums = ((s0 + s1) + (s2 + s3)) + rest;
  std::memcpy(scores, &sums, sizeof sums);
}

// Dot products of a row with every column. `width` is 1 or a multiple of four.
template <class T>
inline void score_columns(const std::uint32_t* slots, const T* x, std::size_t n, const T* weights, std::size_t width,
                          double* scores) {
  if (width == 1) {
    scores[0] = score_one_column(slots, x, n, weights);
    return;
  }
  for (std::size_t h = 0; h < width; h += LANES) score_four_columns(slots, x, n, weights + h, width, scores + h);
}

// Adds factor * x to one column, in the arithmetic of the weights.
template <class T>
inline void add_row(T* column, std::size_t width, const std::uint32_t* slots, const T* x, std::size_t n, double factor) {
  const T typed = T(factor);
  for (std::size_t k = 0; k < n; ++k) column[slots[k] * width] += typed * x[k];
}

// As add_row, for a factor that may be outside the range of T; its product with x is inside.
template <class T>
inline void add_row_in_double(T* column, std::size_t width, const std::uint32_t* slots, const T* x, std::size_t n,
                              double factor) {
  for (std::size_t k = 0; k < n; ++k) column[slots[k] * width] += T(factor * double(x[k]));
}

// Whether the slots rise strictly and lie within the features.
[[nodiscard]] inline bool is_canonical(const std::uint32_t* slots, std::size_t n, std::size_t n_features) {
  bool rising = true;
  for (std::size_t k = 1; k < n; ++k) rising &= slots[k] > slots[k - 1];
  return rising && (n == 0 || slots[n - 1] < n_features);
}

// Whether all values are zero. A square norm of zero may also be an underflow.
template <class T>
[[nodiscard]] inline bool is_zero(const T* x, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k)
    if (x[k] != 0) return false;
  return true;
}

}  // namespace maxcosine
