"""ALMA for p = 2, the approximate large margin algorithm of Gentile."""

import math
from typing import Any

from maxcosine.rules.rule import Param, rule


@rule(
    state={"updates": 0.0},
    params={
        "alpha": Param(
            0.9,
            "how far from the maximal margin: 1 - alpha of it is aimed at",
            low=1e-6,
            high=1.0,
            closed="both",
        ),
        "B": Param.factor(lambda chosen: math.sqrt(8.0) / chosen["alpha"], "scale of the margin asked for"),
        "C": Param.factor(math.sqrt(2.0), "scale of the step"),
    },
    scale_invariant=True,
    reference="Gentile, A new approximate maximal margin classification algorithm, JMLR 2 (2001)",
)
def alma(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """With z = x / norm(x), k = 1, 2, ...: when y (w.z) <= (1 - alpha) B / sqrt(k), a step
    C / sqrt(k) along y z, then back into the unit ball.

    The defaults are those of Gentile's theorem for p = 2, B = sqrt(8) / alpha and C = sqrt(2),
    with alpha = 0.9 as in his experiments.
    """
    (updates,) = state
    norm_x = math.sqrt(sq_x)
    root = math.sqrt(updates + 1.0)
    if margin > norm_x * (1.0 - params.alpha) * params.B / root:
        return 1.0, 0.0, state
    step = params.C / root
    sq_after = sq_w + 2.0 * step * margin / norm_x + step * step
    # norm(w') follows from scalars, so projecting all of w is one keep and add.
    keep = 1.0 / max(1.0, math.sqrt(max(0.0, sq_after)))
    return keep, keep * step / norm_x, (updates + 1.0,)
