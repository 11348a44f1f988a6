#pragma once

#include "step.hpp"

namespace maxcosine {

// The Perceptron: add every mistaken example. Rosenblatt, Psychological Review 65 (1958).
struct Perceptron {
  static Step step(const Scalars& s, double*, const double*) { return s.margin <= 0 ? Step::of(1) : Step::none(); }
};

}  // namespace maxcosine
