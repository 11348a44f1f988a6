"""The maximiser of a cosine bound (Lemmas 2 and 3).

To derive a learner, write a lower bound on the cosine as gamma * Phi(x), with x the step relative
to norm(w); the maximiser of Phi is the step and its maximum the next bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from maxcosine.compiled import jit


class Maximum(NamedTuple):
    """Where Phi is largest over x >= 0, how large, and by which case of Lemma 3.

    An infinite `argmax` means that the hypothesis becomes the example itself. Case 0 is the
    degenerate one: Phi is 0 everywhere.
    """

    argmax: float
    maximum: float
    case: int


@jit
def maximise(r: float, p: float, s: float, q: float, t: float) -> Maximum:
    """Maximise Phi(x) = (r + p x) / sqrt(s + q x^2 + 2 t q x) over x >= 0.

    The radicand must be positive everywhere: q > 0 and s > q t^2. Lemma 2 is t = 0.

    References
    ----------
    Bshouty and Haddad-Zaknoon, Lemma 3, with the slips of its proof repaired (see the errata).

    >>> maximise(1.0, 1.0, 1.0, 1.0, 0.0)
    Maximum(argmax=1.0, maximum=1.4142135623730951, case=3)
    """
    d = r - p * t
    e = p * s - r * t * q
    at_zero = r / math.sqrt(s)
    at_infinity = p / math.sqrt(q)
    if d == 0.0:
        if p > 0.0:
            return Maximum(math.inf, at_infinity, 1)
        if p < 0.0:
            return Maximum(0.0, at_zero, 2)
        return Maximum(0.0, 0.0, 0)
    if d > 0.0:
        if e >= 0.0:
            return Maximum(e / (q * d), math.sqrt(d * d / (s - q * t * t) + p * p / q), 3)
        return Maximum(0.0, at_zero, 4)
    if e >= 0.0:
        return Maximum(math.inf, at_infinity, 5)
    if at_infinity > at_zero:
        return Maximum(math.inf, at_infinity, 6)
    return Maximum(0.0, at_zero, 6)
