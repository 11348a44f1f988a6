// The maximum cosine framework: the function Phi and its maximiser, Lemmas 2 and 3 of the paper.
#pragma once

#include <cmath>
#include <limits>

namespace maxcosine {

inline constexpr double INFINITE = std::numeric_limits<double>::infinity();

// Phi(x) = (r + p x) / sqrt(s + q x^2 + 2 t q x)
[[nodiscard]] inline double phi(double x, double r, double p, double s, double q, double t) {
  return (r + p * x) / std::sqrt(s + q * x * x + 2 * t * q * x);
}

struct Maximum {
  double argmax;   // infinite: the hypothesis becomes the example itself
  double maximum;
  int lemma_case;  // of Lemma 3; 0 where Phi is 0 everywhere
};

// Maximises Phi over x >= 0. The radicand must be positive everywhere: q > 0 and s > q t^2. Lemma 2 is t = 0.
[[nodiscard]] inline Maximum maximise(double r, double p, double s, double q, double t) {
  const double d = r - p * t;
  const double e = p * s - r * t * q;
  const double at_zero = r / std::sqrt(s);
  const double at_infinity = p / std::sqrt(q);
  if (d == 0) {
    if (p > 0) return {INFINITE, at_infinity, 1};
    if (p < 0) return {0, at_zero, 2};
    return {0, 0, 0};
  }
  if (d > 0) {
    if (e >= 0) return {e / (q * d), std::sqrt(d * d / (s - q * t * t) + p * p / q), 3};
    return {0, at_zero, 4};
  }
  if (e >= 0) return {INFINITE, at_infinity, 5};
  if (at_infinity > at_zero) return {INFINITE, at_infinity, 6};
  return {0, at_zero, 6};
}

}  // namespace maxcosine
