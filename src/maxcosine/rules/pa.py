"""Passive-aggressive learning: the smallest step that gives the example a margin of 1.

`pa1` caps the step by C and `pa2` softens it; both forgive label noise, `pa` forgives none.
C = 1 is the default of scikit-learn's and LIBOL's implementations, and lets an example of norm 1
still be learnt in one step from w = 0.
"""

from typing import Any

from maxcosine.rules.rule import Param, rule

REFERENCE = "Crammer et al., Online passive-aggressive algorithms, JMLR 7 (2006), Figure 1"
C = Param.factor(1.0, "aggressiveness: the largest step of PA-I, the softness of PA-II")


@rule(scale_invariant=True, reference=REFERENCE)
def pa(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """lambda = max(0, 1 - margin) / norm(x)^2."""
    return 1.0, max(0.0, 1.0 - margin) / sq_x, state


@rule(params={"C": C}, reference=REFERENCE)
def pa1(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """lambda = min(C, max(0, 1 - margin) / norm(x)^2)."""
    return 1.0, min(params.C, max(0.0, 1.0 - margin) / sq_x), state


@rule(params={"C": C}, reference=REFERENCE)
def pa2(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """lambda = max(0, 1 - margin) / (norm(x)^2 + 1 / (2 C))."""
    return 1.0, max(0.0, 1.0 - margin) / (sq_x + 0.5 / params.C), state
