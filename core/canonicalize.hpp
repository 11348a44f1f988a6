// Rows as the learning code expects them: no zeros, no feature twice; logarithms and unit length on request.
//
// The order of features decides the order of summation, and with it the bits of every score. A row that ascends
// keeps its order. Otherwise features stay in the order of their first appearance; only very long rows are sorted.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace maxcosine {

struct Transform {
  bool log1p = false;  // replace x by sign(x) log(1 + |x|)
  bool l2 = false;     // then scale the row to length 1
};

// Rows with more values than this are sorted; a hash table for them would not fit into a cache.
inline constexpr std::size_t LONG_ROW = std::size_t{1} << 18;

// The loops of ascends and has_zeros look at all values and count in their width, which lets compilers vectorize them.
template <class Key>
[[nodiscard]] inline bool ascends(const Key* keys, std::size_t n) {
  Key descents = 0;
  for (std::size_t k = 1; k < n; ++k) descents |= keys[k] <= keys[k - 1];
  return descents == 0;
}

template <class Value>
[[nodiscard]] inline bool has_zeros(const Value* values, std::size_t n) {
  std::conditional_t<sizeof(Value) == 4, std::int32_t, std::int64_t> zeros = 0;
  for (std::size_t k = 0; k < n; ++k) zeros |= values[k] == 0;
  return zeros != 0;
}

// Adds up the values of equal keys, in the order of their first appearance; returns the number of different keys.
// `table` is working memory: by hash, one more than the position of a key, or 0.
template <class Key, class Value>
[[nodiscard]] inline std::size_t sum_duplicates(Key* keys, Value* values, std::size_t n,
                                                std::vector<std::uint32_t>& table) {
  constexpr std::uint64_t GOLDEN_RATIO = 0x9E3779B97F4A7C15;  // 2^64 divided by it, for multiplicative hashing
  table.assign(std::bit_ceil(2 * n), 0);
  const std::size_t mask = table.size() - 1;
  const int shift = 64 - std::countr_zero(table.size());
  std::size_t end = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const Key key = keys[k];
    const Value value = values[k];
    std::size_t place = (std::uint64_t{key} * GOLDEN_RATIO) >> shift;
    while (table[place] != 0 && keys[table[place] - 1] != key) place = (place + 1) & mask;
    if (table[place] != 0) {
      values[table[place] - 1] += value;
    } else {
      keys[end] = key;
      values[end] = value;
      table[place] = static_cast<std::uint32_t>(++end);
    }
  }
  return end;
}

// As sum_duplicates, with the keys in ascending order.
template <class Key, class Value>
[[nodiscard]] inline std::size_t sort_and_sum_duplicates(Key* keys, Value* values, std::size_t n) {
  std::vector<std::pair<Key, Value>> row(n);
  for (std::size_t k = 0; k < n; ++k) row[k] = {keys[k], values[k]};
  std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::size_t end = 0;
  for (const auto& [key, value] : row) {
    if (end > 0 && keys[end - 1] == key) {
      values[end - 1] += value;
    } else {
      keys[end] = key;
      values[end++] = value;
    }
  }
  return end;
}

template <class Key, class Value>
[[nodiscard]] inline std::size_t drop_zeros(Key* keys, Value* values, std::size_t n) {
  std::size_t end = 0;
  for (std::size_t k = 0; k < n; ++k) {
    keys[end] = keys[k];
    values[end] = values[k];
    end += values[k] != 0;
  }
  return end;
}

// `extra_square` is the square norm of features that are not in the row but count for its length.
template <class Value>
inline void apply(const Transform& transform, Value* values, std::size_t n, double extra_square) {
  if (transform.log1p)
    for (std::size_t k = 0; k < n; ++k) {
      const double value = values[k];
      values[k] = static_cast<Value>(std::copysign(std::log1p(std::abs(value)), value));
    }
  if (!transform.l2) return;
  double square = extra_square;
  for (std::size_t k = 0; k < n; ++k) square += double(values[k]) * double(values[k]);
  if (!(square > 0)) return;
  const double length = std::sqrt(square);
  for (std::size_t k = 0; k < n; ++k) values[k] = static_cast<Value>(double(values[k]) / length);
}

// Makes a row canonical in place, transforms it, and returns its new length.
template <class Key, class Value>
[[nodiscard]] inline std::size_t canonicalize_row(Key* keys, Value* values, std::size_t n, const Transform& transform,
                                                  std::vector<std::uint32_t>& table, double extra_square = 0) {
  if (!ascends(keys, n))
    n = n > LONG_ROW ? sort_and_sum_duplicates(keys, values, n) : sum_duplicates(keys, values, n, table);
  if (has_zeros(values, n)) n = drop_zeros(keys, values, n);
  apply(transform, values, n, extra_square);
  return n;
}

}  // namespace maxcosine
