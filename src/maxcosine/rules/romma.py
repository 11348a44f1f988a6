"""ROMMA and aggressive ROMMA, the relaxed online maximum margin algorithms of Li and Long.

The hypothesis u is the shortest vector with a margin of 1 on the last example and on the
half-space that u itself stands for. Here Lambda = norm(u)^2 throughout, so that the bound is
norm(u) itself (Theorem 7).
"""

import math
from typing import Any

import numpy as np

from maxcosine.compiled import helper
from maxcosine.rules.rule import hull_bound, rule

REFERENCE = "Li and Long, The relaxed online maximum margin algorithm, Machine Learning 46 (2002)"

# 1 -+ cos is known to a few rounding errors of the scalars it is made of.
PARALLEL_TOLERANCE = 8.0 * float(np.finfo(np.float64).eps)

# norm(u) norm(x) beyond this means a margin below rounding, relative to the examples: nothing
# separates. On noisy data it would grow without end, so u is held at this length.
LARGEST_BOUND = 2.0**45


@helper
def relaxed_step(margin: float, sq_w: float, sq_x: float, coef_sum: float) -> tuple[float, float]:
    """The move of aggressive ROMMA: type I (nothing), II (u <- y a / norm(a)^2) or III."""
    if coef_sum == 0.0:
        return 0.0, 1.0 / sq_x
    product = sq_w * sq_x
    cosine = margin / math.sqrt(product)
    if 1.0 + cosine <= PARALLEL_TOLERANCE:
        return 1.0, 0.0  # antiparallel: the origin lies in the hull and nothing separates
    shrink = min(1.0, LARGEST_BOUND / math.sqrt(product))
    margin *= shrink
    product *= shrink * shrink
    if margin >= 1.0:
        return shrink, 0.0
    if margin >= product or 1.0 - cosine <= PARALLEL_TOLERANCE:
        return 0.0, 1.0 / sq_x
    # c and d of the paper's Table 1, with D = norm(a)^2 norm(u)^2 - (u.a)^2.
    determinant = product * (1.0 - cosine) * (1.0 + cosine)
    keep = (product - margin) / determinant
    add = (product / sq_x) * (1.0 - margin) / determinant
    return shrink * keep, add


def own_norm(bound: float) -> float:
    """norm(u) = ell throughout."""
    return bound


@rule(
    scale_invariant=True,
    restarts=True,
    own_bound=hull_bound,
    restart_norm=own_norm,
    reference=REFERENCE,
)
def aggressive_romma(
    margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any
) -> Any:
    """u <- c u + d a whenever the margin is below 1 (Table 1 of the paper)."""
    keep, add = relaxed_step(margin, sq_w, sq_x, coef_sum)
    return keep, add, state


@rule(
    conservative=True,
    scale_invariant=True,
    own_bound=hull_bound,
    restart_norm=own_norm,
    reference=REFERENCE,
)
def romma(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """Aggressive ROMMA's move, on mistakes only; type II then occurs at the start alone."""
    if margin > 0.0:
        return 1.0, 0.0, state
    keep, add = relaxed_step(margin, sq_w, sq_x, coef_sum)
    return keep, add, state
