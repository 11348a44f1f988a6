"""MCP, the Maximum Cosine Perceptron (Section 4 of the paper, Lemma 9 and Theorem 10)."""

import math
from typing import Any

from maxcosine.rules import cmcp
from maxcosine.rules.rule import rule


@rule(
    state={"bound": 0.0},
    scale_free=True,
    scale_invariant=True,
    own_bound=cmcp.own_bound,
    restart_state=cmcp.restart_state,
    reference="Bshouty and Haddad-Zaknoon, The maximum cosine framework, Figure 2 and Lemma 9",
)
def mcp(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """CMCP's step, also when the margin is positive but at most norm(w) / (2 ell).

    With eta = max(0, margin) ell / norm(w): ell^2 <- ell^2 + (1 - 2 eta) / norm(x)^2.
    """
    (bound,) = state
    if coef_sum == 0.0:
        return 0.0, 1.0, (1.0 / math.sqrt(sq_x),)
    norm_w = math.sqrt(sq_w)
    if margin > norm_w / (2.0 * bound):
        return 1.0, 0.0, state
    eta = max(0.0, margin) * bound / norm_w
    add = norm_w / (bound * sq_x)
    # The threshold makes 1 - 2 eta >= 0; rounding must not make it negative.
    return 1.0, add, (math.sqrt(bound * bound + max(0.0, 1.0 - 2.0 * eta) / sq_x),)
