"""The maximum cosine framework: Section 2 of the paper.

To derive a learner, write a lower bound on the cosine as gamma * Phi(x), where x is the step relative to norm(w).
The maximiser of Phi is the step, and its maximum is the next bound. core/framework.hpp has the same functions for
the built-in rules; a user's rules call these, and Numba compiles them together.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


def phi(x: Any, r: Any, p: Any, s: Any, q: Any, t: Any) -> Any:
    """Phi(x) = (r + p x) / sqrt(s + q x^2 + 2 t q x), the function that Lemma 3 maximises.

    Parameters
    ----------
    x : float or array
        Where to evaluate it.
    r, p, s, q, t : float or array
        Its coefficients.

    Returns
    -------
    float or array
        Phi(x).

    Examples
    --------
    >>> float(phi(0.0, 3.0, 1.0, 4.0, 1.0, 0.0))
    1.5
    """
    return (r + p * x) / np.sqrt(s + q * x * x + 2.0 * t * q * x)


def cosine_bound(x: Any, cosine: Any, margin: Any, sq_x: Any, projection: Any) -> Any:
    """What Lemma 1 guarantees of the cosine after a step.

    A hypothesis at `cosine` from a separator of margin `margin` moves by lambda = x * norm(w) along an example of
    squared norm `sq_x`, whose signed projection on w is `projection` (gamma_i = y (w.a) / norm(w)). The cosine
    afterwards is at least (cosine + margin x) / sqrt(1 + sq_x x^2 + 2 projection x).

    Parameters
    ----------
    x : float or array
        The relative step, lambda / norm(w), not negative.
    cosine : float or array
        The cosine between w and the separator, or a lower bound on it.
    margin : float or array
        The separator's margin gamma.
    sq_x : float or array
        Squared norm of the example.
    projection : float or array
        Signed projection of the example on the direction of w.

    Returns
    -------
    float or array
        The lower bound.

    References
    ----------
    Bshouty and Haddad-Zaknoon, Lemma 1.

    Examples
    --------
    >>> float(cosine_bound(0.0, 0.5, 0.1, 1.0, 0.3))
    0.5
    """
    return phi(x, cosine, margin, 1.0, sq_x, projection / sq_x)


class Maximum(NamedTuple):
    """Where Phi is largest over x >= 0, how large, and by which case of Lemma 3.

    Parameters
    ----------
    argmax : float
        The maximiser. Infinite: the hypothesis becomes the example itself.
    maximum : float
        The largest value of Phi.
    case : int
        The case of Lemma 3; 0 where Phi is 0 everywhere.

    Examples
    --------
    >>> maximise(0.0, 1.0, 1.0, 4.0, 0.0).argmax
    inf
    """

    argmax: float
    maximum: float
    case: int


def maximise(r: float, p: float, s: float, q: float, t: float) -> Maximum:
    """Maximise Phi(x) = (r + p x) / sqrt(s + q x^2 + 2 t q x) over x >= 0.

    The radicand must be positive everywhere: q > 0 and s > q t^2. Lemma 2 is t = 0.

    Parameters
    ----------
    r, p, s, q, t : float
        The coefficients of Phi.

    Returns
    -------
    Maximum
        The maximiser, the maximum and the case.

    References
    ----------
    Bshouty and Haddad-Zaknoon, Lemma 3, with the slips of its proof repaired (see the errata).

    Examples
    --------
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


def ell(coef_sum: Any, norm: Any) -> Any:
    """ell = Lambda / norm(w), the bound that is proven of a hypothesis; 0 where w is 0.

    w is a combination of the signed examples with coefficients >= 0 that sum to Lambda. So its cosine to any
    separator of margin gamma is at least gamma ell, and no separator has a margin above 1 / ell.

    Parameters
    ----------
    coef_sum : float or array
        Lambda, the sum of the coefficients.
    norm : float or array
        norm(w).

    Returns
    -------
    float or array
        The bound: a float for two floats.

    Examples
    --------
    >>> ell(3.0, 1.5)
    2.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(np.asarray(norm) > 0.0, np.divide(coef_sum, norm), 0.0)
    return bound if bound.ndim else float(bound)
