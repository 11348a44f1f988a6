"""NAROMMA, the New Aggressive ROMMA: the cosine bound of Section 3, maximised exactly.

Lemmas 4 to 6 of the paper; by Theorem 7 it always points where aggressive ROMMA points. In hull
terms it is an exact line search from w / Lambda towards the example.
"""

import math
from typing import Any

from maxcosine.maximise import maximise
from maxcosine.rule import hull_bound, rule
from maxcosine.rules.romma import PARALLEL_TOLERANCE

# The length of w means nothing here. Far outside this range it is brought back to 1, so that long
# runs on noisy data, where w shrinks without end, never underflow.
SHORTEST, LONGEST = 2.0**-40, 2.0**40


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
    bound = coef_sum / norm_w
    best = maximise(bound, 1.0, 1.0, sq_x, margin / (norm_w * sq_x))
    if best.argmax == 0.0:
        return 1.0, 0.0, state  # type I: gamma_i >= 1 / ell
    if best.argmax == math.inf or 1.0 - cosine <= PARALLEL_TOLERANCE:
        return 0.0, 1.0, state  # type II: 1 / ell > gamma_i >= norm(x)^2 ell
    add = norm_w * best.argmax  # type III
    norm_after = (coef_sum + add) / best.maximum
    keep = 1.0 if SHORTEST < norm_after < LONGEST else 1.0 / norm_after
    return keep, keep * add, state
