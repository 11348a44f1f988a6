// The hypotheses that predict: the averaged ones or the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "head.hpp"

namespace maxcosine {

// The score of a column is of_v times the dot product with v plus of_total times the one with the sum over time.
struct ScoreFactors {
  double of_v = 0, of_total = 0;
};

// as_points: score by w / Lambda, the hypothesis as a point of the hull.
template <class T>
[[nodiscard]] ScoreFactors score_factors(const Heads<T>& heads, const Head& head, bool as_points) {
  const auto rounds = double(std::max<std::int64_t>(head.learnt, 1));
  const double coef_sum = heads.total ? head.sum_coef / rounds : head.scale * head.coef_v;
  const double unit = as_points && coef_sum > 0 ? coef_sum : 1;
  return {(heads.total ? head.sum_scale / rounds : head.scale) / unit, 1 / (rounds * unit)};
}

// The score of one column, given a row's dot products with it; by_total counts only if hypotheses are averaged.
template <class T>
[[nodiscard]] double column_score(const Heads<T>& heads, const ScoreFactors& factors, std::size_t column, double by_v,
                                  double by_total) {
  const double score = factors.of_v * (by_v + heads.constant * double(heads.bias[column]));
  if (!heads.total) return score;
  return score + factors.of_total * (by_total + heads.constant * double(heads.total_bias[column]));
}

}  // namespace maxcosine
