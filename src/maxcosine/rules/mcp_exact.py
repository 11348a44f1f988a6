"""MCP with the exact bound Lambda / norm(w) in place of the paper's recursion.

The recursion of MCP drops terms; Lambda / norm(w) keeps them at the cost of one scalar that the
engine tracks anyway. The bound never falls, every mistake raises its square by at least
1 / norm(x)^2, so Theorem 10 holds unchanged.
"""

from typing import Any

from maxcosine.rules.rule import hull_bound, rule


@rule(
    scale_free=True,
    scale_invariant=True,
    own_bound=hull_bound,
    reference="This project: MCP (Bshouty and Haddad-Zaknoon) with ell = Lambda / norm(w)",
)
def mcp_exact(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """When margin <= norm(w)^2 / (2 Lambda): lambda = norm(w)^2 / (Lambda norm(x)^2)."""
    if coef_sum == 0.0:
        return 0.0, 1.0, state
    if margin > sq_w / (2.0 * coef_sum):
        return 1.0, 0.0, state
    return 1.0, sq_w / (coef_sum * sq_x), state
