"""NAROMMA, the New Aggressive ROMMA: the cosine bound of Section 3, maximised exactly.

Lemmas 4 to 6 of the paper; by Theorem 7 it always points where aggressive ROMMA points. In hull
terms it is an exact line search from w / Lambda towards the example.
"""

import math
from typing import Any

from maxcosine.framework import maximise
from maxcosine.rules.romma import LARGEST_BOUND, PARALLEL_TOLERANCE
from maxcosine.rules.rule import hull_bound, rule


@rule(
    scale_free=True,
    scale_invariant=True,
    restarts=True,
    own_bound=hull_bound,
    reference="Bshouty and Haddad-Zaknoon, The maximum cosine framework, Figure 1 and Lemma 6",
)
def naromma(margin: float, sq_w: float, sq_x: float, coef_sum: float, state: Any, params: Any) -> Any:
    """lambda = norm(w) argmax Phi with r = ell, p = s = 1, q = norm(x)^2, t = gamma_i / norm(x)^2."""
    if coef_sum == 0.0:
        return 0.0, 1.0, state
    norm_w = math.sqrt(sq_w)
    norm_x = math.sqrt(sq_x)
    cosine = margin / (norm_w * norm_x)
    if 1.0 + cosine <= PARALLEL_TOLERANCE:
        return 1.0, 0.0, state  # antiparallel: the origin lies in the hull, nothing separates
    bound = min(coef_sum / norm_w, LARGEST_BOUND / norm_x)
    best = maximise(bound, 1.0, 1.0, sq_x, margin / (norm_w * sq_x))
    if best.argmax == 0.0:
        return 1.0, 0.0, state  # type I: gamma_i >= 1 / ell
    if best.argmax == math.inf or 1.0 - cosine <= PARALLEL_TOLERANCE:
        return 0.0, 1.0, state  # type II: 1 / ell > gamma_i >= norm(x)^2 ell
    return 1.0, norm_w * best.argmax, state  # type III
