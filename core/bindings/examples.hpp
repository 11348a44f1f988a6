// The labelled rows of a sweep as Python passes them.
#pragma once

#include <optional>

#include "../sweep.hpp"
#include "arrays.hpp"

namespace maxcosine {

// Returned by learn_dict beside the faults of a sweep: the weights lack room for the features of the example.
inline constexpr int NO_ROOM = 100;

[[nodiscard]] inline Examples examples_of(std::size_t n, std::size_t n_classes,
                                          const Vector<const std::int64_t>& codes,
                                          const std::optional<Vector<const double>>& weights,
                                          const std::optional<Vector<const std::int64_t>>& order,
                                          const std::optional<Vector<std::int64_t>>& predicted) {
  require(codes.size() == n, "there must be one class code for each row");
  for (std::size_t row = 0; row < n; ++row)
    require(codes.data()[row] >= 0 && std::size_t(codes.data()[row]) < n_classes, "a class code is out of range");
  if (order)
    for (std::size_t k = 0; k < order->size(); ++k)
      require(order->data()[k] >= 0 && std::size_t(order->data()[k]) < n, "the order names a row that does not exist");
  return {codes.data(), optional_data(weights, n, "there must be one weight for each row"),
          order ? order->data() : nullptr, order ? order->size() : n,
          optional_data(predicted, n, "there must be room for one prediction for each row")};
}

}  // namespace maxcosine
