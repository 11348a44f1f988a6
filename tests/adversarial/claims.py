"""What a certificate claims, checked against exact geometry. Each function returns None, or what is wrong.

They take plain numbers and arrays, so that false claims can be given to them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tests.adversarial.exact import Nearest, dot, sqrt_above, sqrt_below, whole
from tests.adversarial.replay import AverageError

# An averaged hypothesis may differ from the average by this much, unless the hypotheses themselves cancelled; then
# by a few roundings relative to their lengths.
AVERAGE_TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
AVERAGE_ROUNDINGS = 16
REPLAY_TOLERANCE = 0.02


def ceiling_fault(ceiling: float, nearest: Nearest | None) -> str | None:
    """A ceiling is at least the largest margin; without examples there is no largest one."""
    if math.isnan(ceiling) or ceiling < 0:
        return f"ceiling {ceiling!r} is not a margin"
    if math.isinf(ceiling):
        return None
    if nearest is None:
        return f"ceiling {ceiling!r} without examples"
    if Fraction(ceiling) ** 2 >= nearest.sq_margin:
        return None
    attained = sqrt_below(nearest.sq_margin)
    above = f"by {excess(attained, ceiling):.2g} of it" if ceiling else "above 0"
    return f"ceiling {ceiling!r}, but a separator attains {float(attained)!r}, {above}"


def bound_fault(w: np.ndarray, bound: float, rounding: float, nearest: Nearest | None) -> str | None:
    """The cosine between w and the best separator is at least margin * bound - rounding."""
    if not (0 <= bound < math.inf) or math.isnan(rounding) or rounding < 0:
        return f"bound {bound!r} with rounding {rounding!r}"
    if nearest is None or not nearest.separable or not w.any() or math.isinf(rounding):
        return None
    direction, _ = whole(w)
    along = Fraction(dot(direction, nearest.direction))
    lengths = Fraction(dot(direction, direction) * dot(nearest.direction, nearest.direction))
    cosine = along / (sqrt_below(lengths) if along > 0 else sqrt_above(lengths))
    claimed = sqrt_below(nearest.sq_margin) * Fraction(bound) - Fraction(rounding)
    if cosine >= claimed:
        return None
    return f"cosine {float(cosine)!r} below the {float(claimed)!r} that bound {bound!r}, rounding {rounding!r} claim"


def attained_fault(attained: float, best_bound: float, nearest: Nearest) -> str | None:
    """No hypothesis attains more than the largest margin, nor more than the ceiling."""
    if not math.isfinite(attained):
        return f"attained margin {attained!r}"
    if attained <= 0:
        return None
    if Fraction(attained) ** 2 > nearest.sq_margin:
        largest = sqrt_below(nearest.sq_margin)
        return f"attained margin {attained!r} above the largest one, {float(largest)!r}"
    if math.isfinite(best_bound) and Fraction(attained) * Fraction(best_bound) > 1:
        return f"attained margin {attained!r} above the ceiling of best bound {best_bound!r}"
    return None


def budget_fault(budget: float, mistakes: int) -> str | None:
    """No more mistakes were made than the budget allows."""
    if mistakes <= budget:  # false for nan
        return None
    return f"{mistakes} mistakes after a budget of {budget!r}"


def mistakes_fault(claimed: int, certain: int, possible: int) -> str | None:
    """Mistakes are margins <= 0; `possible` also counts those that rounding may have made one."""
    if certain <= claimed <= possible:
        return None
    return f"{claimed} mistakes, but {certain} to {possible} margins were <= 0"


def average_fault(found: AverageError, rounding: float, dtype: str) -> str | None:
    """The averaged hypothesis is the average, within the rounding claimed, and nearly so in any case.

    `rounding` counts twice: the hypotheses that it is compared with were rounded themselves.
    """
    eps = float(np.finfo(dtype).eps)
    usual = AVERAGE_TOLERANCE[dtype] + AVERAGE_ROUNDINGS * eps * found.cancelled
    allowed = min(2 * rounding, usual) + 1.01 * found.wobble + eps
    if found.error <= allowed:
        return None
    return f"average off by {found.error:.3g} of it, {allowed:.3g} allowed; rounding claimed: {rounding:.3g}"


def replayed_fault(found: AverageError) -> str | None:
    """The average is roughly that of a replay whose scalars were not rounded: its steps may differ a little."""
    if found.error <= REPLAY_TOLERANCE:
        return None
    return f"average off by {found.error:.3g} of that of a replay"


def excess(true: Fraction, claimed: float) -> float:
    """How much larger the true number is, as part of the claimed one."""
    return float(true / Fraction(claimed) - 1) if claimed else math.inf
