"""Steps of a rule that maximises its bound numerically, at points that cover the range of examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from maxcosine.derive.numeric import maximiser_source
from maxcosine.derive.symbols import Parameter, StateSymbol, c, quantities, reduced, u

if TYPE_CHECKING:
    from maxcosine.derive.derivation import Derivation

POINTS = 4000


def steps_at_points(derivation: Derivation) -> list[dict[str, Fraction]]:
    """Return points at which a rule may move, as u, c, its parameters and z, the step that it takes there.

    Where the step is infinite, w becomes the example, and z is a number so large that nothing else matters.
    """
    symbols = [one for kind in (Parameter, StateSymbol) for one in quantities(derivation.expressions, kind)]
    best_step = _best_step(derivation, symbols)
    may_move = sp.lambdify([u, c, *symbols], sp.And(*(reduced(one) for one in derivation.when)))
    found = []
    for values in _points(symbols):
        if may_move(*values):
            step = min(float(best_step(*values)), 1e12)
            names = ["u", "c", *(one.name for one in symbols), "z"]
            found.append(dict(zip(names, map(Fraction, (*values, step)), strict=True)))
    return found


def _best_step(derivation: Derivation, symbols: list[Any]) -> Callable[..., float]:
    space: dict[str, Any] = {}
    code = "from math import inf, sqrt\n" + maximiser_source(reduced(derivation.bound), symbols)
    exec(compile(code, f"<maximiser of {derivation.name}>", "exec"), space)  # text that `numeric` has written
    found: Callable[..., float] = space["best_step"]
    return found


def _points(symbols: list[Any]) -> Iterator[tuple[float, ...]]:
    random = np.random.default_rng(0)
    for length, eighths in product((1.0, 0.5, 2.0, 0.25, 4.0), (0, -4, 4, -6, 6, -2, 2, -7, 7)):  # easy to read
        yield (length, eighths / 8, *(float(one.start) for one in symbols))
    for k in range(POINTS):
        length = float(np.exp(random.normal(0.0, 2.0)))
        cosine = float(random.uniform(-1.0, 1.0))
        if k % 4 == 0:  # near the ends, and at 0
            cosine = (0.0, 1e-6, -1e-6, 1.0 - 1e-6, 1e-6 - 1.0)[k // 4 % 5]
        if k % 4 == 1:  # where ell g is of the order of 1
            cosine = float(np.clip(random.uniform(-2.0, 2.0) / length, -0.999999, 0.999999))
        yield (length, cosine, *(_value(one, random) for one in symbols))


def _value(symbol: Any, random: np.random.Generator) -> float:
    start = float(symbol.start)
    low, high = max(float(symbol.low), start - 10.0), min(float(symbol.high), start + 10.0)
    return float(random.choice([low, high, start, random.uniform(low, high)]))
