"""CMCP, the Conservative Maximum Cosine Perceptron (Section 4 of the paper, Lemma 8)."""

import math
from typing import Any

from maxcosine.rules.rule import rule


def own_bound(state: Any, sq_w: float, coef_sum: float) -> float:
    """The paper's recursion, which the mistake bound of Theorem 10 speaks of."""
    return float(state[0])


def restart_state(sq_w: float, coef_sum: float) -> tuple[float]:
    """The recursion goes on from what is proven of a merged hypothesis."""
    return (coef_sum / math.sqrt(sq_w),)


@rule(
    state={"bound": 0.0},
    conservative=True,
    scale_free=True,
    scale_invariant=True,
    own_bound=own_bound,
    restart_state=restart_state,
    reference="Bshouty and Haddad-Zaknoon, The maximum cosine framework, Lemma 8",
)
def cmcp(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """On a mistake lambda = norm(w) / (ell norm(x)^2), ell^2 <- ell^2 + 1 / norm(x)^2.

    The maximiser of (ell + x) / sqrt(1 + norm(x)^2 x^2): Lemma 2 with r = ell, p = s = 1 and
    q = norm(x)^2, the projection dropped because it is not positive on a mistake.
    """
    (bound,) = state
    if coef_sum == 0.0:
        return 0.0, 1.0, (1.0 / math.sqrt(sq_x),)
    if margin > 0.0:
        return 1.0, 0.0, state
    add = math.sqrt(sq_w) / (bound * sq_x)
    return 1.0, add, (math.sqrt(bound * bound + 1.0 / sq_x),)
