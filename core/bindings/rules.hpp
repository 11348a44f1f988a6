// Rules as Python objects: built-in ones, ones compiled by Numba, and ones that are called as Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "../rules/step.hpp"

namespace maxcosine {

namespace nb = nanobind;

// A rule that is called as Python, with the interpreter lock held. An exception ends the sweep: the step stays NaN,
// and the caller raises the exception afterwards.
struct PythonRule {
  nb::object function;  // (margin, sq_w, sq_x, coef_sum, state, params) -> (keep, add, state)
  std::size_t n_state;
  std::size_t n_params;
  std::unique_ptr<nb::python_error> error;
};

// What the sweep calls for a head, with everything that must live as long as it.
class RuleFunction {
 public:
  RuleFunction(StepFunction function, nb::object owner) : call_{function, nullptr}, owner_(std::move(owner)) {}
  explicit RuleFunction(std::unique_ptr<PythonRule> rule);

  [[nodiscard]] const RuleCall& call() const { return call_; }
  void raise_pending_error() const;

 private:
  RuleCall call_;
  nb::object owner_;  // for example Numba's cfunc
  std::unique_ptr<PythonRule> python_;
};

}  // namespace maxcosine
