"""Geometry without rounding: floats are dyadic rationals, so all of it is done in whole numbers.

The largest margin of a separator through the origin is the distance of the origin from the convex hull of the
signed examples, or 0 if the origin lies in the hull. Wolfe's algorithm finds the nearest point of the hull; without
rounding it ends after finitely many steps, and its end proves itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Vector = tuple[int, ...]

# Square roots are enclosed between two numbers that differ by less than this part of them.
SQRT_BITS = 200


def whole(values: Iterable[float]) -> tuple[Vector, Fraction]:
    """Whole numbers and a unit, such that each value is its number times the unit."""
    ratios = [float(value).as_integer_ratio() for value in values]
    denominator = max((below for _, below in ratios), default=1)
    return tuple(above * (denominator // below) for above, below in ratios), Fraction(1, denominator)


def dot(a: Vector, b: Vector) -> int:
    return sum(map(int.__mul__, a, b))


def scaled(factor: int, a: Vector) -> Vector:
    return tuple(factor * value for value in a)


def plus(a: Vector, b: Vector) -> Vector:
    return tuple(map(int.__add__, a, b))


def sqrt_below(square: Fraction) -> Fraction:
    """A number at most the square root, and above (1 - 2^-SQRT_BITS) times it."""
    above, below = square.numerator, square.denominator
    shift = max(0, 2 * SQRT_BITS + 4 - above.bit_length() + below.bit_length())
    shift += shift % 2
    return Fraction(math.isqrt((above << shift) // below), 1 << (shift // 2))


def sqrt_above(square: Fraction) -> Fraction:
    """A number at least the square root, and below (1 + 2^-SQRT_BITS) times it."""
    root = sqrt_below(square)
    return root if root * root == square else root * (1 + Fraction(2, 2**SQRT_BITS))


def float_below(value: Fraction) -> float:
    """The largest float at most this large."""
    rounded = float(value)
    return rounded if Fraction(rounded) <= value else float(np.nextafter(rounded, -math.inf))


def float_above(value: Fraction) -> float:
    """The smallest float at least this large."""
    return -float_below(-value)


@dataclass(frozen=True)
class Nearest:
    """The point of a hull that is nearest to the origin: `direction` * `unit` / `total`."""

    direction: Vector
    total: int
    unit: Fraction
    corral: tuple[int, ...]
    """The examples whose combination with positive coefficients it is."""

    @property
    def separable(self) -> bool:
        """Whether the origin is outside of the hull."""
        return any(self.direction)

    @property
    def sq_margin(self) -> Fraction:
        """The square of the largest margin of any separator; 0 if there is none."""
        return Fraction(dot(self.direction, self.direction), self.total**2) * self.unit**2

    @property
    def margin(self) -> float:
        """The largest margin, rounded down."""
        return float_below(sqrt_below(self.sq_margin))


def nearest_point(points: Sequence[Vector], unit: Fraction = Fraction(1)) -> Nearest:
    """Find the point of the hull of `points` * `unit` that is nearest to the origin, by Wolfe's algorithm."""
    squares = [dot(point, point) for point in points]
    start = min(range(len(points)), key=squares.__getitem__)
    weights = {start: 1}  # the coefficients of the present point, up to their sum
    while True:
        total = sum(weights.values())
        direction = combination(points, weights)
        farthest = min(range(len(points)), key=lambda j: dot(direction, points[j]))
        if dot(direction, points[farthest]) * total >= dot(direction, direction):
            return Nearest(direction, total, unit, tuple(weights))
        weights[farthest] = 0
        weights = _shortened(points, weights)


def combination(points: Sequence[Vector], weights: dict[int, int]) -> Vector:
    """The sum of weight times point."""
    summed: Vector = (0,) * len(points[0])
    for j, weight in weights.items():
        summed = plus(summed, scaled(weight, points[j]))
    return summed


def _shortened(points: Sequence[Vector], weights: dict[int, int]) -> dict[int, int]:
    """Move to the nearest point of the affine hull, dropping those points that would get negative weights."""
    while True:
        members = list(weights)
        goal = dict(zip(members, _affine_weights([points[j] for j in members]), strict=True))
        if all(value > 0 for value in goal.values()):
            return _reduced(goal)
        # Both are coefficients up to their sums; go from one to the other as far as none is negative.
        here, there = sum(weights.values()), sum(goal.values())
        blocking = [j for j in members if goal[j] <= 0]
        ways = {j: Fraction(weights[j] * there, weights[j] * there - goal[j] * here or 1) for j in blocking}
        way = min(ways.values())
        stay, go = (way.denominator - way.numerator) * there, way.numerator * here
        moved = {j: stay * weights[j] + go * goal[j] for j in members}
        weights = _reduced({j: value for j, value in moved.items() if value > 0})


def _reduced(weights: dict[int, int]) -> dict[int, int]:
    divisor = math.gcd(*weights.values())
    return {j: value // divisor for j, value in weights.items()}


def _affine_weights(points: Sequence[Vector]) -> list[int]:
    """The coefficients, up to a positive factor, of the point of the affine hull that is nearest to the origin.

    They solve (G + 1) mu = 1, where G holds the dot products: positive definite for affinely independent points.
    Elimination without fractions (Bareiss): all divisions have no remainder.
    """
    n = len(points)
    rows = [[dot(a, b) + 1 for b in points] + [1] for a in points]
    before = 1
    for k in range(n):
        pivot = rows[k][k]
        for i in range(n):
            if i == k:
                continue
            factor = rows[i][k]
            rows[i] = [(pivot * a - factor * b) // before for a, b in zip(rows[i], rows[k], strict=True)]
        before = pivot
    return [row[n] for row in rows]
