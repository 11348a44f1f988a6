"""The cosine bound (Lemma 1) and the form Phi that every bound of the framework takes.

The functions are compiled and take numbers or NumPy arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxcosine.compiled import jit


@jit
def phi(x: Any, r: Any, p: Any, s: Any, q: Any, t: Any) -> Any:
    """Phi(x) = (r + p x) / sqrt(s + q x^2 + 2 t q x), the function that Lemma 3 maximises.

    >>> phi(0.0, 3.0, 1.0, 4.0, 1.0, 0.0)
    1.5
    """
    return (r + p * x) / np.sqrt(s + q * x * x + 2.0 * t * q * x)


@jit
def cosine_bound(x: Any, cosine: Any, margin: Any, sq_x: Any, projection: Any) -> Any:
    """What Lemma 1 guarantees of the cosine after a step.

    A hypothesis at `cosine` from a separator of margin `margin` moves by lambda = x * norm(w)
    along an example of squared norm `sq_x`, whose signed projection on w is `projection`
    (gamma_i = y (w.a) / norm(w)). The cosine afterwards is at least

        (cosine + margin x) / sqrt(1 + sq_x x^2 + 2 projection x).

    Parameters
    ----------
    x : the relative step, lambda / norm(w), not negative
    cosine : the cosine between w and the separator, or a lower bound on it
    margin : the separator's margin gamma
    sq_x : squared norm of the example
    projection : signed projection of the example on the direction of w

    References
    ----------
    Bshouty and Haddad-Zaknoon, Lemma 1.

    >>> cosine_bound(0.0, 0.5, 0.1, 1.0, 0.3)
    0.5
    """
    return phi(x, cosine, margin, 1.0, sq_x, projection / sq_x)
