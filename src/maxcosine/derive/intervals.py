"""Outward-rounded interval arithmetic, and inequalities in one variable decided with it.

An interval of floats encloses all values that an expression takes on a box: every operation rounds its lower end
down and its upper end up. A box on which the lower end is not negative is done; the others are halved.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

MAX_DEPTH = 48
MAX_BOXES = 50_000
MAX_TOUCH_ORDER = 4
"""A zero at the end of the interval is closed by a derivative up to this order."""

Floats = npt.NDArray[np.float64]


class UnsupportedError(Exception):
    """The expression holds something that has no interval counterpart here."""


# --- arithmetic ------------------------------------------------------------------------------


class Interval:
    """An array of closed intervals of real numbers, each with ends that may be infinite.

    An end that is NaN marks values that may be undefined; it stays NaN and compares as false.

    Parameters
    ----------
    low, high : array
        The ends.
    """

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
        self.low: Floats = np.asarray(low, dtype=np.float64)
        self.high: Floats = np.asarray(high, dtype=np.float64)

    @classmethod
    def exactly(cls, number: Fraction) -> Interval:
        """The narrowest interval of floats around a rational number.

        Parameters
        ----------
        number : Fraction
            The number; it may be beyond the largest float.

        Returns
        -------
        Interval
            Of length 0 if the number is a float.
        """
        try:
            nearest = float(number)
        except OverflowError:
            largest = float(np.finfo(np.float64).max)
            return cls(largest, math.inf) if number > 0 else cls(-math.inf, -largest)
        exact = Fraction(nearest)
        low = nearest if exact <= number else math.nextafter(nearest, -math.inf)
        high = nearest if exact >= number else math.nextafter(nearest, math.inf)
        return cls(low, high)

    def __add__(self, other: Interval) -> Interval:
        # A sum that rounds to 0, or with a term 0, is exact.
        low, high = self.low + other.low, self.high + other.high
        exact_low = (low == 0) | (self.low == 0) | (other.low == 0)
        exact_high = (high == 0) | (self.high == 0) | (other.high == 0)
        return Interval(_down(low, exact_low), _up(high, exact_high))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __mul__(self, other: Interval) -> Interval:
        pairs = list(itertools.product((self.low, self.high), (other.low, other.high)))
        # An infinite end stands for arbitrarily large numbers, and 0 times any of them is 0.
        products = [np.where((a == 0) & np.isinf(b) | (b == 0) & np.isinf(a), 0.0, a * b) for a, b in pairs]
        # A factor 0 makes the product exact; one that underflows is nearer to 0 than any float, on its own side.
        lows = [
            _down(p, (a == 0) | (b == 0) | ((p == 0) & (np.sign(a) == np.sign(b))))
            for p, (a, b) in zip(products, pairs, strict=True)
        ]
        highs = [
            _up(p, (a == 0) | (b == 0) | ((p == 0) & (np.sign(a) != np.sign(b))))
            for p, (a, b) in zip(products, pairs, strict=True)
        ]
        return Interval(functools.reduce(np.minimum, lows), functools.reduce(np.maximum, highs))

    def reciprocal(self) -> Interval:
        """1 / self where that is defined; all numbers if 0 lies inside, undefined if self is 0.

        Returns
        -------
        Interval
            The quotients.
        """
        inside = (self.low < 0) & (self.high > 0)
        low = np.where(self.high == 0, -np.inf, _down(1 / self.high))
        high = np.where(self.low == 0, np.inf, _up(1 / self.low))
        # 1 / inf is an exact limit: rounding must not carry it across 0.
        low = np.where((self.low >= 0) & (low < 0), 0.0, low)
        high = np.where((self.high <= 0) & (high > 0), 0.0, high)
        undefined = np.isnan(self.low) | np.isnan(self.high) | ((self.low == 0) & (self.high == 0))
        low, high = np.where(inside, -np.inf, low), np.where(inside, np.inf, high)
        return Interval(np.where(undefined, np.nan, low), np.where(undefined, np.nan, high))

    def sqrt(self) -> Interval:
        """Square roots; undefined if self reaches below 0.

        Returns
        -------
        Interval
            The roots.
        """
        undefined = ~(self.low >= 0)
        low = np.maximum(_down(np.sqrt(self.low), self.low == 0), 0.0)
        high = _up(np.sqrt(self.high), self.high == 0)
        return Interval(np.where(undefined, np.nan, low), np.where(undefined, np.nan, high))

    def power(self, exponent: int) -> Interval:
        """Integer powers; even ones are never negative.

        Parameters
        ----------
        exponent : int
            Any integer.

        Returns
        -------
        Interval
            The powers.
        """
        if exponent < 0:
            return self.power(-exponent).reciprocal()
        if exponent == 0:
            return Interval(np.where(np.isnan(self.low), np.nan, 1.0), np.where(np.isnan(self.high), np.nan, 1.0))
        if exponent % 2:
            return self if exponent == 1 else self * self.power(exponent - 1)
        size = self.magnitude()
        half = size.power(exponent // 2)
        return half * half

    def magnitude(self) -> Interval:
        """Absolute values.

        Returns
        -------
        Interval
            Never negative.
        """
        low = np.maximum(np.maximum(self.low, -self.high), 0.0)
        return Interval(low, np.maximum(-self.low, self.high))


def _down(values: Floats, exact: npt.ArrayLike = False) -> Floats:
    return np.where(exact, values, np.nextafter(values, -np.inf))


def _up(values: Floats, exact: npt.ArrayLike = False) -> Floats:
    return np.where(exact, values, np.nextafter(values, np.inf))


def enclose(expression: sp.Expr, variable: sp.Symbol, box: Interval) -> Interval:
    """All values of an expression on boxes.

    Parameters
    ----------
    expression : Expr
        Made of rational numbers, the variable, sums, products, powers, Max, Min and Abs. The denominators of exponents
        are powers of 2.
    variable : Symbol
        The variable.
    box : Interval
        Its values.

    Returns
    -------
    Interval
        An enclosure.

    Raises
    ------
    UnsupportedError
        If the expression holds anything else.
    """
    if expression == variable:
        return box
    if expression.is_Rational:
        return Interval.exactly(Fraction(int(expression.p), int(expression.q)))
    if expression.is_Pow:
        base, exponent = expression.args
        if exponent.is_Integer:
            return enclose(base, variable, box).power(int(exponent))
        if (roots := _square_roots(exponent)) is not None:
            found = enclose(base, variable, box)
            for _ in range(roots):
                found = found.sqrt()
            return found.power(int(exponent.p))
    parts = [enclose(argument, variable, box) for argument in expression.args]
    if expression.is_Add:
        return functools.reduce(Interval.__add__, parts)
    if expression.is_Mul:
        return functools.reduce(Interval.__mul__, parts)
    if isinstance(expression, sp.Abs):
        return parts[0].magnitude()
    if isinstance(expression, (sp.Max, sp.Min)):
        pick: Any = np.maximum if isinstance(expression, sp.Max) else np.minimum
        return Interval(
            functools.reduce(pick, (part.low for part in parts)), functools.reduce(pick, (part.high for part in parts))
        )
    raise UnsupportedError(f"no intervals for {expression}")


def _square_roots(exponent: sp.Expr) -> int | None:
    """How often the square root has to be taken for this exponent; None if that is not all."""
    if not exponent.is_Rational or exponent.q & (exponent.q - 1):
        return None
    return int(exponent.q).bit_length() - 1


# --- deciding --------------------------------------------------------------------------------


def is_nonnegative(claim: sp.Expr, variable: sp.Symbol, low: sp.Expr, high: sp.Expr) -> bool:
    """Whether intervals establish claim >= 0 on [low, high].

    Each unbounded side has a chart of its own, v = +-1 / s^2 with s in (0, 1], in which powers of s are divided out:
    sqrt(1 - 2 v) becomes sqrt(s^2 + 2) / s. Plain intervals know nothing of the growth at infinity.

    Parameters
    ----------
    claim : Expr
        In the variable alone.
    variable : Symbol
        The variable.
    low, high : Rational, or -oo and oo
        The ends.

    Returns
    -------
    bool
        False says nothing.
    """
    first, last = (None if end.is_infinite else Fraction(int(end.p), int(end.q)) for end in (low, high))
    left = Fraction(-1) if last is None else min(Fraction(-1), last)
    right = Fraction(1) if first is None else max(Fraction(1), first)
    # A power of 2 high enough that all nested roots leave whole powers of s.
    s, power = sp.Symbol("s", real=True), 2 ** max(1, _depth_of_roots(claim))
    try:
        if not _by_bisection(claim, variable, left if first is None else first, right if last is None else last):
            return False
        for start, is_unbounded in ((left, first is None), (right, last is None)):
            if is_unbounded:
                chart = sp.Rational(start.numerator, start.denominator) / s**power
                finite = without_poles(claim.subs(variable, chart), s)
                if not _by_bisection(finite, s, Fraction(0), Fraction(1)):
                    return False
    except UnsupportedError:
        return False
    return True


def _depth_of_roots(expression: sp.Expr) -> int:
    """How many square roots are nested."""
    inner = max((_depth_of_roots(argument) for argument in expression.args), default=0)
    return inner + (_square_roots(expression.args[1]) or 0 if expression.is_Pow else 0)


def without_poles(expression: sp.Expr, s: sp.Symbol) -> sp.Expr:
    """The expression times the power of s > 0 that makes it finite at s = 0.

    Parameters
    ----------
    expression : Expr
        In s.
    s : Symbol
        A variable with positive values.

    Returns
    -------
    Expr
        Of the same sign for s > 0.
    """
    return _split_power(expression, s)[1]


def _split_power(expression: sp.Expr, s: sp.Symbol) -> tuple[int, sp.Expr]:
    """An integer n and an expression e, finite at s = 0, such that the expression is s^n e."""
    if expression == s:
        return 1, sp.Integer(1)
    if not expression.has(s):
        return 0, expression
    if expression.is_rational_function(s):
        numerator, denominator = (sp.Poly(p, s) for p in sp.fraction(sp.cancel(sp.together(expression))))
        lowest = [min(monomial[0] for monomial in p.monoms()) for p in (numerator, denominator)]
        parts = [sp.cancel(p.as_expr() / s**k) for p, k in zip((numerator, denominator), lowest, strict=True)]
        return lowest[0] - lowest[1], parts[0] / parts[1]
    if expression.is_Pow:
        n, rest = _split_power(expression.args[0], s)
        power = n * expression.args[1]
        if not power.is_Integer:
            raise UnsupportedError(f"a fractional power of {s} in {expression}")
        return int(power), rest ** expression.args[1]
    found = [_split_power(argument, s) for argument in expression.args]
    if expression.is_Mul:
        return sum(n for n, _ in found), sp.Mul(*(rest for _, rest in found))
    if expression.is_Add or isinstance(expression, (sp.Max, sp.Min, sp.Abs)):
        least = min(n for n, _ in found)
        return least, expression.func(*(s ** (n - least) * rest for n, rest in found))
    raise UnsupportedError(f"no intervals for {expression}")


def _by_bisection(claim: sp.Expr, variable: sp.Symbol, low: Fraction, high: Fraction) -> bool:
    """Whether claim >= 0 on [low, high]: halve boxes until each is decided."""
    ends = [(Interval.exactly(end), _touch(claim, variable, end, side)) for end, side in ((low, 1), (high, -1))]
    lows, highs = np.array([float(ends[0][0].low)]), np.array([float(ends[1][0].high)])
    with np.errstate(all="ignore"):
        for _ in range(MAX_DEPTH):
            box = Interval(lows, highs)
            done = np.broadcast_to(enclose(claim, variable, box).low >= 0, lows.shape).copy()
            for end, derivative in ends:
                if derivative is not None:
                    has_end = (lows <= end.low) & (highs >= end.high)
                    done |= has_end & (enclose(derivative, variable, box).low >= 0)
            lows, highs = lows[~done], highs[~done]
            if len(lows) == 0:
                return True
            if len(lows) > MAX_BOXES:
                return False
            middles = (lows + highs) / 2
            lows, highs = np.concatenate([lows, middles]), np.concatenate([middles, highs])
    return False


def _touch(claim: sp.Expr, variable: sp.Symbol, end: Fraction, side: int) -> sp.Expr | None:
    """If the claim is 0 at an end: a derivative that, not negative near it, keeps the claim from falling below 0.

    All derivatives before it are 0 at the end. By Taylor's theorem the sign of the claim near it is that of this one,
    times side^order (side is 1 if the interval lies right of the end, -1 if left).
    """
    if claim.has(sp.Max, sp.Min, sp.Abs, sp.Piecewise):
        return None  # not smooth
    at_end = {variable: sp.Rational(end.numerator, end.denominator)}
    derivative = claim
    for order in range(MAX_TOUCH_ORDER + 1):
        value = sp.simplify(derivative.subs(at_end))
        if not value.is_finite or (order == 0 and value != 0):
            return None
        if value != 0:
            return side**order * derivative
        derivative = sp.diff(derivative, variable)
    return None
