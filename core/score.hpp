// Predictions: scores of rows by the hypotheses that predict, the averaged ones or the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "head.hpp"
#include "hypothesis.hpp"
#include "sweep.hpp"

namespace maxcosine {

// as_points: score by w / Lambda, the hypotheses as points of the hull.
template <class T>
[[nodiscard]] std::vector<ScoreFactors> column_factors(const Heads<T>& heads, bool as_points) {
  std::vector<ScoreFactors> factors(heads.width);
  for (std::size_t h = 0; h < heads.n_heads; ++h) {
    const Head& head = heads.table[h];
    for (std::int64_t column = head.first; column < head.stop; ++column)
      factors[column] = score_factors(heads, head, as_points);
  }
  return factors;
}

// Writes n_columns scores for each of n rows.
template <class T>
void score_rows(const Heads<T>& heads, const std::vector<ScoreFactors>& factors, const Rows<T>& rows, std::size_t n,
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
    for (std::size_t column = 0; column < n_columns; ++column)
      scores[row * n_columns + column] = column_score(heads, factors[column], column, by_v[column], by_total[column]);
  }
}

template <class T>
void score_dense_rows(const Heads<T>& heads, const std::vector<ScoreFactors>& factors, const T* x,
                      std::size_t n_features, std::size_t n, std::size_t n_columns, double* scores) {
  PackedBlock<T> block(n, n_features);
  for (std::size_t start = 0; start < n; start += block.max_rows()) {
    const std::size_t n_block = std::min(block.max_rows(), n - start);
    block.pack(x, n_block, [&](std::size_t k) { return start + k; });
    score_rows(heads, factors, block.rows(), n_block, n_columns, scores + start * n_columns);
  }
}

}  // namespace maxcosine
