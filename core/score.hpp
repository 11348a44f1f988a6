// Predictions: scores of rows by the hypotheses that predict, the averaged ones or the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "head.hpp"
#include "sweep.hpp"

namespace maxcosine {

// The score of a column is of_v times the dot product with v plus of_total times the one with the sum over time.
struct ColumnFactors {
  std::vector<double> of_v, of_total;
};

// as_points: score by w / Lambda, the hypotheses as points of the hull.
template <class T>
[[nodiscard]] ColumnFactors column_factors(const Heads<T>& heads, bool as_points) {
  ColumnFactors factors{std::vector<double>(heads.width), std::vector<double>(heads.width)};
  for (std::size_t h = 0; h < heads.n_heads; ++h) {
    const Head& head = heads.table[h];
    const auto rounds = double(std::max<std::int64_t>(head.learnt, 1));
    const double coef_sum = heads.total ? head.sum_coef / rounds : head.scale * head.coef_v;
    const double unit = as_points && coef_sum > 0 ? coef_sum : 1;
    for (std::int64_t column = head.first; column < head.stop; ++column) {
      factors.of_v[column] = (heads.total ? head.sum_scale / rounds : head.scale) / unit;
      factors.of_total[column] = 1 / (rounds * unit);
    }
  }
  return factors;
}

// Writes n_columns scores for each of n rows.
template <class T>
void score_rows(const Heads<T>& heads, const ColumnFactors& factors, const Rows<T>& rows, std::size_t n,
                std::size_t n_columns, double* scores) {
  const bool far = heads.n_features * heads.width * sizeof(T) > PREFETCH_FROM;
  std::vector<double> by_v(heads.width), by_total(heads.width);
  for (std::size_t row = 0; row < n; ++row) {
    if (far && row + ROWS_AHEAD < n) {
      prefetch_row(heads.v, heads.width, rows, row + ROWS_AHEAD);
      if (heads.total) prefetch_row(heads.total, heads.width, rows, row + ROWS_AHEAD);
    }
    const std::uint32_t* slots = rows.slots + rows.indptr[row];
    const T* values = rows.values + rows.indptr[row];
    score_columns(slots, values, rows.size(row), heads.v, heads.width, by_v.data());
    if (heads.total) score_columns(slots, values, rows.size(row), heads.total, heads.width, by_total.data());
    for (std::size_t column = 0; column < n_columns; ++column) {
      double score = factors.of_v[column] * (by_v[column] + heads.constant * double(heads.bias[column]));
      if (heads.total)
        score += factors.of_total[column] * (by_total[column] + heads.constant * double(heads.total_bias[column]));
      scores[row * n_columns + column] = score;
    }
  }
}

template <class T>
void score_dense_rows(const Heads<T>& heads, const ColumnFactors& factors, const T* x, std::size_t n_features,
                      std::size_t n, std::size_t n_columns, double* scores) {
  PackedBlock<T> block(n, n_features);
  for (std::size_t start = 0; start < n; start += block.max_rows()) {
    const std::size_t n_block = std::min(block.max_rows(), n - start);
    block.pack(x, n_block, [&](std::size_t k) { return start + k; });
    score_rows(heads, factors, block.rows(), n_block, n_columns, scores + start * n_columns);
  }
}

}  // namespace maxcosine
