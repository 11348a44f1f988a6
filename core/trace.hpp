// The steps of a sweep, if the caller asks for them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "head.hpp"

namespace maxcosine {

// What one head did with one row, laid out as the NumPy structured type STEP of src/maxcosine/trace.py.
struct TracedStep {
  std::int64_t example;  // rows that the model had seen before
  std::int64_t row;      // the number of the row among those given
  std::int32_t head;
  std::uint8_t mistake;  // margin <= 0
  std::uint8_t padding[3];
  double margin;  // before the step
  double keep;
  double add;       // as it was written: with the factor of the row's weight, and rounded to the weights' type
  double norm;      // norm(w) after the step, as it is tracked
  double coef_sum;  // Lambda after the step
  double ell;       // Lambda / norm(w) after the step; 0 if w = 0
};
static_assert(sizeof(TracedStep) == 9 * 8 && std::is_trivially_copyable_v<TracedStep>);

// Receives steps in the order in which they are taken. The caller provides room for one for each row and head.
struct Trace {
  TracedStep* steps;
  std::size_t n = 0;

  // Before a step of head h is written. In two parts, because a sweep without a trace need not keep these numbers.
  void begin(const Head& head, std::size_t h, std::size_t row, double margin, double keep, double add) {
    steps[n] = {head.seen, std::int64_t(row), std::int32_t(h), margin <= 0, {}, margin, keep, add, 0, 0, 0};
  }

  // After it: the scalars of the head have changed, but for its counts.
  void end(const Head& head) {
    const double norm_v = std::sqrt(head.sq_v);
    steps[n].norm = head.scale * norm_v;
    steps[n].coef_sum = head.scale * head.coef_v;
    steps[n].ell = norm_v > 0 ? head.coef_v / norm_v : 0;
    ++n;
  }
};

}  // namespace maxcosine
