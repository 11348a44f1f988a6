"""Try a claim at many points, and confirm a violation in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from maxcosine.derive.regions import Range, ranges, split_region

POINTS = 20_000
SEED = 20
MAX_CANDIDATES = 24
"""How many of the points that look like a violation are examined exactly."""
DENOMINATORS = (2, 16, 1000, 10**6, 10**9)
NEAR_ZERO = 1e-9
"""A float value up to this may be an exact zero."""
SIMPLE_VALUES = (0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)

Floats = npt.NDArray[np.float64]


def find_violation(
    claim: sp.Expr, region: Sequence[Any], strict: bool = False
) -> tuple[dict[sp.Symbol, Fraction] | None, int]:
    """Look for a rational point of the region at which the claim fails.

    Parameters
    ----------
    claim : Expr
        Claimed to be >= 0, or > 0 if `strict`.
    region : sequence of relational
        Where it is claimed.
    strict : bool
        Whether a zero is a violation.

    Returns
    -------
    (dict or None, int)
        A point at which exact arithmetic confirms the violation, if one was found, and how many points were tried.
    """
    symbols, points, values = _values(claim, region)
    looks_false = np.flatnonzero(values <= (NEAR_ZERO if strict else 0.0))
    for i in _most_promising(looks_false, values, [points[s] for s in symbols]):
        for nearby in _rationals_near([float(points[s][i]) for s in symbols]):
            point = dict(zip(symbols, nearby, strict=True))
            if is_violation(claim, region, point, strict):
                return point, len(values)
    return None, len(values)


def _most_promising(looks_false: npt.NDArray[np.intp], values: Floats, points: Sequence[Floats]) -> list[int]:
    """Points with simple coordinates, those of the most negative values, and some from all over the region."""
    share = MAX_CANDIDATES // 3
    complexity = sum((_complexity(column[looks_false]) for column in points), np.zeros(len(looks_false)))
    simple = looks_false[np.argsort(complexity, kind="stable")]
    worst = looks_false[np.argsort(values[looks_false], kind="stable")]
    spread = worst[:: max(1, len(worst) // share)]
    return list(dict.fromkeys(np.concatenate([simple[:share], worst[:share], spread[:share]]).tolist()))


def _complexity(numbers: Floats) -> Floats:
    """Small for small multiples of simple fractions, infinite for others."""
    is_simple = np.abs(numbers * 12 - np.round(numbers * 12)) < NEAR_ZERO
    return np.where(is_simple, np.abs(numbers) + 1.0 * (numbers != np.round(numbers)), np.inf)


def find_interior_point(region: Sequence[Any]) -> dict[sp.Symbol, Fraction] | None:
    """A rational point at which all conditions hold strictly, confirmed exactly, or None.

    Parameters
    ----------
    region : sequence of relational
        The conditions.

    Returns
    -------
    dict or None
        Symbols to values.
    """
    strictly = [k.func(k.lhs, k.rhs) if not isinstance(k, (sp.Ge, sp.Le)) else _strict(k) for k in region]
    return find_violation(sp.Integer(-1), strictly)[0]


def _strict(relation: Any) -> Any:
    return relation.lhs > relation.rhs if isinstance(relation, sp.Ge) else relation.lhs < relation.rhs


def is_violation(claim: sp.Expr, region: Sequence[Any], point: Mapping[sp.Symbol, Fraction], strict: bool) -> bool:
    """Whether exact arithmetic finds all conditions true and the claim false at a point.

    Parameters
    ----------
    claim : Expr
        Claimed to be >= 0, or > 0 if `strict`.
    region : sequence of relational
        Where it is claimed.
    point : mapping of Symbol to Fraction
        The point.
    strict : bool
        Whether a zero is a violation.

    Returns
    -------
    bool
        False also where something is undefined or cannot be compared.
    """
    values = {s: sp.Rational(x.numerator, x.denominator) for s, x in point.items()}
    try:
        if not all(sp.sympify(condition, strict=True).subs(values) == sp.true for condition in region):
            return False
        value = claim.subs(values)
        if not value.is_number or not value.is_finite or not value.is_extended_real:
            return False
        return bool((value <= 0 if strict else value < 0) == sp.true)
    except TypeError:  # SymPy compares neither complex numbers nor nan
        return False


def _rationals_near(values: Sequence[float]) -> list[tuple[Fraction, ...]]:
    exact = tuple(Fraction(x) for x in values)
    found = [tuple(x.limit_denominator(d) for x in exact) for d in DENOMINATORS]
    return list(dict.fromkeys([*found, exact]))


def _values(claim: sp.Expr, region: Sequence[Any]) -> tuple[list[sp.Symbol], dict[sp.Symbol, Floats], Floats]:
    """The claim at the points of a fixed cloud that lie in the region and at which it is defined."""
    symbols = sorted(
        set().union(claim.free_symbols, *(sp.sympify(k, strict=True).free_symbols for k in region)), key=str
    )
    points = cloud(symbols, region)
    size = 2 * POINTS
    inside = np.ones(size, dtype=bool)
    with np.errstate(all="ignore"):
        for condition in region:
            inside &= np.broadcast_to(_evaluate(sp.sympify(condition, strict=True), symbols, points), (size,)).astype(
                bool
            )
        values = np.broadcast_to(_evaluate(claim, symbols, points), (size,)).astype(np.complex128)
    inside &= np.isfinite(values.real) & (values.imag == 0)
    chosen = np.flatnonzero(inside)[:POINTS]
    return symbols, {s: points[s][chosen] for s in symbols}, values.real[chosen]


def _evaluate(expression: sp.Basic, symbols: Sequence[sp.Symbol], points: Mapping[sp.Symbol, Floats]) -> Any:
    return sp.lambdify(symbols, expression, modules="numpy")(*(points[s] for s in symbols))


def cloud(symbols: Sequence[sp.Symbol], region: Sequence[Any]) -> dict[sp.Symbol, Floats]:
    """Points within the ranges of the symbols: many magnitudes, both ends, simple values, borders of conditions.

    Parameters
    ----------
    symbols : sequence of Symbol
        What to choose values for.
    region : sequence of relational
        Conditions; the points are near, not necessarily inside, the region.

    Returns
    -------
    dict of Symbol to array
        2 * POINTS values for each symbol, the same in every call.
    """
    rng = np.random.default_rng(SEED)
    parts = split_region(region)
    known = ranges(parts[0]) if len(parts) == 1 else {}
    points = {s: _choose(known.get(s, Range()), rng) for s in symbols}
    _move_to_borders(points, [k.expression for part in parts for k in part if len(k.symbols) > 1], rng)
    return points


def _choose(known: Range, rng: np.random.Generator) -> Floats:
    """Values within a range."""
    size = 2 * POINTS
    low = -math.inf if known.low is None else float(known.low)
    high = math.inf if known.high is None else float(known.high)
    magnitude = np.exp(rng.normal(0.0, rng.choice([1.0, 2.0, 6.0], size)))
    if math.isfinite(low) and math.isfinite(high):
        width = high - low
        kinds = [
            low + width * rng.random(size),
            low + width * rng.random(size) ** 8,
            high - width * rng.random(size) ** 8,
            np.where(rng.random(size) < 0.5, low, high),
            (0.0 if low <= 0 <= high else low) + width * rng.choice([-1, 1], size) * rng.random(size) ** 8,
        ]
    elif math.isfinite(low):
        kinds = [low + magnitude, low + magnitude, np.full(size, low)]
    elif math.isfinite(high):
        kinds = [high - magnitude, high - magnitude, np.full(size, high)]
    else:
        kinds = [rng.choice([-1, 1], size) * magnitude] * 2
    kinds.append(rng.choice([-1, 1], size) * rng.choice(SIMPLE_VALUES, size))
    chosen = np.choose(rng.integers(0, len(kinds), size), kinds)
    return np.where((low <= chosen) & (chosen <= high), chosen, kinds[0])


def _move_to_borders(points: dict[sp.Symbol, Floats], borders: Sequence[sp.Expr], rng: np.random.Generator) -> None:
    """Move some of the points onto, or close to, where a condition linear in a symbol holds with equality."""
    symbols = list(points)
    size = 2 * POINTS
    for border in borders:
        for symbol in symbols:
            slope = sp.diff(border, symbol)
            if slope == 0 or slope.has(symbol):
                continue
            some = rng.random(size) < 0.2 / len(borders)
            at = {s: points[s][some] for s in symbols}
            with np.errstate(all="ignore"):
                end = np.broadcast_to(_evaluate(-border.subs(symbol, 0) / slope, symbols, at), at[symbol].shape)
            off = rng.choice([0.0, 1e-9, -1e-9, 1e-3, -1e-3], end.shape)
            points[symbol][some] = np.where(np.isfinite(end), end * (1 + off), at[symbol])
