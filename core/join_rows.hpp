// Joins pieces of rows, one piece for each column of a table, into rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "text/parsed_block.hpp"

namespace maxcosine {

// The key of a feature that a row does not have.
inline constexpr std::uint32_t NO_FEATURE = 0xFFFFFFFF;

// Some features of each row.
struct Piece {
  const std::int64_t* indptr;  // null: each row has one
  const std::uint32_t* keys;   // columns; or numbers of names
  const double* values;        // null: all are 1
  const char* letters;         // of the names; null if keys are columns
  const std::int64_t* name_starts;

  [[nodiscard]] std::size_t start(std::size_t row) const { return indptr ? std::size_t(indptr[row]) : row; }
};

// Calls add(piece, key, value) for each feature of a row.
template <class Add>
void for_each_feature(std::span<const Piece> pieces, std::size_t row, const Add& add) {
  for (const Piece& piece : pieces)
    for (std::size_t k = piece.start(row); k < piece.start(row + 1); ++k)
      if (piece.keys[k] != NO_FEATURE) add(piece, piece.keys[k], piece.values ? piece.values[k] : 1.0);
}

// Joins pieces whose keys are columns; rows become canonical.
template <class Value>
[[nodiscard]] ParsedBlock<std::uint32_t, Value> join_columns(std::size_t n_rows, std::span<const Piece> pieces,
                                                             const Transform& transform) {
  ParsedBlock<std::uint32_t, Value> block;
  for (std::size_t row = 0; row < n_rows; ++row) {
    const std::size_t first = block.keys.size();
    for_each_feature(pieces, row, [&](const Piece&, std::uint32_t key, double value) {
      block.keys.push_back(key);
      block.values.push_back(static_cast<Value>(value));
    });
    const std::size_t end = finish_features(block, first, block.keys.size(), transform);
    block.keys.resize(end);
    block.values.resize(end);
    block.indptr.push_back(static_cast<std::int64_t>(end));
  }
  return block;
}

// Joins pieces whose keys are names; only an index knows which of them are equal.
template <class Value>
[[nodiscard]] ParsedBlock<std::uint32_t, Value> join_names(std::size_t n_rows, std::span<const Piece> pieces) {
  ParsedBlock<std::uint32_t, Value> block;
  block.name_starts.push_back(0);
  for (std::size_t row = 0; row < n_rows; ++row) {
    for_each_feature(pieces, row, [&](const Piece& piece, std::uint32_t key, double value) {
      if (value == 0) return;
      const char* const letters = piece.letters;
      block.letters.insert(block.letters.end(), letters + piece.name_starts[key], letters + piece.name_starts[key + 1]);
      block.name_starts.push_back(static_cast<std::int64_t>(block.letters.size()));
      block.values.push_back(static_cast<Value>(value));
    });
    block.indptr.push_back(static_cast<std::int64_t>(block.values.size()));
  }
  return block;
}

}  // namespace maxcosine
