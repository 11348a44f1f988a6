// What a rule reads and decides: w <- keep * w + add * y * x.
#pragma once

namespace maxcosine {

struct Scalars {
  double margin;    // y (w.x)
  double sq_w;      // norm(w)^2
  double sq_x;      // norm(x)^2
  double coef_sum;  // Lambda; 0 before the first step
};

struct Step {
  double keep;
  double add;

  [[nodiscard]] static constexpr Step none() { return {1, 0}; }
  [[nodiscard]] static constexpr Step of(double add) { return {1, add}; }
  [[nodiscard]] static constexpr Step restart(double add) { return {0, add}; }  // w becomes add * y * x
};

// How the sweep calls any rule, built-in or a user's: it writes keep and add to `move`, and its new state to `state`.
using StepFunction = void (*)(double margin, double sq_w, double sq_x, double coef_sum, double* state,
                              const double* params, double* move, void* context);

struct RuleCall {
  StepFunction function = nullptr;
  void* context = nullptr;  // for rules that are called as Python
};

// A built-in rule under the common signature.
template <class Rule>
void call_rule(double margin, double sq_w, double sq_x, double coef_sum, double* state, const double* params,
               double* move, void*) {
  const Step step = Rule::step({margin, sq_w, sq_x, coef_sum}, state, params);
  move[0] = step.keep;
  move[1] = step.add;
}

}  // namespace maxcosine
