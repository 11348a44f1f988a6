"""Random claims about polynomials with integer coefficients, and points to try them at.

They are kept as coefficients, so that the same claim can be evaluated by SymPy, in floats and in Fractions without
going through the code under test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

U, C, A = sp.symbols("u c a", real=True)
SYMBOLS = (U, C, A)
Coefficients = dict[tuple[int, ...], int]


def polynomial(coefficients: Mapping[tuple[int, ...], int], values: Sequence[Any]) -> Any:
    """The value of a polynomial in u, c, a, in whatever arithmetic the values have."""
    total: Any = 0 * values[0]
    for powers, coefficient in coefficients.items():
        term: Any = coefficient
        for value, power in zip(values, powers, strict=False):
            if power:
                term = term * value**power
        total = total + term
    return total


def times(p: Coefficients, q: Coefficients) -> Coefficients:
    product: Coefficients = {}
    for i, a in p.items():
        for j, b in q.items():
            powers = tuple(x + y for x, y in zip(i, j, strict=True))
            product[powers] = product.get(powers, 0) + a * b
    return product


def plus(p: Coefficients, q: Coefficients, factor: int = 1) -> Coefficients:
    return {powers: p.get(powers, 0) + factor * q.get(powers, 0) for powers in {**p, **q}}


@dataclass(frozen=True)
class RandomClaim:
    """numerator / denominator >= 0 where each condition's polynomial is > 0 (strict) or >= 0."""

    kind: str
    numerator: Coefficients
    denominator: Coefficients
    conditions: tuple[tuple[Coefficients, bool], ...]

    def expression(self) -> sp.Expr:
        return polynomial(self.numerator, SYMBOLS) / polynomial(self.denominator, SYMBOLS)

    def region(self) -> list[Any]:
        sides = [(polynomial(p, SYMBOLS), strict) for p, strict in self.conditions]
        return [side > 0 if strict else side >= 0 for side, strict in sides]

    def fails_at(self, point: Sequence[Fraction]) -> bool:
        """Exactly: all conditions hold and the claim does not."""
        inside = all(
            value > 0 or (value == 0 and not strict)
            for value, strict in ((polynomial(p, point), strict) for p, strict in self.conditions)
        )
        return inside and polynomial(self.numerator, point) * polynomial(self.denominator, point) < 0

    def apparent_violations(self, points: np.ndarray) -> np.ndarray:
        """In floats, with room for rounding on the side of more violations; columns are points."""
        seems = polynomial(self.numerator, points) * polynomial(self.denominator, points) < 0
        for p, _ in self.conditions:
            seems = seems & (polynomial(p, points) >= -1e-9)
        return points[:, seems]

    def violation_among(self, points: np.ndarray) -> tuple[Fraction, ...] | None:
        for column in self.apparent_violations(points).T[:200]:
            point = tuple(Fraction(float(x)) for x in column)
            if self.fails_at(point):
                return point
        return None


def _monomial(u: int = 0, c: int = 0, a: int = 0) -> tuple[int, int, int]:
    return (u, c, a)


ONE: Coefficients = {_monomial(): 1}
RANGES: tuple[tuple[Coefficients, bool], ...] = (
    ({_monomial(u=1): 1}, True),
    ({_monomial(): 1, _monomial(c=1): 1}, True),
    ({_monomial(): 1, _monomial(c=1): -1}, True),
)
PARAMETER_RANGE: tuple[tuple[Coefficients, bool], ...] = (
    ({_monomial(a=1): 1}, False),
    ({_monomial(): 2, _monomial(a=1): -1}, False),
)
MISTAKE = ({_monomial(c=1): -1}, False)
CORRECT = ({_monomial(c=1): 1}, False)
BELOW_HALF = ({_monomial(): 1, _monomial(u=1, c=1): -2}, False)
BELOW_ONE = ({_monomial(): 1, _monomial(u=1, c=1): -1}, True)
LESS_THAN_U = ({_monomial(u=1): 1, _monomial(c=1): -1}, True)
REGIONS = ((MISTAKE,), (BELOW_HALF,), (CORRECT, BELOW_HALF), (LESS_THAN_U, BELOW_ONE), (), (MISTAKE, CORRECT))
THIN = REGIONS[-1]


def random_polynomial(rng: np.random.Generator, terms: int, degree: int, with_a: bool = False) -> Coefficients:
    found: Coefficients = {}
    for _ in range(terms):
        powers = _monomial(*rng.integers(0, degree + 1, 2).tolist(), int(rng.integers(0, 2)) if with_a else 0)
        found[powers] = int(rng.integers(-3, 4))
    return found


def random_claim(rng: np.random.Generator) -> RandomClaim:
    """One of seven kinds: mostly false, mostly true, touching zero, false in a tiny cell only, fractions, ..."""
    kinds = ("any", "square", "tiny", "product", "fraction", "near", "parameter")
    kind = kinds[int(rng.choice(len(kinds), p=[0.12, 0.2, 0.2, 0.16, 0.12, 0.14, 0.06]))]
    with_a = kind == "parameter"
    own = REGIONS[int(rng.choice(len(REGIONS), p=[0.25, 0.2, 0.2, 0.15, 0.15, 0.05]))]
    conditions = (*RANGES, *own, *(PARAMETER_RANGE if with_a else ()))
    p = random_polynomial(rng, 4, 2)
    square = times(p, p)
    numerator, denominator = random_polynomial(rng, 5, 2, with_a), ONE
    if kind == "square":  # touches zero without crossing, or is lifted or lowered a little
        numerator = plus({k: 1000 * v for k, v in square.items()}, ONE, int(rng.integers(-1, 2)))
    elif kind == "tiny":  # false in a small ellipse around (u, c) = (i / 4, j / 4) alone
        i, j = int(rng.integers(1, 12)), int(rng.integers(-3, 4))
        first = {_monomial(u=1): 4, _monomial(): -i}
        second = {_monomial(c=1): 4, _monomial(): -j}
        bowl = plus(times(first, first), times(second, second))
        numerator = plus({k: 10**6 * v for k, v in bowl.items()}, ONE, -int(rng.integers(0, 2)))
    elif kind == "product":  # products of what the region makes positive, some of them with the wrong sign
        numerator = plus(times(conditions[-1][0], square), times(conditions[1][0], ONE), int(rng.integers(-1, 3)))
    elif kind == "fraction":
        denominator = plus(random_polynomial(rng, 2, 1), ONE, int(rng.integers(1, 4)))
    elif kind == "near":  # nearly always true
        base = times({_monomial(u=2): 1, _monomial(): 1, _monomial(c=1): -1}, {_monomial(): 1, _monomial(u=1): 1})
        numerator = plus(
            base, {_monomial(u=1): int(rng.integers(0, 4)), _monomial(u=1, c=2): int(rng.integers(-1, 2))}, -1
        )
    elif kind == "parameter":
        numerator = plus(times(numerator, {_monomial(a=1): 1, _monomial(): 1}), square, int(rng.integers(0, 3)))
    if not any(denominator.values()):
        denominator = ONE
    return RandomClaim(kind, numerator, denominator, conditions)


def points(rng: np.random.Generator, size: int) -> np.ndarray:
    """Rows u, c, a: many magnitudes, quarters, thin layers at c = -1, 0, 1 and at 2 u c = 1, u c = 1, u = c."""
    u = np.exp(rng.normal(0, rng.choice([0.5, 1.5, 4.0], size)))
    u = np.where(rng.random(size) < 0.2, rng.integers(1, 16, size) / 4 + rng.choice([0, 1e-5, -1e-5], size), u)
    c = rng.uniform(-1, 1, size)
    layer = rng.choice([-1.0, 0.0, 1.0], size) + rng.choice([-1, 1], size) * rng.random(size) ** 6 * 0.01
    c = np.where(rng.random(size) < 0.25, layer, c)
    c = np.where(rng.random(size) < 0.1, rng.integers(-3, 4, size) / 4 + rng.choice([0, 1e-5, -1e-5], size), c)
    border = np.choose(rng.integers(0, 3, size), [1 / (2 * u), 1 / u, u]) * (1 - rng.random(size) ** 6 * 0.01)
    c = np.where(rng.random(size) < 0.15, border, c)
    c = np.where(rng.random(size) < 0.1, 0.0, c)
    a = np.where(rng.random(size) < 0.2, rng.choice([0.0, 2.0], size), rng.uniform(0, 2, size))
    return np.stack([u, np.clip(c, -1, 1), a])
